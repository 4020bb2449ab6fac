//! The files of a session's directory: its segments, and whether their publisher is still alive.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gnntop_sessions::{Publisher, SessionDir, layout};

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

/// What the session in `dir` shows about its publisher.
pub(super) fn publisher(dir: &Path) -> Publisher {
    SessionDir::open(dir).map(|session| session.publisher()).unwrap_or_default()
}

/// Whether the publisher of the session in `dir` is alive: it keeps a lock on the `live` file.
pub(super) fn is_alive(dir: &Path) -> bool {
    publisher(dir).alive
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
