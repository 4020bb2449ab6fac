//! The `gnntop` binary: hands the command line to [`gnntop::cli`] and its exit code to the system.

use std::process::ExitCode;

#[cfg(feature = "workloads")]
use gnntop_workloads::{EndsWhenRefused, TrackingAllocator};

/// Counts what the built-in trainings allocate, by phase, and ends them with a line when the system has no more memory.
#[cfg(feature = "workloads")]
#[global_allocator]
static ALLOCATOR: TrackingAllocator<EndsWhenRefused<std::alloc::System>> =
    TrackingAllocator::new(EndsWhenRefused::new(std::alloc::System));

fn main() -> ExitCode {
    ExitCode::from(gnntop::cli::main(std::env::args_os()))
}
