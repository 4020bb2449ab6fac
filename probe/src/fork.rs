//! What a forked child has of its parent's sessions: nothing. It has the memory of a publishing program and none of its
//! threads, so what it recorded would only fill its copy of the rings. It may start a session of its own.

use std::cell::RefCell;
use std::sync::Once;

use crate::live_lock;
use crate::names::{self, HeldNames};
use crate::publisher::{self, HeldLatest};
use crate::switch;

thread_local! {
    /// Locks that are held across a fork by the thread that forks.
    static HELD: RefCell<Option<(HeldNames, HeldLatest)>> = const { RefCell::new(None) };
}

/// Has every child that is forked from now on leave the sessions of its parent alone.
pub(crate) fn leave_sessions_to_the_parent() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers neither unwind nor run the program's code, and what the one for the child does is allowed
        // between fork and exec: it stores to atomics, closes files and gives back locks that its own thread holds.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// A lock that another thread held during the fork would be held in the child for ever.
extern "C" fn before() {
    // While a thread ends it may have no such place any more: then it forks without.
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some((names::hold(), publisher::hold_latest())));
}

extern "C" fn in_parent() {
    let _ = HELD.try_with(|held| held.borrow_mut().take());
}

extern "C" fn in_child() {
    switch::forget_sessions();
    live_lock::close_all();
    let _ = HELD.try_with(|held| held.borrow_mut().take());
}
