//! The probe from a program's side, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod alone;
mod device;
mod faults;
mod fork;
mod program;
mod publishing;
mod reading;
mod reentrant;
mod signals;
#[cfg(feature = "tracing")]
mod tracing;
