//! A temporary folder that its process holds locked for as long as it lives, so that another one can remove what a killed one has
//! left. A process id would not do: another PID namespace, such as a container's, has others.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gnntop_sessions::user_id;
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

/// The file in it that is locked.
pub const LOCK: &str = "lock";

/// A folder of this process, which goes with this.
#[derive(Debug)]
pub struct LockedDir {
    dir: TempDir,
    /// `None` where files cannot be locked: after a kill, the folder stays.
    _lock: Option<File>,
}

impl LockedDir {
    /// Makes one in `folder`; its name begins with `prefix`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(folder: &Path, prefix: &str) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(prefix).tempdir_in(folder)?;
        // The file has its name only once it is locked.
        let unlocked = dir.path().join("new");
        let lock = File::create_new(&unlocked)?;
        let lock = lock.try_lock().is_ok().then_some(lock);
        match lock {
            Some(_) => fs::rename(unlocked, dir.path().join(LOCK))?,
            None => fs::remove_file(unlocked)?,
        }
        Ok(Self { dir, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// This user's folders with this prefix in `folder` whose processes are gone.
pub fn abandoned(folder: &Path, prefix: &'static str) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(move |entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.map(|entry| entry.path()).filter(|path| is_abandoned(path))
}

/// Whether nobody holds the lock. Links are not followed, and a folder without a lock is nobody's to remove.
fn is_abandoned(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let is_own = |file: &File| file.metadata().is_ok_and(|found| found.uid() == user_id());
    let dir = rustix::fs::open(path, flags | OFlags::DIRECTORY, Mode::empty()).map(File::from);
    let Some(dir) = dir.ok().filter(is_own) else { return false };
    let lock = rustix::fs::openat(&dir, LOCK, flags, Mode::empty()).map(File::from);
    lock.is_ok_and(|lock| is_own(&lock) && lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_a_killed_process_has_left_is_known_and_nothing_else() {
        let temporary = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let dir = temporary.path().join(name);
            fs::create_dir_all(dir.join("sessions/a")).unwrap();
            fs::write(dir.join(LOCK), "").unwrap();
            dir
        };
        let (left, other) = (make("a-left"), make("b-other"));
        fs::create_dir(temporary.path().join("a-without")).unwrap();
        let linked = temporary.path().join("a-linked");
        symlink(&other, temporary.path().join("a-link")).unwrap();
        fs::create_dir(&linked).unwrap();
        symlink(other.join(LOCK), linked.join(LOCK)).unwrap();
        let used = LockedDir::create(temporary.path(), "a-").unwrap();
        assert!(used.path().join(LOCK).exists());
        assert_eq!(abandoned(temporary.path(), "a-").collect::<Vec<_>>(), [left]);
    }
}
