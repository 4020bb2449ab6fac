//! The pauses of Python's garbage collector on the training thread.
//!
//! The collector drops what its callbacks raise. So this is a built-in function: in one of Python's, a handler of a signal could run
//! and raise, and its exception would be lost.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use gnntop_probe::{NameKind, after};

use crate::abi::{gnntop_mark_at, gnntop_span_at};
use crate::cpython::{Object, with_python};
use crate::warning::catch_panic;
use crate::{names, training};

/// Most collections are of the young generation, and short: only noticeable ones are recorded.
const SHORT_NS: u64 = 100_000;

/// When the current collection began; 0 for none.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// `collecting(moment, info)`, one of `gc.callbacks`.
pub(crate) unsafe extern "C" fn collecting(_: Object, arguments: *const Object, count: isize) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an array of as many arguments as `count` says.
        unsafe {
            if count > 0 && training::is_here() {
                let is_begin = python.is_text(*arguments, c"start");
                catch_panic((), || if is_begin { BEGAN.store(after::ticks(), Relaxed) } else { ended() });
            }
            Some(python.nothing())
        }
    })
}

fn ended() {
    let (begin, end) = (BEGAN.swap(0, Relaxed), after::ticks());
    if begin != 0 && after::ticks_ns(end.saturating_sub(begin)) >= SHORT_NS {
        gnntop_span_at(names::register(NameKind::Phase, "gc"), begin, end);
        gnntop_mark_at(names::register(NameKind::Text, "garbage collection"), begin, end);
    }
}
