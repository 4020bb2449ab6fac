//! Recording is a state of the process: tests that record take their turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test records; the turn ends when this is dropped.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
