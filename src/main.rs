//! The `gnntop` binary: hands the command line to [`gnntop::cli`] and its exit code to the system.

use std::process::ExitCode;

/// Counts what the built-in trainings allocate, by phase.
#[cfg(feature = "workloads")]
#[global_allocator]
static ALLOCATOR: gnntop_workloads::TrackingAllocator<std::alloc::System> =
    gnntop_workloads::TrackingAllocator::new(std::alloc::System);

fn main() -> ExitCode {
    ExitCode::from(gnntop::cli::main(std::env::args_os()))
}
