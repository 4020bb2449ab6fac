//! The doctor's diagnosis of a component.

/// What the doctor found about one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The component, such as `process`, `pressure` or `NVIDIA GPU`.
    pub component: &'static str,
    /// How much of it can be read.
    pub state: DiagnosisState,
    /// The findings, as text.
    pub detail: String,
    /// What a person can do about it, if anything.
    pub remedy: Option<String>,
}

/// How much of a component can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosisState {
    /// All of it.
    Readable,
    /// Some of its signals.
    Partial,
    /// It exists, but this user or container may not read it.
    Refused,
    /// The machine does not have it.
    Missing,
}

impl DiagnosisState {
    /// The word for tables and machine-readable output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Readable => "readable",
            Self::Partial => "partial",
            Self::Refused => "refused",
            Self::Missing => "missing",
        }
    }
}
