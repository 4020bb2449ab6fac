//! The sensors on simulated machines, in one binary.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod diagnose;
mod fake_nvml;
mod fake_proc;
mod four_machines;
mod linux;
mod no_allocation;
mod nvidia;
