//! What a name is used for. No meaning depends on the text of a name.

use crate::ids::NameId;
use crate::reported::Reported;

/// What a name is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameKind {
    /// Any text: marks, reasons, frames.
    #[default]
    Text,
    /// A span that may nest anywhere.
    Span,
    /// A span that tiles a step.
    Phase,
    /// A counter.
    Counter,
    /// A stack of those that are read many times a second. The text is its innermost frame, and this is the stack without
    /// that frame: a name of the same kind, defined earlier, or [`NameId::NONE`] for the outermost frame, a phase.
    Path(NameId),
    /// A number about the reading of stacks.
    Sampling(Sampling),
    /// A span, counter or mark that says something that readers know.
    Reported(Reported),
}

impl NameKind {
    /// The kinds that refer to nothing, by their numbers.
    pub const PLAIN: [Self; 4] = [Self::Text, Self::Span, Self::Phase, Self::Counter];

    /// The kind as a number: its code in the lowest byte, and above that what it refers to.
    pub fn bits(self) -> u64 {
        let (code, of) = match self {
            Self::Text => (0, 0),
            Self::Span => (1, 0),
            Self::Phase => (2, 0),
            Self::Counter => (3, 0),
            Self::Path(caller) => (4, u64::from(caller.0)),
            Self::Sampling(figure) => (5, figure as u64),
            Self::Reported(what) => (6, what.bits()),
        };
        of << 8 | code
    }

    /// The kind with this number; [`Self::Text`] for kinds of newer versions, of which nothing else is known.
    pub fn from_bits(bits: u64) -> Self {
        let of = bits >> 8;
        match bits & 0xFF {
            1 => Self::Span,
            2 => Self::Phase,
            3 => Self::Counter,
            4 => u32::try_from(of).map_or(Self::Text, |caller| Self::Path(NameId(caller))),
            5 => {
                let figure = usize::try_from(of).ok().and_then(|at| Sampling::ALL.get(at));
                figure.map_or(Self::Text, |figure| Self::Sampling(*figure))
            }
            6 => Reported::from_bits(of).map_or(Self::Text, Self::Reported),
            _ => Self::Text,
        }
    }

    /// The one of [`Self::PLAIN`] for a name that stands for many, where there is no room for each.
    pub fn plain(self) -> Self {
        match self {
            Self::Reported(what) if what.is_span() => Self::Span,
            Self::Reported(_) => Self::Counter,
            Self::Path(_) | Self::Sampling(_) => Self::Text,
            plain => plain,
        }
    }

    /// What it reports, if readers know that.
    pub fn reported(self) -> Option<Reported> {
        match self {
            Self::Reported(what) => Some(what),
            _ => None,
        }
    }
}

/// A number about the stacks that are read many times a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Sampling {
    /// Samples taken.
    Taken = 0,
    /// Samples that could not be read.
    Unread = 1,
    /// CPU time spent on taking samples, in microseconds.
    CostUs = 2,
    /// Samples taken a second.
    Rate = 3,
    /// Samples in which the thread waited for the interpreter lock of its language.
    Held = 4,
}

impl Sampling {
    /// Most samples a second.
    pub const MAX_PER_SECOND: u32 = 200;
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Taken, Self::Unread, Self::CostUs, Self::Rate, Self::Held];
    /// Before the place of the thread that holds the lock, in the innermost frame of a stack that waits for it.
    pub const HELD_IN: &str = "GIL held in ";

    /// Its name, for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Taken => "stacks sampled",
            Self::Unread => "stacks not read",
            Self::CostUs => "stacks' processor time (us)",
            Self::Rate => "stacks a second",
            Self::Held => "stacks that wait for the GIL",
        }
    }
}
