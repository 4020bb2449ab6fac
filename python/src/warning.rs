//! The first thing that went wrong, kept for those who ask: nothing is ever written to the program's output.

use std::sync::{Mutex, MutexGuard, PoisonError};

static WARNING: Mutex<String> = Mutex::new(String::new());

fn lock() -> MutexGuard<'static, String> {
    WARNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the text, unless there already is one.
pub(crate) fn note(text: &str) {
    let mut warning = lock();
    if warning.is_empty() {
        text.clone_into(&mut warning);
    }
}

/// What went wrong; empty if nothing did.
pub(crate) fn text() -> String {
    lock().clone()
}
