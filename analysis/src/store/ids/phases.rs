//! The phases of a session and their display order.
//!
//! A phase gets a slot when its first span arrives; slots index the numbers in a step row. In display order, the standard
//! phases come first, then others by appearance, and the pseudo-phase `gap` last.

pub use gnntop_history::MAX_PHASES;
use gnntop_wire::phase::STANDARD;

/// Name of the wall time outside every phase.
pub const GAP: &str = "gap";
/// What a program's own phase of that name is called.
const OWN_GAP: &str = "own gap";
/// Collects phases beyond [`MAX_PHASES`].
const OTHER: &str = "other phases";

/// Index of a phase's numbers in step rows and statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhaseSlot(pub(in crate::store) u8);

impl PhaseSlot {
    /// The pseudo-phase `gap`: wall time inside no phase.
    pub const GAP: Self = Self(u8::MAX);

    pub(in crate::store) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The slot of its numbers.
    pub slot: PhaseSlot,
    /// Its name.
    pub text: String,
    /// Its index in [`gnntop_wire::phase::STANDARD`]; `None` for a program's own phases and for the gap.
    pub standard: Option<usize>,
}

impl Phase {
    /// Whether this is the pseudo-phase `gap`.
    pub fn is_gap(&self) -> bool {
        self.slot == PhaseSlot::GAP
    }
}

/// All phases in display order, the gap last.
#[derive(Clone, Debug)]
pub(in crate::store) struct Phases {
    shown: Vec<Phase>,
}

impl Phases {
    pub(in crate::store) fn new() -> Self {
        Self { shown: vec![Phase { slot: PhaseSlot::GAP, text: GAP.to_owned(), standard: None }] }
    }

    pub(in crate::store) fn shown(&self) -> &[Phase] {
        &self.shown
    }

    /// Number of slots assigned.
    pub(in crate::store) fn slots(&self) -> usize {
        self.shown.len() - 1
    }

    /// The slot of the phase with this name, assigned now if it has none.
    pub(in crate::store) fn slot(&mut self, text: &str) -> PhaseSlot {
        let text = if text == GAP { OWN_GAP } else { text };
        if let Some(phase) = self.shown.iter().find(|phase| phase.text == text) {
            return phase.slot;
        }
        let used = self.slots();
        if used >= MAX_PHASES {
            return PhaseSlot(MAX_PHASES as u8 - 1);
        }
        let slot = PhaseSlot(used as u8);
        let text = if used == MAX_PHASES - 1 { OTHER } else { text };
        let standard = STANDARD.iter().position(|name| *name == text);
        self.shown.push(Phase { slot, text: text.to_owned(), standard });
        let rank = |phase: &Phase| (phase.is_gap(), phase.standard.unwrap_or(usize::MAX), phase.slot);
        self.shown.sort_by_key(rank);
        slot
    }
}
