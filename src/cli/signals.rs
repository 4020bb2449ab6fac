//! Signals outside the screen: noted in a flag, which the running loop checks.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::Arc;
#[cfg(feature = "workloads")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::low_level::unregister;

/// Notes the signals that ask a program to end, for as long as this lives; they have no other effect.
pub(super) struct Interruption {
    signal: Arc<AtomicUsize>,
    handlers: Vec<SigId>,
}

impl Interruption {
    /// Starts noting SIGINT, SIGTERM and SIGHUP; those that are ignored stay ignored, as `nohup` requires.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(super) fn catch() -> io::Result<Self> {
        Self::catch_these(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// The same without SIGHUP, which is ignored: the terminal may close.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(super) fn catch_but_hangup() -> io::Result<Self> {
        let mut caught = Self::catch_these(&[SIGINT, SIGTERM])?;
        // A handler and not `SIG_IGN`, which child processes would inherit.
        for signal in without_ignored([SIGHUP]) {
            caught.handlers.push(signal_hook::flag::register(signal, Arc::default())?);
        }
        Ok(caught)
    }

    fn catch_these(signals: &[i32]) -> io::Result<Self> {
        let mut caught = Self { signal: Arc::default(), handlers: Vec::new() };
        for signal in without_ignored(signals.iter().copied()) {
            let noted = usize::try_from(signal).unwrap_or_default();
            caught.handlers.push(signal_hook::flag::register_usize(signal, Arc::clone(&caught.signal), noted)?);
        }
        Ok(caught)
    }

    /// The signal that arrived since the last call, if any.
    pub(super) fn take(&self) -> Option<i32> {
        let signal = i32::try_from(self.signal.swap(0, Ordering::Relaxed)).unwrap_or_default();
        (signal != 0).then_some(signal)
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            unregister(handler);
        }
    }
}

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
    everywhere.into_iter().chain(passed_on_here())
}

#[cfg(target_os = "linux")]
fn passed_on_here() -> impl Iterator<Item = i32> {
    [libc::SIGPWR].into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

#[cfg(not(target_os = "linux"))]
fn passed_on_here() -> impl Iterator<Item = i32> {
    std::iter::empty()
}

/// From now on, writing past the limit on a file's size is an error and not a signal. Programs that we start do not inherit that.
pub(super) fn refuse_past_file_limit() {
    for signal in without_ignored([SIGXFSZ]) {
        // Without a handler, which no system refuses for this signal, it ends us.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
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

/// The ones among these signals that the parent process did not set to be ignored: `nohup` does so with SIGHUP, a shell
/// with SIGINT for background processes, and a handler would undo it.
pub(super) fn without_ignored(signals: impl IntoIterator<Item = i32>) -> impl Iterator<Item = i32> {
    signals.into_iter().filter(|signal| !is_ignored(*signal))
}

fn is_ignored(signal: i32) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only writes the present one, to a valid place, and it is read only where the
    // call says that it wrote it.
    unsafe {
        libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) == 0 && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The exit code of a program that a signal ended.
pub(super) fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(255)
}
