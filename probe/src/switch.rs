//! Whether anything is recorded: the first thing that every span checks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Off under `GNNTOP=0`, before the first session, after the last, while publishing fails, and in a forked child.
static RECORDING: AtomicBool = AtomicBool::new(false);
/// Sessions running in this process; recording is on while there is one.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

#[inline]
pub(crate) fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Begins a session.
pub(crate) fn begin_session() {
    RUNNING.fetch_add(1, Ordering::SeqCst);
    RECORDING.store(true, Ordering::Relaxed);
}

/// Ends a session. After the last one, nothing is recorded.
pub(crate) fn end_session() {
    if RUNNING.fetch_sub(1, Ordering::SeqCst) == 1 {
        stop_recording();
    }
}

/// Turns recording off until publishing is possible again or the next session begins.
pub(crate) fn stop_recording() {
    RECORDING.store(false, Ordering::Relaxed);
}

/// Turns recording on again.
pub(crate) fn resume_recording() {
    if RUNNING.load(Ordering::SeqCst) > 0 {
        RECORDING.store(true, Ordering::Relaxed);
    }
}

/// Whether a session is running, even if it is not being recorded.
pub(crate) fn has_session() -> bool {
    RUNNING.load(Ordering::SeqCst) > 0
}

/// In a forked child: forgets the parent's sessions. Only stores to atomics, as is allowed between fork and exec.
pub(crate) fn forget_sessions() {
    stop_recording();
    RUNNING.store(0, Ordering::SeqCst);
}
