//! The first thing that went wrong, kept for whoever asks: nothing of it is ever written into the program's output.

use std::sync::{Mutex, MutexGuard, PoisonError};

static WARNING: Mutex<String> = Mutex::new(String::new());

fn lock() -> MutexGuard<'static, String> {
    WARNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps it, unless there is one already.
pub(crate) fn note(text: &str) {
    let mut warning = lock();
    if warning.is_empty() {
        text.clone_into(&mut warning);
    }
}

/// What went wrong; empty where all is well.
pub(crate) fn text() -> String {
    lock().clone()
}
