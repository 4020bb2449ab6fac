//! The probe from a program's side, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod alone;
mod device;
mod faults;
#[cfg(unix)]
mod fork;
mod program;
mod publishing;
mod reading;
mod reentrant;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(feature = "tracing")]
mod tracing;
