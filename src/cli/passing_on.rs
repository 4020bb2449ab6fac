//! Signals of programs that are started: which are passed on to them, and what they begin with.

#[cfg(feature = "workloads")]
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
#[cfg(feature = "workloads")]
use std::sync::atomic::{AtomicU64, Ordering};

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
};

#[cfg(feature = "workloads")]
use super::signals::{exit_code, without_ignored};
use crate::platform::signals::is_ignored;

/// From now on ends the process at once when one of these signals arrives again: the first one asks for an orderly end,
/// which a program that hangs never reaches. One that arrives right after the first is the same one on another way:
/// Slurm sends to each process of a step, and `gnntop run` passes it on.
///
/// # Errors
/// When the system refuses a handler.
#[cfg(feature = "workloads")]
pub(super) fn exit_on_second() -> io::Result<()> {
    for signal in without_ignored([SIGINT, SIGTERM, SIGHUP]) {
        let first_ns = AtomicU64::new(0);
        let handler = move || {
            let now_ns = monotonic_ns();
            let first = first_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
            if first.is_err_and(|first_ns| now_ns.saturating_sub(first_ns) >= SAME_WITHIN_NS) {
                signal_hook::low_level::exit(i32::from(exit_code(signal)));
            }
        };
        // SAFETY: the handler reads a clock, changes an atomic and ends the process, all of which a handler may do.
        unsafe { signal_hook::low_level::register(signal, handler) }?;
    }
    Ok(())
}

/// A signal that arrives on two ways does so within this time.
#[cfg(feature = "workloads")]
const SAME_WITHIN_NS: u64 = 200_000_000;

/// The time of `CLOCK_MONOTONIC`, as a signal handler may ask for it.
#[cfg(feature = "workloads")]
fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a valid place, and does so in a signal handler too.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // The clock is above 0, and so are its parts.
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Signals that somebody may send to us and means the program: all that would end us, without those of faults.
pub(super) fn passed_on() -> impl Iterator<Item = i32> {
    let everywhere = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO];
    everywhere.into_iter().chain([libc::SIGPWR]).chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

/// Has the exit codes of children kept for us, also where the parent process set SIGCHLD to be ignored; returns whether it did.
pub(super) fn keep_exit_codes() -> bool {
    let was_ignored = is_ignored(libc::SIGCHLD);
    if was_ignored {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    was_ignored
}

/// Has a child begin with SIGCHLD ignored.
pub(super) fn ignore_exit_codes(command: &mut Command) {
    let ignore = || {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure makes one system call, which is allowed between fork and exec.
    unsafe { command.pre_exec(ignore) };
}

/// Has a child asked to end when the thread that starts it is gone, however that comes.
pub(super) fn end_with_parent(command: &mut Command) {
    let ask = || {
        // SAFETY: the call takes a number and touches no memory of ours.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, SIGTERM) };
        Ok(())
    };
    // SAFETY: the closure makes one system call, which is allowed between fork and exec.
    unsafe { command.pre_exec(ask) };
}
