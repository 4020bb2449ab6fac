//! Work that never ends if a file system hangs: it is done on another thread, and waited for only for some seconds.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use gnntop_sessions::discover;

/// Longer than a file system takes that answers at all.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The sessions directory does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the sessions directory {0} does not answer: its file system hangs. Set GNNTOP_DIR to a directory elsewhere")]
pub(super) struct Silent(String);

/// The result of `work`; `None` if it takes longer than this. It is not ended then, and its thread stays. If the system has
/// no thread to give, the work is done on this one, for as long as it takes.
pub(super) fn within<T: Send + 'static>(at_most: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    within_on(thread::Builder::new().name("gnntop files".to_owned()), at_most, work)
}

fn within_on<T, W>(thread: thread::Builder, at_most: Duration, work: W) -> Option<T>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    let result = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&result);
    let work = Box::new(move || {
        let done = work();
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    });
    run_within(thread, at_most, work);
    result.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Waits this long for the work to be done on a thread. Apart from what it gives: for each type there would be a thread and two
/// channels of its own in the program.
fn run_within(thread: thread::Builder, at_most: Duration, work: Box<dyn FnOnce() + Send>) {
    let ((hand_over, handed_over), (send, receive)) = (mpsc::channel::<Box<dyn FnOnce() + Send>>(), mpsc::channel());
    let run = move || {
        if let Ok(work) = handed_over.recv() {
            work();
            let _ = send.send(());
        }
    };
    match thread.spawn(run) {
        // Whether it was done, its result says.
        Ok(_) => _ = hand_over.send(work).is_ok().then(|| receive.recv_timeout(at_most)),
        Err(_) => work(),
    }
}

/// Looks whether the directory of all sessions answers at all. What else is wrong with it, its users report.
///
/// # Errors
/// If it does not.
pub(super) fn check_answers(sessions_dir: &Path) -> Result<(), Silent> {
    let dir = sessions_dir.to_owned();
    let answer = within(PATIENCE, move || {
        let _ = discover::open(&dir).map(|dir| dir.map(|dir| dir.names()));
    });
    answer.ok_or_else(|| Silent(sessions_dir.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_waited_for_only_so_long() {
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        let (_stays, never) = mpsc::channel::<()>();
        assert_eq!(within(Duration::from_millis(1), move || never.recv()), None);
    }

    #[test]
    fn work_is_done_here_if_no_thread_can_be_started() {
        let refused = thread::Builder::new().stack_size(usize::MAX / 4);
        assert_eq!(within_on(refused, Duration::from_millis(1), || 7), Some(7));
    }
}
