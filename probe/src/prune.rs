//! Removes old sessions when a new one begins, so that the directory of sessions does not grow without end.
//! `gnntop_sessions` proves that a directory is a dead session.

use std::path::Path;
use std::time::{Duration, SystemTime};

use gnntop_sessions::{Error, PrivateDir, Removal};

/// A session whose program ended it normally is kept this long. One whose program was killed or failed is kept until it is
/// removed by hand, as long as there is room.
const KEEP: Duration = Duration::from_secs(7 * 24 * 3600);
/// Ended sessions together take at most this many bytes...
const KEEP_BYTES: u64 = 1 << 30;
/// ...at most their file system's size divided by this, as it may be a small one in memory...
const KEEP_PART: u64 = 4;
/// ...and at most this many, since `gnntop list` reads them all.
const KEEP_SESSIONS: usize = 1000;
/// A session written this recently may still change: its keeper adds why the program died.
const SETTLED: Duration = Duration::from_secs(60);

/// The room for ended sessions.
#[derive(Clone, Copy)]
struct Room {
    bytes: u64,
    sessions: usize,
}

/// Removes sessions of dead processes that are too old or too many. Those that cannot be read or removed stay.
pub(crate) fn remove_old(sessions: &Path, now: SystemTime) {
    // If the directory cannot be opened, the new session reports it.
    let _ = PrivateDir::open(sessions).and_then(|sessions| {
        let removal = Removal::new(sessions, now);
        prune(&removal, now, room(removal.capacity_bytes()))
    });
}

fn room(capacity_bytes: Option<u64>) -> Room {
    let bytes = capacity_bytes.map_or(KEEP_BYTES, |all| KEEP_BYTES.min(all / KEEP_PART));
    Room { bytes, sessions: KEEP_SESSIONS }
}

fn prune(removal: &Removal, now: SystemTime, room: Room) -> Result<(), Error> {
    let mut idle = removal.candidates()?.idle;
    // If room is short, sessions that ended well go before those that did not, oldest first.
    idle.sort_by_key(|session| std::cmp::Reverse((!session.ended_well, session.last_written)));
    let mut bytes = 0_u64;
    for (place, session) in idle.iter().enumerate() {
        bytes = bytes.saturating_add(session.bytes);
        let age = now.duration_since(session.last_written).unwrap_or_default();
        let is_beyond = bytes > room.bytes || place >= room.sessions;
        if session.ended_well && age > KEEP || is_beyond && age > SETTLED {
            let _ = removal.remove(session);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;

    use gnntop_sessions::layout;
    use gnntop_wire::{End, SessionInfo, put_end, put_segment};

    use super::*;

    const ALL: Room = Room { bytes: KEEP_BYTES, sessions: KEEP_SESSIONS };
    const NONE: Room = Room { bytes: 0, sessions: 0 };

    /// A session of `pid` that was never locked, with `bytes` in its segment after the header, and an end if it ended well.
    fn session(sessions: &Path, pid: u32, bytes: usize, ended_well: bool) -> PathBuf {
        let boot_id = crate::host::boot_id();
        let info = SessionInfo { name: "pna".into(), pid, boot_id, ..SessionInfo::default() };
        let dir = sessions.join(layout::session_dir_name(&info.name, pid, info.session_id));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(layout::LOCK_FILE), "").unwrap();
        let mut segment = Vec::new();
        put_segment(&mut segment, &info);
        segment.resize(segment.len() + bytes, 0);
        if ended_well {
            put_end(&mut segment, &End::default());
        }
        fs::write(dir.join(layout::segment_file_name(0)), segment).unwrap();
        dir
    }

    fn prune_in(sessions: &Path, after: Duration, room: Room) {
        let now = SystemTime::now() + after;
        prune(&Removal::new(PrivateDir::open(sessions).unwrap(), now), now, room).unwrap();
    }

    #[test]
    fn prune_keeps_ended_week_and_died_until_full() {
        let temp = tempfile::tempdir().unwrap();
        let (well, died) = (session(temp.path(), 1, 10, true), session(temp.path(), 2, 10, false));
        prune_in(temp.path(), KEEP / 2, ALL);
        assert!(well.exists() && died.exists());
        prune_in(temp.path(), KEEP * 2, ALL);
        assert!(!well.exists() && died.exists());
        prune_in(temp.path(), KEEP * 1000, ALL);
        assert!(died.exists());
        prune_in(temp.path(), KEEP * 2, NONE);
        assert!(!died.exists());
    }

    #[test]
    fn prune_removes_oldest_and_keeps_live() {
        let temp = tempfile::tempdir().unwrap();
        let all: Vec<_> = (1..=4).map(|pid| session(temp.path(), pid, 10_000, pid == 4)).collect();
        let lock = File::open(all[0].join(layout::LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        for (dir, age_s) in [(&all[1], 500), (&all[2], 900), (&all[3], 0)] {
            for name in [layout::LOCK_FILE, &layout::segment_file_name(0)] {
                let file = File::options().write(true).open(dir.join(name)).unwrap();
                file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
            }
        }
        let left = || all.iter().map(|dir| dir.exists()).collect::<Vec<_>>();
        prune_in(temp.path(), SETTLED * 2, Room { sessions: 2, ..ALL });
        assert_eq!(left(), [true, true, true, false], "the one that ended well goes before older ones that died");
        prune_in(temp.path(), SETTLED * 2, Room { bytes: 12_000, ..ALL });
        assert_eq!(left(), [true, true, false, false], "12,000 bytes are one session: the newer one");
        prune_in(temp.path(), KEEP * 2, NONE);
        assert_eq!(left(), [true, false, false, false]);
        drop(lock);
        prune_in(temp.path(), Duration::ZERO, NONE);
        assert!(all[0].exists(), "it was written to a moment ago");
        prune_in(temp.path(), SETTLED * 2, NONE);
        assert!(!all[0].exists(), "its lock is gone, and with it the last doubt");
    }

    #[test]
    fn prune_respects_small_disk() {
        assert_eq!(room(Some(400 << 20)).bytes, 100 << 20);
        assert_eq!((room(Some(u64::MAX)).bytes, room(None).bytes), (KEEP_BYTES, KEEP_BYTES));
    }
}
