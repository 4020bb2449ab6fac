//! This process, and one that is started beside it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use gnntop_sessions::Limit;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

/// The most bytes that the stack of the main thread may take; `None` without a limit.
pub fn main_stack_bytes() -> Option<u64> {
    Limit::Stack.current()
}

/// Gives all threads of this process stacks of the usual size, whatever `RUST_MIN_STACK` says: that is meant for the program that is
/// started, which gets it. To be called before any other thread is started.
pub fn ignore_min_stack() {
    const VARIABLE: &str = "RUST_MIN_STACK";
    let Some(given) = std::env::var_os(VARIABLE) else { return };
    // SAFETY: no other thread exists yet that could read the environment.
    unsafe { std::env::remove_var(VARIABLE) };
    // The standard library reads the variable once, when a first thread is started without a size.
    let _ = thread::Builder::new().spawn(|| ()).map(thread::JoinHandle::join);
    // SAFETY: that thread has ended, or was never started.
    unsafe { std::env::set_var(VARIABLE, given) };
}

/// CPU time of this process so far.
pub fn cpu_time() -> Option<Duration> {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()
}

/// Resident memory of this process; `None` where there is no `/proc`.
pub fn rss_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Columns of the terminal that is standard output; `None` if it is not a terminal.
pub fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Has a command run in a process group of its own, so that it keeps running while this one is stopped.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Asks a child that has not been waited for to end.
pub fn interrupt(child: &mut Child) {
    // It still has its own process id. Whatever fails: it keeps running.
    let _ = kill_process(Pid::from_child(child), Signal::INT);
}
