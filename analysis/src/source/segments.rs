//! The files of a session's directory: its segments, and whether their publisher is still alive.

use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gnntop_wire::{LOCK_FILE_LEN, Stopped, layout};

use super::trusted;

/// The numbers of the segments in `dir`, ascending.
pub(super) fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir)? {
        numbers.extend(entry?.file_name().to_str().and_then(layout::segment_number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The path of a segment.
pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(layout::segment_file_name(number))
}

/// What the `live` file in a session's directory shows about its publisher.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    /// Whether it lives.
    pub(super) alive: bool,
    /// Since when it cannot write its stream, if it reports that.
    pub(super) stopped: Option<Stopped>,
}

impl Publisher {
    /// Checks the session in `dir`. Without the file, or if it cannot be opened, there is no publisher.
    pub(super) fn of(dir: &Path) -> Self {
        let Ok(file) = trusted::open(&dir.join(layout::LOCK_FILE)) else { return Self::default() };
        // A lock taken here is released when `file` closes, at once.
        let alive = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let mut said = [0; LOCK_FILE_LEN];
        let len = file.read_at(&mut said, 0).unwrap_or(0);
        Self { alive, stopped: Stopped::of_lock_file(&said[..len]) }
    }
}

/// Whether the publisher of the session in `dir` is alive: it keeps a lock on the `live` file.
pub(super) fn is_alive(dir: &Path) -> bool {
    Publisher::of(dir).alive
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn segments_are_listed_in_order_and_others_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["00000010.gnntop", "00000002.gnntop", "live", "notes.txt", "2.gnntop"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(numbers(dir.path()).unwrap(), [2, 10]);
    }

    #[test]
    fn a_publisher_lives_as_long_as_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_alive(dir.path()));
        let lock = File::create(dir.path().join(layout::LOCK_FILE)).unwrap();
        assert!(!is_alive(dir.path()));
        lock.lock().unwrap();
        assert!(is_alive(dir.path()));
        assert!(is_alive(dir.path()), "looking does not take the lock away");
        drop(lock);
        assert!(!is_alive(dir.path()));
    }
}
