//! What share of the machine a process may use.

/// The share of the machine that a process may use. `None` means "no limit, or none that can be read".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessLimits {
    /// How many hardware threads its CPU mask allows.
    pub allowed_cpus: Option<u32>,
    /// CPU quota of its control group, in thousandths of a core.
    pub cpu_millicores: Option<i64>,
    /// Memory limit of its control group, in bytes.
    pub memory_bytes: Option<i64>,
}
