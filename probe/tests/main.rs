//! The probe from a program's side, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod alone;
mod device;
mod faults;
mod publishing;
mod reading;
#[cfg(feature = "tracing")]
mod tracing;
