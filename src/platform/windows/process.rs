//! This process, and one that is started beside it.

use std::process::{Child, Command};
use std::time::Duration;

/// The most bytes that the stack of the main thread may take: what linkers give it.
pub fn main_stack_bytes() -> Option<u64> {
    Some(1 << 20)
}

/// Whatever `RUST_MIN_STACK` says stays: no program is started here that it could be meant for.
pub fn ignore_min_stack() {}

/// CPU time of this process so far: not asked.
pub fn cpu_time() -> Option<Duration> {
    None
}

/// Resident memory of this process: not asked.
pub fn rss_bytes() -> Option<u64> {
    None
}

/// Columns of the terminal that is standard output: not asked, so that nothing is cut to them.
pub fn terminal_columns() -> Option<usize> {
    None
}

/// No process is stopped here.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command
}

/// Ends a child.
pub fn interrupt(child: &mut Child) {
    // Whatever fails: it keeps running.
    let _ = child.kill();
}
