//! All that is known of a program's end.

use super::kernel::MemoryFigures;
use super::output::OutputEvidence;

/// How the process ended, by what the system says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// On its own, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What the program was doing when it ended, by what it has published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastMoment {
    /// The last step that it finished.
    pub last_step: Option<u64>,
    /// The phase it was in, and the step that this belongs to.
    pub phase: Option<(String, Option<u64>)>,
    /// Where in the program it was, by the newest stack taken in that phase, and how long before the end that was, in
    /// nanoseconds.
    pub stack: Option<(String, u64)>,
    /// Memory in its last minute.
    pub memory: Option<MemoryChange>,
}

/// Memory at two times, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryChange {
    /// At the first of them.
    pub from_bytes: f64,
    /// At the last reading.
    pub to_bytes: f64,
    /// Time in between, in nanoseconds.
    pub over_ns: u64,
}

/// All that is known of a program's end.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// What the program is called.
    pub name: &'a str,
    /// How it ended.
    pub ended: ProcessEnd,
    /// The signal to end that gnntop passed on to it, if there was one.
    pub passed_on: Option<i32>,
    /// The job of Slurm's that it was a part of.
    pub slurm_job: Option<&'a str>,
    /// What its last output says.
    pub output: &'a OutputEvidence,
    /// What the kernel says of memory.
    pub memory: MemoryFigures,
    /// What it was doing.
    pub moment: LastMoment,
}
