//! What went wrong: the first warning or fault of this library, kept for those who ask. Nothing is ever written to the program's
//! output, and a panic does not unwind into its frames.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

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

/// Runs `f`; returns `otherwise` if it panics.
#[inline]
pub(crate) fn catch_panic<T>(otherwise: T, f: impl FnOnce() -> T) -> T {
    panic::catch_unwind(AssertUnwindSafe(f)).unwrap_or(otherwise)
}

/// From now on, panics of this library are kept as the warning that `gnntop_text` returns, and not written to stderr. The
/// hook belongs to the standard library inside this library; a Rust program has its own.
pub(crate) fn set_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if cfg!(not(test)) {
            panic::set_hook(Box::new(|fault| note(&format!("gnntop has a fault: {fault}"))));
        }
    });
}
