//! Whether anything is recorded at all: the one thing that every span looks at first.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Off under `GNNTOP=0`, before the first session, after the last, while publishing fails, and in a forked child.
static RECORDING: AtomicBool = AtomicBool::new(false);
/// Sessions running in this process; recording is on while there is one.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

#[inline]
pub(crate) fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// A session has begun.
pub(crate) fn begin_session() {
    RUNNING.fetch_add(1, Ordering::SeqCst);
    RECORDING.store(true, Ordering::Relaxed);
}

/// A session has ended; after the last nothing is recorded.
pub(crate) fn end_session() {
    if RUNNING.fetch_sub(1, Ordering::SeqCst) == 1 {
        stop_recording();
    }
}

/// Nothing is recorded from now on, until it can be published again or the next session begins.
pub(crate) fn stop_recording() {
    RECORDING.store(false, Ordering::Relaxed);
}

/// Something is recorded again.
pub(crate) fn resume_recording() {
    if RUNNING.load(Ordering::SeqCst) > 0 {
        RECORDING.store(true, Ordering::Relaxed);
    }
}

/// Whether a session runs, recorded or not.
pub(crate) fn has_session() -> bool {
    RUNNING.load(Ordering::SeqCst) > 0
}

/// In a forked child: the sessions are its parent's. Only stores to atomics, as is allowed between fork and exec.
pub(crate) fn forget_sessions() {
    stop_recording();
    RUNNING.store(0, Ordering::SeqCst);
}
