//! A process that may publish a session, now or later: shows its session as soon as it exists, and its hardware until then. After
//! the end of a session it shows the next one of what the process starts, such as the next training of a script.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gnntop_sessions::discover::{self, ListedSession};

use super::hardware::{Hardware, Launcher};
use super::live_run::follow;
use super::polling::{Control, Progress, Source, SourceState, Status};
use super::process::{Process, descends};
use crate::stream::Sink;

/// Time between two checks for the session.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Finds the session of a program, which it or a process that it has started publishes.
pub struct ProgramSession {
    pid: u32,
    /// Earlier sessions were published by a process that had the same id before.
    since: SystemTime,
    sessions_dir: PathBuf,
    /// Says which processes the program has started, as far as that is known.
    started: Box<dyn FnMut() -> Vec<u32> + Send>,
    /// What that has said so far: after the end, nothing else tells whose an ended session was.
    pids: BTreeSet<u32>,
}

impl ProgramSession {
    /// The session of `pid`, which started at `since` or later, in `sessions_dir`.
    pub fn new(pid: u32, since: SystemTime, sessions_dir: PathBuf) -> Self {
        Self { pid, since, sessions_dir, started: Box::new(Vec::new), pids: BTreeSet::from([pid]) }
    }

    /// Also finds a session that has ended already if one of these processes has published it. They are asked for repeatedly.
    #[must_use]
    pub fn with_started(self, started: impl FnMut() -> Vec<u32> + Send + 'static) -> Self {
        Self { started: Box::new(started), ..self }
    }

    /// The session; of several, that of the program's own process, or else the oldest.
    pub fn find(&mut self) -> Option<ListedSession> {
        let pid = self.pid;
        self.find_all().into_iter().min_by_key(|session| (session.info.pid != pid, session.info.start.wall_ns))
    }

    /// The oldest one that was started after this time of the wall clock and still publishes.
    fn find_after(&mut self, wall_ns: u64) -> Option<ListedSession> {
        let start_ns = |session: &ListedSession| session.info.start.wall_ns;
        let later = self.find_all().into_iter().filter(|session| session.alive && start_ns(session) > wall_ns);
        later.min_by_key(start_ns)
    }

    /// All sessions of the program and of what it has started, in no order.
    pub fn find_all(&mut self) -> Vec<ListedSession> {
        self.pids.extend((self.started)());
        // The clocks are read one after another; a second of tolerance is harmless.
        let since = self.since.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(Duration::from_secs(1));
        let is_meant = |session: &ListedSession| {
            let pid = session.info.pid;
            let own = self.pids.contains(&pid) || session.alive && descends(pid, self.pid);
            own && u128::from(session.info.start.wall_ns) >= since.as_nanos()
        };
        let changed_since = UNIX_EPOCH + since.saturating_sub(Duration::from_secs(1));
        let sessions = discover::list_since(&self.sessions_dir, changed_since).map(|listing| listing.sessions);
        sessions.unwrap_or_default().into_iter().filter(is_meant).collect()
    }
}

/// The source for a process.
pub struct Launched {
    session: ProgramSession,
    next_check: Instant,
    state: LaunchedState,
}

/// What is currently shown.
enum LaunchedState {
    Outside(Box<Hardware>),
    Inside {
        source: Box<dyn Source>,
        /// When it was started, by the wall clock.
        start_ns: u64,
        /// Whether its end has been shown.
        has_ended: bool,
    },
}

impl Launched {
    /// Shows `process`, and its session as soon as there is one.
    ///
    /// # Errors
    /// If the sensors' thread cannot be started.
    pub fn watch(process: Process, launcher: Launcher, session: ProgramSession) -> std::io::Result<Self> {
        let state = LaunchedState::Outside(Box::new(Hardware::observe(process, launcher)?));
        Ok(Self { session, next_check: Instant::now(), state })
    }

    /// Looks for the session; if it exists, shows it from its beginning.
    fn find_session(&mut self, sink: &mut dyn Sink) -> bool {
        self.next_check = Instant::now() + CHECK_INTERVAL;
        let found = match &self.state {
            LaunchedState::Outside(_) => self.session.find(),
            LaunchedState::Inside { start_ns, .. } => self.session.find_after(*start_ns),
        };
        let Some(session) = found else { return false };
        sink.reset();
        let start_ns = session.info.start.wall_ns;
        self.state = LaunchedState::Inside { source: follow(&session), start_ns, has_ended: false };
        true
    }
}

impl Source for Launched {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        match &mut self.state {
            LaunchedState::Inside { source, has_ended, .. } => {
                let mut progress = source.poll(sink, budget);
                let ended_before = std::mem::replace(has_ended, matches!(source.status().state, SourceState::Ended(_)));
                if *has_ended && ended_before && Instant::now() >= self.next_check {
                    progress.changed |= self.find_session(sink);
                }
                progress
            }
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
            LaunchedState::Inside { source, .. } => source.status(),
            LaunchedState::Outside(hardware) => hardware.status(),
        }
    }

    fn control(&mut self, control: Control) {
        match &mut self.state {
            LaunchedState::Inside { source, .. } => source.control(control),
            LaunchedState::Outside(hardware) => hardware.control(control),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, CollectedItems, SessionDir};
    use super::*;
    use gnntop_wire::put_segment;
    use std::thread;

    #[test]
    fn session_replaces_hardware_when_it_appears() {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, process) = fixture::sleeper();
        // The hand-written sessions start in November 2023.
        let since = UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        let session = ProgramSession::new(child.id(), since, dir.path().to_owned());
        let mut source = Launched::watch(process, Launcher::Gnntop, session).unwrap();
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

    #[test]
    fn next_session_replaces_one_that_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, process) = fixture::sleeper();
        let pids = [900_000_001, 900_000_002, 900_000_003];
        let session =
            ProgramSession::new(child.id(), UNIX_EPOCH, dir.path().to_owned()).with_started(move || pids.to_vec());
        let mut source = Launched::watch(process, Launcher::Gnntop, session).unwrap();
        let publish = |name: &str, pid: u32, later_ns: u64| {
            let session = SessionDir::create(dir.path(), name, pid);
            let mut info = fixture::info(name, pid, 0);
            info.start = fixture::anchor(fixture::START_NS + later_ns);
            let mut bytes = Vec::new();
            put_segment(&mut bytes, &info);
            session.write_segment(0, &bytes);
            session
        };
        let first = publish("pna", pids[0], 0);
        let mut lock = Some(first.lock());
        let mut heard = CollectedItems::default();
        let mut shown = |source: &mut Launched| {
            source.poll(&mut heard, Duration::from_millis(10));
            (heard.segments.last().map(|info| info.name.clone()), heard.resets)
        };
        while shown(&mut source).0.as_deref() != Some("pna") {}
        let next = publish("gcn", pids[1], 1_000);
        let _next_lock = next.lock();
        publish("vig", pids[2], 500); // has come and gone meanwhile
        thread::sleep(2 * CHECK_INTERVAL);
        assert_eq!(shown(&mut source).0.as_deref(), Some("pna"), "it has not ended");
        lock.take();
        while !matches!(source.status().state, SourceState::Ended(_)) {
            shown(&mut source);
        }
        let mut now = shown(&mut source);
        while now.0.is_none() {
            now = shown(&mut source);
        }
        assert_eq!(now, (Some("gcn".to_owned()), 2));
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
        let session = ProgramSession::new(process.pid(), SystemTime::now(), dir.path().to_owned());
        let mut source = Launched::watch(process, Launcher::Gnntop, session).unwrap();
        source.state =
            LaunchedState::Inside { source: Box::new(ControlledSource::default()), start_ns: 0, has_ended: false };
        source.control(Control::Faster);
        assert_eq!(source.status().title, "Some(Faster)");
    }

    #[test]
    fn session_of_other_process_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        for pid in [900_000_001, 900_000_002] {
            SessionDir::create(dir.path(), "pna", pid).write_segment(0, &fixture::segment("pna", pid, 0));
        }
        let found = |pid, since| {
            let found = ProgramSession::new(pid, since, dir.path().to_owned()).find();
            found.map(|session| session.info.pid)
        };
        assert_eq!(found(900_000_002, UNIX_EPOCH), Some(900_000_002));
        assert_eq!(found(900_000_003, UNIX_EPOCH), None);
        assert_eq!(found(900_000_002, SystemTime::now()), None);
    }

    #[test]
    fn ended_session_of_a_process_that_it_has_started_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let started = 900_000_001;
        SessionDir::create(dir.path(), "pna", started).write_segment(0, &fixture::segment("pna", started, 0));
        let session = || ProgramSession::new(std::process::id(), UNIX_EPOCH, dir.path().to_owned());
        assert!(session().find().is_none(), "it may be anybody's");
        let mut known = vec![started];
        // What has started it may be gone by the second look.
        let mut session = session().with_started(move || std::mem::take(&mut known));
        let mut found = || session.find().map(|session| session.info.pid);
        assert_eq!((found(), found()), (Some(started), Some(started)));
    }

    #[test]
    fn session_of_child_process_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, _) = fixture::sleeper();
        let session = SessionDir::create(dir.path(), "pna", child.id());
        session.write_segment(0, &fixture::segment("pna", child.id(), 0));
        let _lock = session.lock();
        let found = ProgramSession::new(std::process::id(), UNIX_EPOCH, dir.path().to_owned()).find();
        assert_eq!(found.map(|session| session.info.pid), Some(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
