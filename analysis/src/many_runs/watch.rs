//! Keeps the rows of all runs: who there is, and in turn a look at each. What listing, pace and figures may take of a core is
//! fixed, so that more runs make the figures older and not the viewer busier.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gnntop_sessions::SessionDir;
use gnntop_sessions::discover::{self, ListedSession};

use super::budget::Budget;
use super::figures::{RunFigures, job_ends_s, user_name};
use super::pace::Pace;
use super::row::{Aged, RunRow, RunState};
use crate::energy::Assumptions;
use crate::source::latest::now_ns;
use crate::source::process::has_our_clock;
use crate::source::runs::{self, SessionGroup};

/// Parts of a core: one in this many for the listing, for paces and for figures. All of it together is 4 %.
const LISTING: u32 = 66;
const PACES: u32 = 80;
const FIGURES: u32 = 80;
/// A person reads no faster than this.
const EVERY: Duration = Duration::from_secs(1);
/// Figures of a run are not read again before this, nor its pace before a second.
const FIGURES_EVERY: Duration = Duration::from_secs(5);
/// What one call of [`RunsWatch::poll`] may take, or a little more.
const TURN: Duration = Duration::from_millis(20);
/// A publisher writes at least once a second: readings, and what is open.
const SILENT: Duration = Duration::from_secs(10);
/// Runs that are over and are listed, the newest of each directory.
const ENDED_SHOWN: usize = 20;

/// A directory of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionsPlace {
    /// This user's own, which nobody else can have filled.
    Own(PathBuf),
    /// One that a person has named: it may be anyone's.
    Named(PathBuf),
}

impl SessionsPlace {
    fn list(&self) -> Result<Vec<ListedSession>, String> {
        let listing = match self {
            Self::Own(dir) => discover::list(dir),
            Self::Named(dir) => discover::list_any_owner(dir, usize::MAX),
        };
        Ok(listing.map_err(|error| error.to_string())?.sessions)
    }
}

/// All runs in some directories.
pub struct RunsWatch {
    places: Vec<SessionsPlace>,
    with_ended: bool,
    assumptions: Assumptions,
    runs: Vec<WatchedRun>,
    problems: Vec<String>,
    user_names: HashMap<u32, String>,
    listing: Budget,
    paces: Budget,
    figures: Budget,
}

/// A run, and when what was read of it was read.
struct WatchedRun {
    group: SessionGroup,
    pace: Option<(Instant, Pace)>,
    pace_looked: Option<Instant>,
    figures: Option<(Instant, RunFigures)>,
    /// When the time of its batch job ends, in seconds since 1970, once that was looked up.
    job_ends_s: Option<Option<u64>>,
}

impl RunsWatch {
    /// The runs in these directories; without those that are over if they are not wanted.
    pub fn new(places: Vec<SessionsPlace>, with_ended: bool, assumptions: Assumptions) -> Self {
        Self {
            places,
            with_ended,
            assumptions,
            runs: Vec::new(),
            problems: Vec::new(),
            user_names: HashMap::new(),
            listing: Budget::new(LISTING, EVERY),
            paces: Budget::new(PACES, Duration::ZERO),
            figures: Budget::new(FIGURES, Duration::ZERO),
        }
    }

    /// Reads what is due, for some milliseconds.
    pub fn poll(&mut self) {
        let begin = Instant::now();
        if self.listing.is_due(begin) {
            let listed = self.places.iter().map(SessionsPlace::list);
            let listed = self.listing.spend(|| listed.collect());
            self.take(listed);
        }
        while begin.elapsed() < TURN && (self.read_pace() || self.read_figures()) {}
    }

    /// Reads everything once, however much of a core that takes, but for no longer than this.
    pub fn read_all(&mut self, at_most: Duration) {
        let begin = Instant::now();
        let listed = self.places.iter().map(SessionsPlace::list).collect();
        self.take(listed);
        for run in &mut self.runs {
            run.read_pace(begin);
        }
        self.runs.sort_by_key(|run| run.group.living() == 0);
        for run in &mut self.runs {
            if begin.elapsed() < at_most {
                run.read_figures(&self.assumptions, begin);
            }
        }
    }

    /// What could not be listed.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// A row for each run.
    pub fn rows(&mut self) -> Vec<RunRow> {
        let (now, wall) = (Instant::now(), SystemTime::now());
        for run in &self.runs {
            self.user_names.entry(run.group.newest().owner).or_insert_with_key(|uid| user_name(*uid));
        }
        let name = |run: &WatchedRun| self.user_names.get(&run.group.newest().owner).cloned().unwrap_or_default();
        self.runs.iter().map(|run| run.row(name(run), now, wall)).collect()
    }

    /// Takes in who there is now. What was read of a run is kept.
    fn take(&mut self, listed: Vec<Result<Vec<ListedSession>, String>>) {
        let mut known: HashMap<PathBuf, WatchedRun> =
            self.runs.drain(..).map(|run| (run.group.newest().dir.clone(), run)).collect();
        self.problems.clear();
        for sessions in listed {
            let groups = match sessions {
                Ok(sessions) => runs::group(&sessions),
                Err(problem) => {
                    self.problems.push(problem);
                    continue;
                }
            };
            let (living, ended): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.living() > 0);
            let ended = ended.into_iter().take(if self.with_ended { ENDED_SHOWN } else { 0 });
            self.runs.extend(living.into_iter().chain(ended).map(|group| WatchedRun::new(group, &mut known)));
        }
    }

    /// Reads the pace that was not read for the longest time. Returns whether there was one to read.
    fn read_pace(&mut self) -> bool {
        let now = Instant::now();
        if !self.paces.is_due(now) {
            return false;
        }
        let is_due = |run: &&mut WatchedRun| run.is_due(run.pace_looked, EVERY, now);
        let Some(run) = self.runs.iter_mut().filter(is_due).min_by_key(|run| run.pace_looked) else { return false };
        self.paces.spend(|| run.read_pace(now));
        true
    }

    /// The same for figures.
    fn read_figures(&mut self) -> bool {
        let now = Instant::now();
        if !self.figures.is_due(now) {
            return false;
        }
        let read_at = |run: &WatchedRun| run.figures.as_ref().map(|(at, _)| *at);
        let is_due = |run: &&mut WatchedRun| run.is_due(read_at(run), FIGURES_EVERY, now);
        // Those that run come first.
        let turn = |run: &&mut WatchedRun| (read_at(run), run.group.living() == 0);
        let Some(run) = self.runs.iter_mut().filter(is_due).min_by_key(turn) else { return false };
        let assumptions = &self.assumptions;
        self.figures.spend(|| run.read_figures(assumptions, now));
        true
    }
}

impl WatchedRun {
    fn new(group: SessionGroup, known: &mut HashMap<PathBuf, Self>) -> Self {
        match known.remove(&group.newest().dir) {
            // Once it is over it is looked at a last time.
            Some(before) if before.group.living() > 0 && group.living() == 0 => {
                Self { group, figures: None, pace_looked: None, ..before }
            }
            Some(before) => Self { group, ..before },
            None => Self { group, pace: None, pace_looked: None, figures: None, job_ends_s: None },
        }
    }

    /// Whether something that was read then is to be read again: at first, and while the run lives.
    fn is_due(&self, read: Option<Instant>, every: Duration, now: Instant) -> bool {
        read.is_none_or(|read| self.group.living() > 0 && now.saturating_duration_since(read) >= every)
    }

    /// Its sessions that count: those that live, or all once it is over.
    fn sessions(&self) -> Vec<&ListedSession> {
        let is_over = self.group.living() == 0;
        self.group.sessions.iter().filter(|session| is_over || session.alive).collect()
    }

    fn read_pace(&mut self, now: Instant) {
        let first = self.sessions().first().and_then(|first| SessionDir::open(&first.dir).ok());
        // A segment that has just begun has no steps yet.
        if let Some(pace) = first.and_then(|first| Pace::read(&first)) {
            self.pace = Some((now, pace));
        }
        self.pace_looked = Some(now);
    }

    fn read_figures(&mut self, assumptions: &Assumptions, now: Instant) {
        self.figures = Some((now, RunFigures::read(&self.sessions(), assumptions)));
        let session = self.group.newest();
        let is_here = session.alive && has_our_clock(&session.info);
        self.job_ends_s.get_or_insert_with(|| is_here.then(|| job_ends_s(session.info.pid)).flatten());
    }

    fn row(&self, user: String, now: Instant, wall: SystemTime) -> RunRow {
        let newest = self.group.newest();
        let started = self.group.sessions.iter().map(|session| session.info.start.wall_ns).min();
        let since = |at: SystemTime| wall.duration_since(at).ok();
        let first = self.sessions().first().map_or(&newest.info, |first| &first.info);
        let latest = self.pace.as_ref().map(|(_, pace)| pace.latest(now_ns(first)));
        let ends = self.job_ends_s.flatten().and_then(|s| UNIX_EPOCH.checked_add(Duration::from_secs(s)));
        // A session by itself counts as its only rank.
        let (ranks, starts) = (self.group.id().map_or((1, 1), |_| self.group.ranks()), self.group.starts());
        let id = self.group.id().filter(|_| ranks.0 > 1 || starts > 1);
        RunRow {
            path: newest.dir.clone(),
            name: id.unwrap_or(&newest.info.name).to_owned(),
            pid: newest.info.pid,
            command: newest.info.command.clone(),
            user,
            hosts: self.hosts(),
            ranks,
            state: self.state(latest.and_then(|latest| latest.still), wall),
            running_for: started
                .and_then(|ns| since(UNIX_EPOCH.checked_add(Duration::from_nanos(ns))?))
                .filter(|_| self.group.living() > 0),
            time_left: ends.map(|ends| ends.duration_since(wall).unwrap_or_default()),
            step: latest.map(|latest| latest.step),
            steps_per_s: self.pace.as_ref().filter(|_| self.group.living() > 0).and_then(|(at, pace)| {
                Some(Aged { value: pace.steps_per_s?, age: now.saturating_duration_since(*at) })
            }),
            figures: self
                .figures
                .as_ref()
                .map(|(at, figures)| Aged { value: figures.clone(), age: now.saturating_duration_since(*at) }),
        }
    }

    fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for session in &self.group.sessions {
            if !hosts.contains(&session.info.host) {
                hosts.push(session.info.host.clone());
            }
        }
        hosts
    }

    fn state(&self, still: Option<Duration>, wall: SystemTime) -> RunState {
        let last = self.group.sessions.iter().filter_map(|session| session.last_active).max();
        let quiet = last.and_then(|last| wall.duration_since(last).ok());
        let (living, published) = (self.group.living(), self.group.ranks().1);
        match (living, quiet, still) {
            (0, ended, _) => RunState::Ended(ended),
            (_, Some(quiet), _) if quiet >= SILENT => RunState::Silent(quiet),
            (_, _, Some(still)) => RunState::Still(still),
            _ if living < published && self.group.starts() == 1 => RunState::Partly(living, published),
            _ => RunState::Live,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::fixture::SessionDir as Written;
    use gnntop_fixtures::{ParallelRun, TrainingRun};

    fn watch(dir: &Path, with_ended: bool) -> RunsWatch {
        RunsWatch::new(vec![SessionsPlace::Own(dir.to_owned())], with_ended, Assumptions::default())
    }

    fn training(dir: &Path, name: &'static str, pid: u32) -> Written {
        let session = Written::create(dir, name, pid);
        session.write_segment(0, &TrainingRun { name, ..TrainingRun::default() }.bytes());
        session
    }

    #[test]
    fn read_all_fills_a_row_for_each_run() {
        let dir = tempfile::tempdir().unwrap();
        training(dir.path(), "over", 3);
        let _lock = training(dir.path(), "live", 4).lock();
        let parallel = ParallelRun::default();
        for rank in 0..2 {
            Written::create(dir.path(), "sage", 5000 + rank).write_segment(0, &parallel.session(rank));
        }
        let mut all = watch(dir.path(), true);
        all.read_all(Duration::from_secs(60));
        let rows = all.rows();
        assert_eq!(rows[0].name, "live", "those that run come first");
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
        let (live, over, ranks) = (row("live"), row("over"), row("job-17"));
        assert!((live.state, live.is_live()) == (RunState::Live, true) && !over.is_live());
        assert_eq!((live.step, live.ranks, ranks.ranks), (Some(100), (1, 1), (2, 2)));
        assert!(live.steps_per_s.as_ref().is_some_and(|pace| (24.0..26.0).contains(&pace.value)));
        assert!(live.change().is_some_and(|change| change.abs() < 0.05) && live.age().is_some());
        assert_eq!((&over.steps_per_s, over.age()), (&None, None), "what is over has no pace");
        assert!(rows.iter().all(|row| row.figures.is_some() && !row.user.is_empty()));
        let mut living = watch(dir.path(), false);
        living.read_all(Duration::from_secs(60));
        assert_eq!(living.rows().len(), 1);
    }

    #[test]
    fn poll_reads_every_run_in_turn_and_notices_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let locks: Vec<_> = (0..5).map(|pid| training(dir.path(), "pna", pid + 10).lock()).collect();
        let mut all = watch(dir.path(), true);
        // However slow this machine is: it ends when everything was read.
        while all.rows().iter().filter(|row| row.figures.is_some() && row.steps_per_s.is_some()).count() < 5 {
            all.poll();
        }
        assert!(all.rows().iter().all(RunRow::is_live));
        drop(locks);
        while all.rows().iter().any(|row| row.is_live() || row.figures.is_none()) {
            all.poll();
        }
        assert_eq!(all.rows().len(), 5);
    }

    #[test]
    fn a_silent_run_is_no_live_one() {
        let dir = tempfile::tempdir().unwrap();
        let session = training(dir.path(), "pna", 4);
        let _lock = session.lock();
        let segment = std::fs::File::options().append(true).open(session.path().join("00000000.gnntop")).unwrap();
        segment.set_modified(SystemTime::now() - Duration::from_secs(43)).unwrap();
        let mut all = watch(dir.path(), true);
        all.read_all(Duration::from_secs(60));
        let RunState::Silent(silent) = all.rows()[0].state else { panic!("{:?}", all.rows()[0].state) };
        assert!(silent >= Duration::from_secs(43));
    }

    #[test]
    fn a_directory_that_cannot_be_listed_is_a_problem() {
        let place = SessionsPlace::Named("/nowhere/at/all".into());
        let mut all = RunsWatch::new(vec![place], true, Assumptions::default());
        all.read_all(Duration::from_secs(60));
        assert!(all.rows().is_empty());
        assert!(all.problems()[0].contains("/nowhere/at/all"), "{:?}", all.problems());
    }
}
