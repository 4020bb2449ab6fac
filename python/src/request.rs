//! What a person asks of this program through `gnntop trace`. The drain thread finds it; Python looks at the end of each
//! step whether there is something, and reads the text.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static IS_OPEN: AtomicBool = AtomicBool::new(false);
static TEXT: Mutex<String> = Mutex::new(String::new());

fn lock() -> MutexGuard<'static, String> {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a request, or an empty text when it was withdrawn.
pub(crate) fn note(text: &str) {
    let mut noted = lock();
    text.clone_into(&mut noted);
    // That it was withdrawn must be noticed, too: a trace may be running.
    IS_OPEN.store(true, Ordering::Relaxed);
}

/// Whether there is a request, or the end of one, that has not been dealt with.
#[inline]
pub(crate) fn is_open() -> bool {
    IS_OPEN.load(Ordering::Relaxed)
}

/// The newest request; empty without one and after it was withdrawn.
pub(crate) fn text() -> String {
    lock().clone()
}

/// The request with this text has been dealt with. A newer one stays open.
pub(crate) fn close(text: &str) {
    let noted = lock();
    if *noted == text {
        IS_OPEN.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_request_stays_open() {
        note("trace 1 5\n");
        assert!(is_open());
        note("trace 2 5\n");
        close("trace 1 5\n");
        assert!(is_open() && text() == "trace 2 5\n");
        close("trace 2 5\n");
        assert!(!is_open());
        note("trace 3 5\n");
        note("");
        assert!(is_open() && text().is_empty());
        close("");
        assert!(!is_open());
    }
}
