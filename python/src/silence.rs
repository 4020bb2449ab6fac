//! A fault of ours stays ours: it is noted, not printed into the program's output, and does not unwind into its frames.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::warning;

/// Runs `f`; gives `otherwise` where it panics.
#[inline]
pub(crate) fn guarded<T>(otherwise: T, f: impl FnOnce() -> T) -> T {
    panic::catch_unwind(AssertUnwindSafe(f)).unwrap_or(otherwise)
}

/// From here on a panic of this library's is kept as the warning that `gnntop_text` tells, and not written to stderr. The
/// hook is that of the standard library inside this library: a program's own, in Rust too, is another.
pub(crate) fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if cfg!(not(test)) {
            panic::set_hook(Box::new(|fault| warning::note(&format!("gnntop has a fault: {fault}"))));
        }
    });
}
