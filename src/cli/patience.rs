//! Work that never ends if a file system hangs: it is done on another thread, and waited for only for some seconds.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use gnntop_sessions::discover;

/// Longer than a file system takes that answers at all.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The sessions directory does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the sessions directory {0} does not answer: its file system hangs. Set GNNTOP_DIR to a directory elsewhere")]
pub(super) struct Silent(String);

/// The result of `work`; `None` if it takes longer than this. It is not ended then, and its thread stays.
pub(super) fn within<T: Send + 'static>(at_most: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = mpsc::channel();
    let work = move || {
        let _ = send.send(work());
    };
    thread::Builder::new().name("gnntop files".to_owned()).spawn(work).ok()?;
    receive.recv_timeout(at_most).ok()
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
}
