//! The directory of all sessions, and the ended sessions in it.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::SystemTime;

use gnntop_wire::layout;
use rustix::fs::{CWD, Dir, FileType};

use crate::content::Content;
use crate::doubt::Doubt;
use crate::place::{open_dir, ours};

/// The directory of all sessions.
#[derive(Debug)]
pub struct Sessions {
    dir: OwnedFd,
    now: SystemTime,
}

/// A session without a visible publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The name of its directory.
    pub name: String,
    /// Total bytes of its files.
    pub bytes: u64,
    /// Time of the last write, to the second.
    pub last_written: SystemTime,
    /// Whether its publisher wrote the end of its stream, and no reason of death was added.
    pub ended_well: bool,
}

/// The entries of the directory of all sessions that have a session's name.
#[derive(Debug, Default)]
pub struct Look {
    /// Sessions that seem to have ended, in no order.
    pub idle: Vec<Idle>,
    /// Directories that are something else, or a live session, with the reason.
    pub others: Vec<(String, Doubt)>,
}

impl Sessions {
    /// Opens the directory; ages are counted up to `now`.
    ///
    /// # Errors
    /// It is a link, is not a directory of this user, or cannot be opened.
    pub fn open(dir: &Path, now: SystemTime) -> Result<Self, Doubt> {
        let dir = open_dir(CWD, dir)?;
        ours(&rustix::fs::fstat(&dir)?)?;
        Ok(Self { dir, now })
    }

    /// The entries. That a session has ended is not yet proved: see [`prove`](Self::prove).
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn look(&self) -> Result<Look, Doubt> {
        let mut look = Look::default();
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            if matches!(entry.file_type(), FileType::Directory | FileType::Symlink | FileType::Unknown)
                && let Some(name) = name_of_session(entry.file_name())
            {
                match Content::open(&self.dir, name) {
                    Ok(content) => look.idle.push(Idle::of(name, &content)),
                    Err(doubt) => look.others.push((name.to_owned(), doubt)),
                }
            }
        }
        Ok(look)
    }

    /// Proves that it is a dead session of this user.
    ///
    /// # Errors
    /// Says what is in doubt.
    pub fn prove(&self, session: &Idle) -> Result<(), Doubt> {
        Content::open(&self.dir, &session.name)?.prove(&session.name, self.now)
    }

    /// Proves that it is a dead session of this user, and removes it.
    ///
    /// # Errors
    /// Says what is in doubt, or what the system refused.
    pub fn remove(&self, session: &Idle) -> Result<(), Doubt> {
        let content = Content::open(&self.dir, &session.name)?;
        content.prove(&session.name, self.now)?;
        content.remove(&self.dir, &session.name)
    }

    /// The size of its file system in bytes, if known.
    pub fn capacity_bytes(&self) -> Option<u64> {
        let found = rustix::fs::fstatvfs(&self.dir).ok()?;
        found.f_blocks.checked_mul(found.f_frsize).filter(|bytes| *bytes > 0)
    }
}

impl Idle {
    fn of(name: &str, content: &Content) -> Self {
        let (bytes, last_written) = (content.bytes(), content.last_written());
        Self { name: name.to_owned(), bytes, last_written, ended_well: content.ended_well() }
    }
}

/// A directory's name, if it is of the form that sessions have.
fn name_of_session(name: &CStr) -> Option<&str> {
    name.to_str().ok().filter(|name| layout::is_session_dir_name(name))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::time::Duration;

    use gnntop_wire::{Definition, End, SessionInfo, put_definitions, put_end, put_segment};
    use rustix::fs::Mode;

    use super::*;

    const SEGMENT: &str = "00000000.gnntop";

    /// A session of this process id that was never locked.
    fn session(sessions: &Path, pid: u32) -> PathBuf {
        let info = SessionInfo { name: "pna".into(), pid, ..SessionInfo::default() };
        let dir = sessions.join(layout::session_dir_name(&info.name, pid, info.session_id));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(layout::LOCK_FILE), "").unwrap();
        let mut segment = Vec::new();
        put_segment(&mut segment, &info);
        fs::write(dir.join(SEGMENT), segment).unwrap();
        dir
    }

    /// Removes all that can be removed, and returns by name why the rest cannot.
    fn remove_all(sessions: &Path) -> Vec<(String, String)> {
        let sessions = Sessions::open(sessions, SystemTime::now() + Duration::from_secs(3600)).unwrap();
        let look = sessions.look().unwrap();
        let mut why: Vec<_> = look.others.into_iter().map(|(name, doubt)| (name, doubt.to_string())).collect();
        for idle in look.idle {
            let proof = sessions.prove(&idle).map_err(|doubt| doubt.to_string());
            let removed = sessions.remove(&idle).map_err(|doubt| doubt.to_string());
            assert_eq!(proof, removed);
            why.extend(removed.err().map(|doubt| (idle.name, doubt)));
        }
        why.sort();
        why
    }

    #[test]
    fn a_dead_session_goes_and_a_live_one_stays() {
        let temp = tempfile::tempdir().unwrap();
        let (dead, live) = (session(temp.path(), 1), session(temp.path(), 2));
        let lock = File::open(live.join(layout::LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        assert_eq!(remove_all(temp.path()), [("pna-2-00000000".to_owned(), "it is live".to_owned())]);
        assert!(!dead.exists() && live.join(SEGMENT).exists());
        drop(lock);
        assert!(remove_all(temp.path()).is_empty() && !live.exists());
    }

    #[test]
    fn what_is_not_proved_to_be_a_dead_session_of_ours_stays() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        fs::rename(session(temp.path(), 4711), at("pna-4711-best")).unwrap();
        fs::rename(session(temp.path(), 4711), at("best-4711-00000000")).unwrap();
        fs::write(session(temp.path(), 1).join("notes\x1b[2J.txt"), "why it was slow").unwrap();
        fs::write(session(temp.path(), 2).join("mine.gnntop"), "").unwrap();
        fs::write(session(temp.path(), 3).join(SEGMENT), "a person's file of this name").unwrap();
        fs::remove_file(session(temp.path(), 4).join(layout::LOCK_FILE)).unwrap();
        fs::create_dir(session(temp.path(), 5).join("00000001.gnntop")).unwrap();
        let before = fs::read_dir(temp.path()).unwrap().count();
        let why: Vec<_> = remove_all(temp.path()).into_iter().map(|(_, why)| why).collect();
        let expected = [
            "it does not have the name that its publisher gave it",
            "it contains notes\u{fffd}[2J.txt, which is not gnntop's",
            "it contains mine.gnntop, which is not gnntop's",
            "its first segment does not say whose it is",
            "it has no lock file, so whether it is live is unknown",
            "its 00000001.gnntop is not a file",
        ];
        assert_eq!(why, expected);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), before);
    }

    #[test]
    fn one_that_died_before_its_first_segment_goes_once_it_cannot_be_about_to_begin() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(temp.path(), 1);
        fs::write(dir.join(SEGMENT), "").unwrap();
        let now = Sessions::open(temp.path(), SystemTime::now()).unwrap();
        let doubt = now.remove(&now.look().unwrap().idle[0]).unwrap_err();
        assert!(matches!(doubt, Doubt::Fresh) && dir.exists(), "{doubt}");
        assert!(remove_all(temp.path()).is_empty() && !dir.exists());
    }

    #[test]
    fn a_pipe_or_a_link_in_the_place_of_the_lock_is_left_alone_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let (pipe, link) = (session(temp.path(), 1), session(temp.path(), 2));
        for dir in [&pipe, &link] {
            fs::remove_file(dir.join(layout::LOCK_FILE)).unwrap();
        }
        rustix::fs::mknodat(CWD, pipe.join(layout::LOCK_FILE), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let precious = temp.path().join("precious");
        fs::write(&precious, "").unwrap();
        symlink(&precious, link.join(layout::LOCK_FILE)).unwrap();
        symlink(temp.path(), temp.path().join("pna-3-00000000")).unwrap();
        // Opened like any file, the pipe would block this forever.
        let why: Vec<_> = remove_all(temp.path()).into_iter().map(|(_, why)| why).collect();
        assert_eq!(why, ["its live is not a file", "its live is not a file", "it is a symbolic link, or no directory"]);
        assert!(pipe.exists() && link.exists() && precious.exists());
    }

    #[test]
    fn another_users_session_stays() {
        if rustix::process::geteuid().as_raw() != 0 {
            println!("skipped: only root can give files away");
            return;
        }
        let temp = tempfile::tempdir().unwrap();
        fs::set_permissions(temp.path(), Permissions::from_mode(0o777)).unwrap();
        let (theirs, their_segment) = (session(temp.path(), 1), session(temp.path(), 2));
        for path in [&theirs, &their_segment.join(SEGMENT)] {
            std::os::unix::fs::chown(path, Some(12_345), None).unwrap();
        }
        assert_eq!(remove_all(temp.path()).len(), 2);
        assert!(theirs.exists() && their_segment.exists());
        std::os::unix::fs::chown(temp.path(), Some(12_345), None).unwrap();
        assert!(matches!(Sessions::open(temp.path(), SystemTime::now()), Err(Doubt::Theirs)));
    }

    #[test]
    fn how_much_there_is_and_how_it_ended() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(temp.path(), 1);
        let idle = || Sessions::open(temp.path(), SystemTime::now()).unwrap().look().unwrap().idle.remove(0);
        let mut last = vec![0; 9000];
        let mut write = |more: &[u8]| {
            last.extend(more);
            fs::write(dir.join("00000001.gnntop"), &last).unwrap();
        };
        write(&[]);
        assert!(!idle().ended_well, "killed");
        let mut end = Vec::new();
        put_end(&mut end, &End::default());
        write(&end);
        assert!(idle().ended_well);
        let size = |name: &str| fs::metadata(dir.join(name)).unwrap().len();
        assert_eq!(idle().bytes, size(SEGMENT) + size("00000001.gnntop"));
        let mut died = Vec::new();
        put_definitions(&mut died, &[Definition::Fact { key: "died".into(), text: "out of memory".into() }]);
        write(&died);
        assert!(!idle().ended_well, "why it died was added");
        assert!(Sessions::open(temp.path(), SystemTime::now()).unwrap().capacity_bytes() > Some(0));
    }
}
