//! Everything that can be opened: live sessions, ended sessions, and the recordings in a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gnntop_sessions::Error as SessionsError;
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_wire::text;

use super::latest::Latest;
use super::live::Live;
use super::live_run::follow;
use super::playback::{Playback, PlaybackOptions};
use super::polling::{Progress, Source, Status};
use super::recording::RecordingError;
use super::runs::{self, SessionGroup};
use crate::stream::Sink;

/// Extension of recordings.
const RECORDING: &str = "gnntop";
/// Most recordings listed, the newest.
const MAX_RECORDINGS: usize = 500;
/// Most entries of the folder that are checked.
const MAX_ENTRIES: usize = 10_000;

/// Kind of thing that can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A session whose publisher is alive.
    Live,
    /// A session whose publisher has ended.
    Ended,
    /// A recording.
    Recording,
}

/// Something that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Its kind.
    pub kind: EntryKind,
    /// The session's name, or the recording's file.
    pub name: String,
    /// The publisher's process id, if known.
    pub pid: Option<u32>,
    /// The publisher's command line; empty if unknown.
    pub command: String,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// Time since it last grew.
    pub age: Option<Duration>,
    /// Time since the program started, if known.
    pub started: Option<Duration>,
    /// The folder that a living program works in; `None` if it is over or not to be seen.
    pub folder: Option<PathBuf>,
    /// The newest step of a living program.
    pub latest: Option<Latest>,
    /// Directory of the session, or path of the recording.
    pub path: PathBuf,
}

/// Where to look for sessions and recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// Directory of sessions.
    pub sessions_dir: PathBuf,
    /// Folder with recordings.
    pub recordings_dir: PathBuf,
}

impl Catalog {
    /// Everything that can be opened now: live sessions, then ended ones, then recordings, each newest first.
    ///
    /// # Errors
    /// If the directory of sessions cannot be read. A folder that cannot be read has no recordings.
    pub fn entries(&self) -> Result<Vec<CatalogEntry>, SessionsError> {
        let now = SystemTime::now();
        let sessions = discover::list(&self.sessions_dir)?.sessions;
        let mut entries: Vec<CatalogEntry> =
            runs::group(&sessions).iter().map(|group| group_entry(group, now)).collect();
        entries.extend(recordings(&self.recordings_dir, now));
        Ok(entries)
    }
}

/// Opens an entry: follows a session, plays a recording.
///
/// # Errors
/// If a recording cannot be read.
pub fn open(entry: &CatalogEntry) -> Result<Box<dyn Source>, RecordingError> {
    Ok(match entry.kind {
        EntryKind::Live | EntryKind::Ended => match discover::read(&entry.path) {
            Ok(session) => follow(&session),
            // A session that cannot be read reports that itself.
            Err(_) => Box::new(Live::follow(&entry.path)),
        },
        EntryKind::Recording => Box::new(Playback::open(entry.path.clone(), PlaybackOptions::default())?),
    })
}

/// A source without items, used while nothing is open.
pub struct EmptySource;

impl Source for EmptySource {
    fn poll(&mut self, _sink: &mut dyn Sink, _budget: Duration) -> Progress {
        Progress::default()
    }

    fn status(&self) -> Status {
        Status { title: "nothing is open".to_owned(), ..Status::default() }
    }
}

/// A run of several ranks or starts is one entry. Any of its sessions opens it.
fn group_entry(group: &SessionGroup, now: SystemTime) -> CatalogEntry {
    let newest = session_entry(group.newest(), now);
    let ((ranks, _), starts) = (group.ranks(), group.starts());
    let Some(id) = group.id().filter(|_| ranks > 1 || starts > 1) else { return newest };
    CatalogEntry {
        kind: if group.living() > 0 { EntryKind::Live } else { EntryKind::Ended },
        name: if ranks > 1 { format!("{id}, {ranks} ranks") } else { format!("{id}, {starts} starts") },
        pid: newest.pid.filter(|_| ranks == 1),
        size_bytes: group.sessions.iter().map(|session| session.size_bytes).sum(),
        age: group.sessions.iter().filter_map(|session| session_entry(session, now).age).min(),
        ..newest
    }
}

fn session_entry(session: &ListedSession, now: SystemTime) -> CatalogEntry {
    CatalogEntry {
        kind: if session.alive { EntryKind::Live } else { EntryKind::Ended },
        name: session.info.name.clone(),
        pid: Some(session.info.pid),
        command: session.info.command.clone(),
        size_bytes: session.size_bytes,
        age: session.last_active.and_then(|at| now.duration_since(at).ok()),
        started: now.duration_since(UNIX_EPOCH + Duration::from_nanos(session.info.start.wall_ns)).ok(),
        folder: folder(session),
        latest: if session.alive { Latest::read(session) } else { None },
        path: session.dir.clone(),
    }
}

/// The folder that a living program works in. Where the session is a copy, its process id is another machine's.
fn folder(session: &ListedSession) -> Option<PathBuf> {
    let is_here = session.alive && session.copy.is_none();
    is_here.then(|| fs::read_link(format!("/proc/{}/cwd", session.info.pid)).ok()).flatten()
}

fn recordings(dir: &Path, now: SystemTime) -> Vec<CatalogEntry> {
    let Ok(listed) = fs::read_dir(dir) else { return Vec::new() };
    let paths = listed.take(MAX_ENTRIES).filter_map(|entry| Some(entry.ok()?.path()));
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|extension| extension == RECORDING);
    let mut found: Vec<CatalogEntry> =
        paths.filter(is_recording).filter_map(|path| recording_entry(path, now)).collect();
    found.sort_by(|a, b| (a.age, &a.name).cmp(&(b.age, &b.name)));
    found.truncate(MAX_RECORDINGS);
    found
}

fn recording_entry(path: PathBuf, now: SystemTime) -> Option<CatalogEntry> {
    let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    // File names may contain anything.
    let name = text::clean(path.file_name()?.as_encoded_bytes());
    let age = meta.modified().ok().and_then(|at| now.duration_since(at).ok());
    Some(CatalogEntry {
        kind: EntryKind::Recording,
        name,
        pid: None,
        command: String::new(),
        size_bytes: meta.len(),
        age,
        started: None,
        folder: None,
        latest: None,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, SessionDir};
    use super::*;
    use gnntop_fixtures::ParallelRun;

    fn named(entries: &[CatalogEntry]) -> Vec<(EntryKind, &str)> {
        entries.iter().map(|entry| (entry.kind, entry.name.as_str())).collect()
    }

    #[test]
    fn entries_list_sessions_before_recordings() {
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
            assert_eq!(entry.started.is_some(), entry.kind != EntryKind::Recording, "{entry:?}");
        }
    }

    #[test]
    fn entries_list_run_once() {
        let sessions = tempfile::tempdir().unwrap();
        let parallel = ParallelRun::default();
        for rank in 0..2 {
            SessionDir::create(sessions.path(), "sage", 5000 + rank).write_segment(0, &parallel.session(rank));
        }
        let catalog = Catalog { sessions_dir: sessions.path().to_owned(), recordings_dir: "/nowhere".into() };
        let entries = catalog.entries().unwrap();
        assert_eq!(named(&entries), [(EntryKind::Ended, "job-17, 2 ranks")]);
        assert!(entries[0].size_bytes as usize >= parallel.bytes().len());
        let mut run = crate::ranks::Run::default();
        open(&entries[0]).unwrap().poll(&mut run, Duration::from_secs(1));
        assert_eq!(run.ranks().all().len(), 2);
    }

    #[test]
    fn entry_names_have_no_control_characters() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("\u{1b}[2Jevil.gnntop"), "x").unwrap();
        let found = recordings(folder.path(), SystemTime::now());
        assert_eq!(named(&found), [(EntryKind::Recording, "\u{fffd}[2Jevil.gnntop")]);
        assert!(open(&found[0]).is_err(), "not a recording");
    }

    #[test]
    fn entries_of_missing_folder_are_empty() {
        assert!(recordings(Path::new("/nowhere/at/all"), SystemTime::now()).is_empty());
    }
}
