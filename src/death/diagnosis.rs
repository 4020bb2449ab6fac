//! All that is known of a program's end, as plain data, and the one cause that fits it.

use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ};

use super::exception::Cause;
use super::kernel::MemoryFigures;
use super::last_state::CpuFigures;
use super::output::OutputEvidence;

/// Signals by which native code crashes.
const CRASHES: [i32; 6] = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP];

/// The cause; `None` where the program ended well.
pub(super) fn diagnose(evidence: &Evidence<'_>) -> Option<Cause> {
    let said = evidence.output;
    let (code, signal) = (code(evidence), signal(evidence));
    if code == Some(0) && signal.is_none() {
        return None;
    }
    if let Some(line) = &said.slurm {
        let is_memory = line.contains("oom_kill") || line.contains("memory limit");
        return Some(if is_memory { Cause::OutOfMemory } else { Cause::JobEnded });
    }
    if evidence.passed_on.is_some() {
        return Some(if evidence.slurm_job.is_some() { Cause::JobEnded } else { Cause::Asked });
    }
    if reached_cpu_limit(evidence) {
        return Some(Cause::CpuLimit);
    }
    let memory = evidence.memory;
    let of_child = signal_of_child(evidence);
    // A program may have moved to another group than the one it was started in.
    let has_kernel_killed = [memory.killed_in_group, memory.killed_on_machine].iter().flatten().any(|kills| *kills > 0);
    let loses_worker = said.exception.as_ref().is_some_and(|exception| exception.cause() == Cause::LoaderDied);
    if has_kernel_killed && (signal.or(of_child) == Some(SIGKILL) || loses_worker) {
        return Some(Cause::OutOfMemory);
    }
    if let Some((cause, _)) = &said.last_words {
        return Some(*cause);
    }
    let exception = said.exception.as_ref().filter(|_| is_explained_by_an_exception(evidence));
    Some(match (signal, exception) {
        (None | Some(SIGABRT), Some(exception)) => exception.cause(),
        (Some(SIGKILL), _) => Cause::Killed,
        (Some(SIGXFSZ), _) => Cause::FileLimit,
        (Some(SIGSYS), _) => Cause::SystemCallFilter,
        (Some(signal), _) if CRASHES.contains(&signal) => Cause::Crash,
        (Some(_), _) => Cause::Signal,
        // Python's fault handler says the same as the shell.
        (None, None) if said.crashed_in.is_some() && of_child.is_some_and(|signal| CRASHES.contains(&signal)) => {
            Cause::Crash
        }
        (None, None) => Cause::ExitCode,
    })
}

/// Whether the program, or by the word of a shell one that it ran, was ended for its CPU time.
fn reached_cpu_limit(evidence: &Evidence<'_>) -> bool {
    match signal(evidence).or_else(|| signal_of_child(evidence)) {
        // The first of the two limits is announced by this signal, and the second one enforced by the other.
        Some(SIGXCPU) => evidence.cpu.has_reached(evidence.cpu.soft_limit_s),
        Some(SIGKILL) => evidence.cpu.has_reached(evidence.cpu.hard_limit_s),
        _ => false,
    }
}

/// The exit code of the process that failed first, where it ended itself.
pub(super) fn code(evidence: &Evidence<'_>) -> Option<i32> {
    let of_failed =
        evidence.output.failed.as_ref().and_then(|failed| failed.code).map(|code| Some(code).filter(|c| *c >= 0));
    of_failed.unwrap_or(match evidence.ended {
        ProcessEnd::Code(code) => Some(code),
        ProcessEnd::Signal(_) => None,
    })
}

/// The signal that ended the process that failed first. A program may choose any exit code, so that none means a signal.
pub(super) fn signal(evidence: &Evidence<'_>) -> Option<i32> {
    match (evidence.output.failed.as_ref().and_then(|failed| failed.code), evidence.ended) {
        (Some(code), _) => Some(-code).filter(|signal| *signal > 0),
        (None, ProcessEnd::Signal(signal)) => Some(signal),
        (None, ProcessEnd::Code(_)) => None,
    }
}

/// The signal that may have ended what a shell ran last, which the shell then passes on as 128 and more.
pub(super) fn signal_of_child(evidence: &Evidence<'_>) -> Option<i32> {
    match (evidence.output.failed.as_ref().and_then(|failed| failed.code), evidence.ended) {
        (None, ProcessEnd::Code(code)) if evidence.is_shell => Some(code - 128).filter(|of| (1..=31).contains(of)),
        _ => None,
    }
}

/// Python ends with code 1 for an exception, and launchers do for a rank. Another code was chosen by the program.
fn is_explained_by_an_exception(evidence: &Evidence<'_>) -> bool {
    evidence.output.failed.is_some()
        || matches!(evidence.ended, ProcessEnd::Code(1))
        || signal(evidence).or_else(|| signal_of_child(evidence)) == Some(SIGABRT)
}

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
    /// How long before its end it published for the last time, in nanoseconds, if that is long: as when nothing could be written
    /// any more.
    pub silent_ns: Option<u64>,
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
    /// Whether it was a shell, whose exit code may tell of a signal that ended another program.
    pub is_shell: bool,
    /// The signal to end that gnntop passed on to it, if there was one.
    pub passed_on: Option<i32>,
    /// The job of Slurm's that it was a part of.
    pub slurm_job: Option<&'a str>,
    /// What its last output says.
    pub output: &'a OutputEvidence,
    /// What the kernel says of memory.
    pub memory: MemoryFigures,
    /// Its CPU time.
    pub cpu: CpuFigures,
    /// What it was doing.
    pub moment: LastMoment,
}
