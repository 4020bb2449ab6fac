//! The one cause that fits the evidence.

use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP, SIGXFSZ};

use super::cause::Cause;
use super::evidence::{Evidence, ProcessEnd};

/// Signals by which native code crashes.
const CRASHES: [i32; 7] = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP];

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
    let memory = evidence.memory;
    // A program may have moved to another group than the one it was started in.
    let has_kernel_killed = [memory.killed_in_group, memory.killed_on_machine].iter().flatten().any(|kills| *kills > 0);
    let loses_worker = said.exception.as_ref().is_some_and(|exception| exception.cause() == Cause::LoaderDied);
    if has_kernel_killed && (signal == Some(SIGKILL) || loses_worker) {
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
        (Some(signal), _) if CRASHES.contains(&signal) => Cause::Crash,
        (Some(_), _) => Cause::Signal,
        (None, None) => Cause::ExitCode,
    })
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

/// The signal that ended the process that failed first. A shell passes on the signal of what it ran as 128 and more.
pub(super) fn signal(evidence: &Evidence<'_>) -> Option<i32> {
    match (evidence.output.failed.as_ref().and_then(|failed| failed.code), evidence.ended) {
        (Some(code), _) => Some(-code).filter(|signal| *signal > 0),
        (None, ProcessEnd::Signal(signal)) => Some(signal),
        (None, ProcessEnd::Code(code)) => Some(code - 128).filter(|signal| (1..=31).contains(signal)),
    }
}

/// Python ends with code 1 for an exception, and launchers do for a rank. Another code was chosen by the program.
fn is_explained_by_an_exception(evidence: &Evidence<'_>) -> bool {
    evidence.output.failed.is_some()
        || matches!(evidence.ended, ProcessEnd::Code(1))
        || signal(evidence) == Some(SIGABRT)
}
