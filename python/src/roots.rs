//! The root modules of the training, whose calls are forward passes. They are known by their place in memory while they live: nothing
//! is added to a module, and none is kept alive.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use crate::cpython::{METH_O, Object, PyMethodDef, Python, method, with_python};

/// Most roots at a time.
const MOST: usize = 64;

/// What was a root: the address of no object.
const NONE: Object = std::ptr::without_provenance_mut(1);

static ROOTS: [AtomicPtr<c_void>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];
/// The places of those that nothing trains, a bit each.
static FROZEN: AtomicU64 = AtomicU64::new(0);
/// The places that were ever taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static GONE: PyMethodDef = method(c"root_gone", gone as *const (), METH_O);

/// Whether this is a root; NULL is none.
#[inline]
pub(crate) fn contains(module: Object) -> bool {
    let taken = TAKEN.load(Acquire).min(MOST);
    !module.is_null() && ROOTS[..taken].iter().any(|root| root.load(Relaxed) == module)
}

/// Whether this is a root that nothing trains.
#[inline]
pub(crate) fn is_frozen(module: Object) -> bool {
    let frozen = FROZEN.load(Relaxed);
    frozen != 0 && ROOTS.iter().position(|root| root.load(Relaxed) == module).is_some_and(|at| frozen & (1 << at) != 0)
}

/// Makes a module a root while it lives, which something trains or not; returns whether it has become one now.
///
/// # Safety
/// As for [`Python::small`].
pub(crate) unsafe fn add(python: &Python, module: Object, is_frozen: bool) -> bool {
    if let Some(place) = ROOTS.iter().position(|root| root.load(Relaxed) == module) {
        if !is_frozen {
            FROZEN.fetch_and(!(1 << place), Relaxed);
        }
        return false;
    }
    let take = |root: &AtomicPtr<c_void>| root.compare_exchange(null_mut(), module, AcqRel, Relaxed).is_ok();
    let Some(place) = ROOTS.iter().position(take) else { return false };
    let bit = 1 << place;
    if is_frozen {
        FROZEN.fetch_or(bit, Relaxed)
    } else {
        FROZEN.fetch_and(!bit, Relaxed)
    };
    TAKEN.fetch_max(place + 1, AcqRel);
    // SAFETY: guaranteed by the caller.
    let will_be_known = unsafe { python.when_gone(module, &GONE, place as i32) };
    if !will_be_known {
        ROOTS[place].store(null_mut(), Release);
    }
    will_be_known
}

/// A module is no root any more. Its place is taken until it is gone: only then is its callback.
pub(crate) fn remove(module: Object) {
    let taken = TAKEN.load(Acquire).min(MOST);
    for root in &ROOTS[..taken] {
        let _ = root.compare_exchange(module, NONE, AcqRel, Relaxed);
    }
}

/// A root is gone, and its place in memory may become that of another object.
unsafe extern "C" fn gone(place: Object, reference: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with the number that it was made with, and the reference that was kept.
        unsafe {
            if let Some(root) = python.small(place).and_then(|place| ROOTS.get(place as usize)) {
                root.store(null_mut(), Release);
            }
            (python.release)(reference);
            Some(python.nothing())
        }
    })
}
