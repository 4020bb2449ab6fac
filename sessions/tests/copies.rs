//! What the crate promises of copies: a test for each row of the table at its head that is about them.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gnntop_sessions::copy::{Change, CopyReader, CopyWriter};
use gnntop_sessions::{Heartbeat, LiveLock, PrivateDir, Removal, SessionDir, Stopped, discover, layout};
use gnntop_wire::{SessionInfo, put_segment};
use tempfile::TempDir;

const NAME: &str = "pna-7-00000000";

/// A session that grows and drops its oldest segments as a publisher does. Its past says which segment comes after it, and
/// how long its slices are.
struct GrowingSession {
    dir: PrivateDir,
    segments: std::ops::Range<u64>,
    slices: u64,
}

impl GrowingSession {
    fn new(sessions: &Path) -> Self {
        let dir = PrivateDir::create(&sessions.join(NAME)).unwrap();
        let session = Self { dir, segments: 0..1, slices: 0 };
        session.dir.create_log(&layout::segment_file_name(0)).unwrap().write_all(&heading()).unwrap();
        session.dir.create_log(&layout::slices_file_name(0)).unwrap();
        session
    }

    fn grow(&mut self, bytes: usize) {
        let newest = layout::segment_file_name(self.segments.end - 1);
        self.dir.append(&newest).unwrap().write_all(&vec![b'x'; bytes]).unwrap();
    }

    fn begin_segment(&mut self) {
        self.dir.create_log(&layout::segment_file_name(self.segments.end)).unwrap().write_all(&heading()).unwrap();
        self.segments.end += 1;
    }

    fn drop_oldest(&mut self) {
        self.dir.append(&layout::slices_file_name(0)).unwrap().write_all(&[b's'; 100]).unwrap();
        self.slices += 100;
        let past = format!("{} {}", self.segments.start + 1, self.slices);
        self.dir.replace(layout::PAST_FILE, layout::NEW_PAST_FILE, past.as_bytes()).unwrap();
        self.dir.remove(&layout::segment_file_name(self.segments.start)).unwrap();
        self.segments.start += 1;
    }
}

fn heading() -> Vec<u8> {
    let mut segment = Vec::new();
    put_segment(&mut segment, &SessionInfo { name: "pna".into(), pid: 7, ..SessionInfo::default() });
    segment
}

/// A directory of sessions, and one of copies.
fn two_places() -> (TempDir, PathBuf, PrivateDir) {
    let temp = tempfile::tempdir().unwrap();
    let copies = PrivateDir::create(&temp.path().join("copies")).unwrap();
    let here = temp.path().join("here");
    (temp, here, copies)
}

/// All that the past of a copy refers to is there.
fn assert_whole(copy: &Path) {
    let Ok(past) = fs::read_to_string(copy.join(layout::PAST_FILE)) else { return };
    let (next, slices) = past.split_once(' ').unwrap();
    let next: u64 = next.parse().unwrap();
    let len = |name: String| fs::metadata(copy.join(name)).map(|found| found.len()).ok();
    assert!(len(layout::slices_file_name(0)) >= Some(slices.parse().unwrap()), "slices before the past");
    let segments = SessionDir::open(copy).unwrap().segments().unwrap();
    let after = segments.iter().copied().filter(|number| *number >= next).collect::<Vec<_>>();
    assert!(after.windows(2).all(|pair| pair[1] == pair[0] + 1), "a segment is missing: {segments:?}");
}

#[test]
fn copies_are_whole_after_each_change() {
    let (_temp, here, copies) = two_places();
    let mut session = GrowingSession::new(&here);
    // A carrier that is interrupted after any number of changes, and begins again.
    for round in 0..200_u64 {
        match round % 7 {
            0 | 3 => session.begin_segment(),
            5 if session.segments.end - session.segments.start > 3 => session.drop_oldest(),
            _ => session.grow(1 + (round as usize * 40_507) % 300_000),
        }
        let mut writer = CopyWriter::open(&copies, NAME).unwrap();
        let mut reader = CopyReader::new(&here.join(NAME), writer.copied().clone());
        let mut left = round % 5;
        let read = reader.read(&mut |change| {
            if left == 0 && !round.is_multiple_of(3) {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            left = left.saturating_sub(1);
            writer.apply(&change)?;
            assert_whole(&copies.path().join(NAME));
            Ok(())
        });
        assert!(read.is_ok() || !round.is_multiple_of(3));
    }
    let mut writer = CopyWriter::open(&copies, NAME).unwrap();
    let mut reader = CopyReader::new(&here.join(NAME), writer.copied().clone());
    reader.read(&mut |change| Ok(writer.apply(&change)?)).unwrap();
    let content = |dir: &Path| {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.map(|name| (name.clone(), fs::read(dir.join(name)).unwrap())).collect::<BTreeMap<_, _>>()
    };
    assert!(content(&here.join(NAME)) == content(&copies.path().join(NAME)));
    let mut changes = 0;
    let mut count = |_: Change<'_>| {
        changes += 1;
        Ok(())
    };
    reader.read(&mut count).unwrap();
    assert_eq!(changes, 0, "there is nothing new");
}

#[test]
fn a_copy_takes_only_a_sessions_files() {
    let (_temp, _, copies) = two_places();
    for name in ["notes", "../pna-7-00000000", "pna-7-00000000/x", ""] {
        assert!(CopyWriter::open(&copies, name).is_err(), "{name}");
    }
    let mut writer = CopyWriter::open(&copies, NAME).unwrap();
    let bytes = b"x";
    for file in ["live", "alive", "past", "request", "../00000000.gnntop", ".bashrc", "00000000.gnntop/x", ""] {
        assert!(writer.apply(&Change::Append { file, at: 0, bytes }).is_err(), "{file}");
        assert!(writer.apply(&Change::Remove { file }).is_err(), "{file}");
    }
    assert!(writer.apply(&Change::Replace { file: "00000000.gnntop", bytes }).is_err());
    let file = "00000000.gnntop";
    assert!(writer.apply(&Change::Append { file, at: 1, bytes }).is_err(), "a byte is missing");
    writer.apply(&Change::Append { file, at: 0, bytes: b"abc" }).unwrap();
    writer.apply(&Change::Append { file, at: 1, bytes: b"bcd" }).unwrap();
    assert_eq!(fs::read(copies.path().join(NAME).join(file)).unwrap(), b"abcd", "no byte twice");
    let at = u64::MAX;
    assert!(writer.apply(&Change::Append { file, at, bytes }).is_err());
}

#[test]
fn a_copy_lives_as_long_as_it_is_heard_of() {
    let (_temp, here, copies) = two_places();
    let session = GrowingSession::new(&here);
    let lock = LiveLock::create(&session.dir).unwrap();
    let mut writer = CopyWriter::open(&copies, NAME).unwrap();
    let mut reader = CopyReader::new(&here.join(NAME), BTreeMap::new());
    let mut copy = |writer: &mut CopyWriter| reader.read(&mut |change| Ok(writer.apply(&change)?)).unwrap();
    let listed = || discover::list(copies.path()).unwrap().sessions.remove(0);
    let removal = || Removal::new(PrivateDir::open(copies.path()).unwrap(), SystemTime::now());
    assert!(copy(&mut writer).alive);
    let beat = |ago: u64| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - Duration::from_secs(ago);
        Heartbeat { wall_ns: now.as_nanos() as u64, trouble: Some("is not reached".into()), ..Heartbeat::default() }
    };
    writer.beat(&beat(0)).unwrap();
    assert!(listed().alive && listed().copy.unwrap().silent.is_none());
    writer.beat(&beat(43)).unwrap();
    let silent = listed().copy.unwrap();
    assert!(listed().alive && silent.silent.unwrap() >= Duration::from_secs(43));
    assert_eq!(silent.trouble.as_deref(), Some("is not reached"));
    writer.beat(&beat(1000)).unwrap();
    assert!(!listed().alive, "gone");
    assert!(removal().candidates().unwrap().idle.is_empty(), "what may live elsewhere is not removed");
    writer.beat(&beat(100_000)).unwrap();
    assert_eq!(removal().candidates().unwrap().idle.len(), 1, "unheard of for a day");
    drop(lock);
    assert!(!copy(&mut writer).alive);
    let stopped = Stopped { wall_ns: 7, reason: "the disk was full".into() };
    writer.end(Some(&stopped)).unwrap();
    let publisher = SessionDir::open(&copies.path().join(NAME)).unwrap().publisher();
    assert_eq!((publisher.alive, publisher.stopped, publisher.copy), (false, Some(stopped), None));
    let idle = removal().candidates().unwrap().idle;
    removal().remove(&idle[0]).unwrap();
    assert_eq!(discover::list(copies.path()).unwrap().sessions.len(), 0);
    // A heartbeat after the end, of a session that lives after all.
    let mut writer = CopyWriter::open(&copies, NAME).unwrap();
    writer.end(None).unwrap();
    writer.beat(&beat(0)).unwrap();
    writer.apply(&Change::Append { file: "00000000.gnntop", at: 0, bytes: &heading() }).unwrap();
    assert!(listed().alive);
}
