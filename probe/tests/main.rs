//! The probe from a program's side, in one binary. Recording is a state of the process: tests that record take their turn.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

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

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test records; the turn ends when this is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
