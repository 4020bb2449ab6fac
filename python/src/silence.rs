//! Contains faults of this library: they are noted, not printed into the program's output, and do not unwind into its frames.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::warning;

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
            panic::set_hook(Box::new(|fault| warning::note(&format!("gnntop has a fault: {fault}"))));
        }
    });
}
