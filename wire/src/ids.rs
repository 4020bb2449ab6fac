//! Identifiers. A text is sent once with its id; afterwards, events use the id.

/// A text that events refer to: the name of a span, counter or mark, or the reason for an absence.
///
/// Ids start at 1; [`NameId::NONE`] is "no name".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

impl NameId {
    /// No name.
    pub const NONE: Self = Self(0);
}

/// A track: one thread, stream or stage of the publishing program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// A signal: one measured quantity of one device, read by one sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignalId(pub u32);

/// The ordinal of a step in its session, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub u64);

impl StepId {
    /// Outside every step.
    pub const NONE: Self = Self(0);
}
