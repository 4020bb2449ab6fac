//! A forked child leaves its parent's sessions alone. It has the memory of a publishing program but none of its threads, so
//! its records would only fill its copy of the rings. It may start its own session.

use std::cell::RefCell;
use std::sync::Once;

use crate::names::{self, NamesLock};
use crate::publisher::{self, LatestLock};
use crate::switch;

thread_local! {
    /// Locks that the forking thread holds across a fork.
    static HELD: RefCell<Option<(NamesLock, LatestLock)>> = const { RefCell::new(None) };
}

/// Makes every child forked from now on leave its parent's sessions alone.
pub(crate) fn register_fork_handlers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers neither unwind nor run the program's code. The child's handler only does what is allowed
        // between fork and exec: it stores to atomics and releases locks that its own thread holds.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
    });
}

/// Takes the locks: one that another thread held during the fork would stay locked in the child forever.
extern "C" fn before_fork() {
    // A thread that is ending may have lost its thread-locals: it then forks without the locks.
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some((names::lock_names(), publisher::lock_latest())));
}

extern "C" fn after_fork_in_parent() {
    let _ = HELD.try_with(|held| held.borrow_mut().take());
}

extern "C" fn after_fork_in_child() {
    switch::forget_sessions();
    let _ = HELD.try_with(|held| held.borrow_mut().take());
}
