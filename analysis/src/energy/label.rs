//! How an energy figure was found, best first.

use serde::{Serialize, Serializer};

/// How an energy figure was found. A figure made of several has the worst of their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// The difference of a counter's readings, over a time much longer than the interval between them.
    Measured,
    /// A counter interpolated between its readings, or measured power integrated over time.
    Interpolated,
    /// Power by phase, fitted to a counter.
    Fitted,
    /// Computed from a load and an assumed power: see its band.
    Modelled,
}

impl Label {
    /// The word for screens and reports: `measured`, `measured~`, `fitted` or `modelled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Interpolated => "measured~",
            Self::Fitted => "fitted",
            Self::Modelled => "modelled",
        }
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
