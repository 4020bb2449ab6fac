//! A process that may publish a session, now or later: shows its session as soon as it exists, and its hardware until then.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gnntop_sessions::discover::{self, ListedSession};

use super::hardware::Hardware;
use super::live_run::follow;
use super::polling::{Control, Progress, Source, SourceState, Status};
use super::process::{Process, descends};
use crate::stream::Sink;

/// Time between two checks for the session.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The source for a process.
pub struct Launched {
    process: Process,
    sessions_dir: PathBuf,
    /// Earlier sessions were published by a process that had the same id before.
    since: SystemTime,
    next_check: Instant,
    state: LaunchedState,
}

/// What is currently shown.
enum LaunchedState {
    Outside(Box<Hardware>),
    Inside(Box<dyn Source>),
}

impl Launched {
    /// Shows `process`, which started at `since` or later, and looks for its session in `sessions_dir`.
    ///
    /// # Errors
    /// If the sensors' thread cannot be started.
    pub fn watch(process: Process, since: SystemTime, sessions_dir: &Path) -> std::io::Result<Self> {
        let now = LaunchedState::Outside(Box::new(Hardware::observe(process.clone())?));
        Ok(Self { process, sessions_dir: sessions_dir.to_owned(), since, next_check: Instant::now(), state: now })
    }

    /// Looks for the session; if it exists, shows it from its beginning.
    fn find_session(&mut self, sink: &mut dyn Sink) -> bool {
        self.next_check = Instant::now() + CHECK_INTERVAL;
        let Some(session) = find_session(self.process.pid(), self.since, &self.sessions_dir) else { return false };
        sink.reset();
        self.state = LaunchedState::Inside(follow(&session));
        true
    }
}

/// The session published since then by the process `pid` or one that it started.
///
/// Of several, the one of the process itself, or else the oldest.
pub fn find_session(pid: u32, since: SystemTime, sessions_dir: &Path) -> Option<ListedSession> {
    // The clocks are read one after another; a second of tolerance is harmless.
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(Duration::from_secs(1));
    let is_meant = |session: &ListedSession| {
        let own = session.info.pid == pid || session.alive && descends(session.info.pid, pid);
        own && u128::from(session.info.start.wall_ns) >= since.as_nanos()
    };
    let changed_since = UNIX_EPOCH.checked_add(since.saturating_sub(Duration::from_secs(1)))?;
    let sessions = discover::list_since(sessions_dir, changed_since).ok()?.sessions;
    let meant = sessions.into_iter().filter(is_meant);
    meant.min_by_key(|session| (session.info.pid != pid, session.info.start.wall_ns))
}

impl Source for Launched {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        match &mut self.state {
            LaunchedState::Inside(source) => source.poll(sink, budget),
            LaunchedState::Outside(hardware) => {
                let ended_before = matches!(hardware.status().state, SourceState::Ended(_));
                let mut progress = hardware.poll(sink, budget);
                let ended = matches!(hardware.status().state, SourceState::Ended(_));
                // A short run may have come and gone between two checks; its session still exists then.
                if ended && !ended_before || !ended && Instant::now() >= self.next_check {
                    progress.changed |= self.find_session(sink);
                }
                progress
            }
        }
    }

    fn status(&self) -> Status {
        match &self.state {
            LaunchedState::Inside(source) => source.status(),
            LaunchedState::Outside(hardware) => hardware.status(),
        }
    }

    fn control(&mut self, control: Control) {
        match &mut self.state {
            LaunchedState::Inside(source) => source.control(control),
            LaunchedState::Outside(hardware) => hardware.control(control),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, CollectedItems, SessionDir};
    use super::*;

    #[test]
    fn session_replaces_hardware_when_it_appears() {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, process) = fixture::sleeper();
        // The hand-written sessions start in November 2023.
        let since = UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        let mut source = Launched::watch(process, since, dir.path()).unwrap();
        let mut heard = CollectedItems::default();
        while heard.segments.is_empty() {
            source.poll(&mut heard, Duration::from_millis(10));
        }
        assert_eq!(heard.segments[0].name, "sleep");
        let session = SessionDir::create(dir.path(), "pna", child.id());
        let _lock = session.lock();
        session.write_segment(0, &[fixture::segment("pna", child.id(), 0), fixture::steps(0..3)].concat());
        while heard.resets == 0 || heard.segments.is_empty() {
            source.poll(&mut heard, Duration::from_millis(10));
        }
        assert_eq!((heard.resets, heard.segments[0].name.as_str()), (1, "pna"));
        assert_eq!(source.status().hint, None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// A source whose status says what it was last asked for.
    #[derive(Default)]
    struct ControlledSource(Option<Control>);

    impl Source for ControlledSource {
        fn poll(&mut self, _sink: &mut dyn Sink, _budget: Duration) -> Progress {
            Progress::default()
        }

        fn status(&self) -> Status {
            Status { title: format!("{:?}", self.0), ..Status::default() }
        }

        fn control(&mut self, control: Control) {
            self.0 = Some(control);
        }
    }

    #[test]
    fn control_reaches_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let process = Process::find(std::process::id()).unwrap();
        let mut source = Launched::watch(process, SystemTime::now(), dir.path()).unwrap();
        source.state = LaunchedState::Inside(Box::new(ControlledSource::default()));
        source.control(Control::Faster);
        assert_eq!(source.status().title, "Some(Faster)");
    }

    #[test]
    fn session_of_other_process_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        for pid in [900_000_001, 900_000_002] {
            SessionDir::create(dir.path(), "pna", pid).write_segment(0, &fixture::segment("pna", pid, 0));
        }
        let found = |pid, since| find_session(pid, since, dir.path()).map(|session| session.info.pid);
        assert_eq!(found(900_000_002, UNIX_EPOCH), Some(900_000_002));
        assert_eq!(found(900_000_003, UNIX_EPOCH), None);
        assert_eq!(found(900_000_002, SystemTime::now()), None);
    }

    #[test]
    fn session_of_child_process_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, _) = fixture::sleeper();
        let session = SessionDir::create(dir.path(), "pna", child.id());
        session.write_segment(0, &fixture::segment("pna", child.id(), 0));
        let _lock = session.lock();
        let found = find_session(std::process::id(), UNIX_EPOCH, dir.path());
        assert_eq!(found.map(|session| session.info.pid), Some(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
