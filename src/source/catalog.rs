//! Everything that can be opened from here: living sessions, those that have ended, and the recordings of a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::discover::{self, DiscoverError, Session};
use super::playback::PlaybackOptions;
use super::recording::RecordingError;
use super::{Live, Playback, Progress, Sink, Source, Status, follow};

/// How the name of a recording ends.
const RECORDING: &str = "gnntop";
/// Recordings that are listed at most, the newest of them.
const MOST_RECORDINGS: usize = 500;
/// Entries of the folder that are looked at.
const MOST_ENTRIES: usize = 10_000;

/// What can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A session whose publisher lives.
    Live,
    /// A session whose publisher has ended.
    Ended,
    /// A recording.
    Recording,
}

/// Something that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// The session's name, or the recording's file.
    pub name: String,
    /// The publisher's process id, where it is known.
    pub pid: Option<u32>,
    /// The publisher's command line; empty where it is not known.
    pub command: String,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// How long ago it grew.
    pub age: Option<Duration>,
    /// Directory of the session, or the recording's file.
    pub path: PathBuf,
}

/// Where to look for what can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// Directory of sessions.
    pub sessions_dir: PathBuf,
    /// Folder with recordings.
    pub recordings_dir: PathBuf,
}

impl Catalog {
    /// Everything there is now: living sessions, then ended ones, then recordings, each the newest first.
    ///
    /// # Errors
    /// When the directory of sessions cannot be read. A folder that cannot be read has no recordings.
    pub fn entries(&self) -> Result<Vec<Entry>, DiscoverError> {
        let now = SystemTime::now();
        let sessions = discover::list(&self.sessions_dir)?.sessions;
        let mut entries: Vec<Entry> = sessions.iter().map(|session| of_session(session, now)).collect();
        entries.extend(recordings(&self.recordings_dir, now));
        Ok(entries)
    }
}

/// Opens what an entry names: a session is followed, a recording is played.
///
/// # Errors
/// When a recording cannot be read.
pub fn open(entry: &Entry) -> Result<Box<dyn Source>, RecordingError> {
    Ok(match entry.kind {
        EntryKind::Live | EntryKind::Ended => match discover::read_session(&entry.path) {
            Ok(session) => follow(&session),
            // What cannot be read says so itself.
            Err(_) => Box::new(Live::follow(&entry.path)),
        },
        EntryKind::Recording => Box::new(Playback::open(entry.path.clone(), PlaybackOptions::default())?),
    })
}

/// A source that yields nothing, for as long as nothing is opened.
pub struct Nothing;

impl Source for Nothing {
    fn poll(&mut self, _sink: &mut dyn Sink, _budget: Duration) -> Progress {
        Progress::default()
    }

    fn status(&self) -> Status {
        Status { title: "nothing is open".to_owned(), ..Status::default() }
    }
}

fn of_session(session: &Session, now: SystemTime) -> Entry {
    Entry {
        kind: if session.alive { EntryKind::Live } else { EntryKind::Ended },
        name: session.info.name.clone(),
        pid: Some(session.info.pid),
        command: session.info.command.clone(),
        size_bytes: session.size_bytes,
        age: session.last_active.and_then(|at| now.duration_since(at).ok()),
        path: session.dir.clone(),
    }
}

fn recordings(dir: &Path, now: SystemTime) -> Vec<Entry> {
    let Ok(listed) = fs::read_dir(dir) else { return Vec::new() };
    let paths = listed.take(MOST_ENTRIES).filter_map(|entry| Some(entry.ok()?.path()));
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|extension| extension == RECORDING);
    let mut found: Vec<Entry> = paths.filter(is_recording).filter_map(|path| of_recording(path, now)).collect();
    found.sort_by(|a, b| (a.age, &a.name).cmp(&(b.age, &b.name)));
    found.truncate(MOST_RECORDINGS);
    found
}

fn of_recording(path: PathBuf, now: SystemTime) -> Option<Entry> {
    let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    // A file may be called anything.
    let name: String = path.file_name()?.to_string_lossy().chars().filter(|c| !c.is_control()).collect();
    let age = meta.modified().ok().and_then(|at| now.duration_since(at).ok());
    let (pid, command) = (None, String::new());
    Some(Entry { kind: EntryKind::Recording, name, pid, command, size_bytes: meta.len(), age, path })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, SessionDir};
    use super::*;

    fn named(entries: &[Entry]) -> Vec<(EntryKind, &str)> {
        entries.iter().map(|entry| (entry.kind, entry.name.as_str())).collect()
    }

    #[test]
    fn sessions_come_before_recordings() {
        let (sessions, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let catalog = Catalog { sessions_dir: sessions.path().to_owned(), recordings_dir: folder.path().to_owned() };
        assert_eq!(catalog.entries().unwrap(), []);
        SessionDir::create(sessions.path(), "over", 11).write_segment(0, &fixture::segment("over", 11, 0));
        let live = SessionDir::create(sessions.path(), "alive", 12);
        live.write_segment(0, &fixture::segment("alive", 12, 0));
        let _lock = live.lock();
        fs::write(folder.path().join("a.gnntop"), fixture::recording(3, 1)).unwrap();
        fs::write(folder.path().join("notes.txt"), "no recording").unwrap();
        fs::create_dir(folder.path().join("dir.gnntop")).unwrap();
        let entries = catalog.entries().unwrap();
        let expected = [(EntryKind::Live, "alive"), (EntryKind::Ended, "over"), (EntryKind::Recording, "a.gnntop")];
        assert_eq!(named(&entries), expected);
        for entry in &entries {
            assert!(open(entry).is_ok() && entry.size_bytes > 0 && entry.age.is_some(), "{entry:?}");
        }
    }

    #[test]
    fn names_cannot_drive_a_terminal() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("\u{1b}[2Jevil.gnntop"), "x").unwrap();
        let found = recordings(folder.path(), SystemTime::now());
        assert_eq!(named(&found), [(EntryKind::Recording, "[2Jevil.gnntop")]);
        assert!(open(&found[0]).is_err(), "is no recording");
    }

    #[test]
    fn a_folder_that_is_not_there_has_none() {
        assert!(recordings(Path::new("/nowhere/at/all"), SystemTime::now()).is_empty());
    }
}
