//! The `gnntop` binary: hands the command line to [`gnntop::cli`] and its exit code to the system.

use std::process::ExitCode;
use std::thread;

#[cfg(feature = "workloads")]
use gnntop_workloads::{EndsWhenRefused, TrackingAllocator};

/// Counts what the built-in trainings allocate, by phase, and ends them with a line when the system has no more memory.
#[cfg(feature = "workloads")]
#[global_allocator]
static ALLOCATOR: TrackingAllocator<EndsWhenRefused<std::alloc::System>> =
    TrackingAllocator::new(EndsWhenRefused::new(std::alloc::System));

/// The exit code of a Rust program that panicked.
const PANICKED: u8 = 101;
/// What the command line needs, in bytes. The system's limit is meant for the program that is started: it stays as it is.
const STACK: usize = 2 << 20;

fn main() -> ExitCode {
    gnntop::platform::process::ignore_min_stack();
    let run = || gnntop::cli::main(std::env::args_os());
    // Not always, since a built-in training is watched on the main thread.
    let is_small = gnntop::platform::process::main_stack_bytes().is_some_and(|limit| limit < STACK as u64);
    let own = is_small.then(|| thread::Builder::new().stack_size(STACK).spawn(run).ok()).flatten();
    // A thread that panics has said so.
    ExitCode::from(own.map_or_else(run, |own| own.join().unwrap_or(PANICKED)))
}
