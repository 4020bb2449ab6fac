//! Follows all sessions of a run in turn, including those that appear later. If a rank was started several times, its
//! sessions are read one after another.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use gnntop_sessions::discover::{self, ListedSession};

use super::live::Live;
use super::polling::{Progress, Source, SourceState, Status};
use super::runs;
use super::target::label;
use crate::stream::{MAX_SESSIONS, RIVAL_NS, Sink, follows};

/// Time between two checks for new sessions.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checks whether a silent session is still alive: with many ranks, each check counts.
const LIFE_INTERVAL: Duration = Duration::from_millis(250);
/// A directory unchanged for this long will not get a publisher any more.
const SETTLED: Duration = Duration::from_secs(60);
/// A turn takes at most the budget divided by this, so that one busy rank does not block the others.
const TURNS: u32 = 4;

/// Follows the run of this session, or only the session if it is the whole run.
pub fn follow(session: &ListedSession) -> Box<dyn Source> {
    match (&session.info.place, session.dir.parent()) {
        (Some(place), Some(dir)) => Box::new(LiveRun::follow(&place.run, session, dir)),
        _ => Box::new(Live::follow(&session.dir)),
    }
}

/// All sessions of a run.
pub struct LiveRun {
    sessions_dir: PathBuf,
    run: String,
    members: Vec<LiveMember>,
    /// Directories that are already followed, or do not belong to this run.
    known_dirs: HashSet<OsString>,
    next_check: Instant,
    /// Index of the member whose turn is first.
    turn: usize,
    /// Number of ranks that the run reports.
    expected: u32,
    /// Number of ended members at the last check, if it was all of them.
    ended: usize,
}

/// The session of a rank, and the sessions of its later starts.
struct LiveMember {
    session: ListedSession,
    live: Live,
    later: VecDeque<ListedSession>,
    /// What was lost of the earlier ones.
    previous_losses: Status,
}

impl LiveMember {
    fn follow(session: &ListedSession) -> Self {
        let live = Live::follow_every(&session.dir, LIFE_INTERVAL);
        Self { session: session.clone(), live, later: VecDeque::new(), previous_losses: Status::default() }
    }

    fn rank(&self) -> u32 {
        self.session.info.place.as_ref().map_or(0, |place| place.rank)
    }

    fn has_ended(&self) -> bool {
        matches!(self.live.status().state, SourceState::Ended(_))
    }

    /// Whether this is a later start of the rank.
    fn is_continued_by(&self, session: &ListedSession) -> bool {
        follows(&self.later.back().unwrap_or(&self.session).info, &session.info)
    }

    /// Whether the newest of its sessions still publishes.
    fn is_alive(&self) -> bool {
        discover::is_alive(&self.later.back().unwrap_or(&self.session).dir)
    }

    /// Continues with the next start, if there is one and this one was read to its end.
    fn advance(&mut self) -> bool {
        if !self.has_ended() {
            return false;
        }
        let Some(next) = self.later.pop_front() else { return false };
        let before = self.status();
        let later = std::mem::take(&mut self.later);
        *self = Self { later, previous_losses: before, ..Self::follow(&next) };
        true
    }

    /// Its status, with all losses so far.
    fn status(&self) -> Status {
        let mut status = self.live.status();
        if !self.later.is_empty() {
            (status.state, status.live) = (SourceState::Running, true);
        }
        status.lost_segments += self.previous_losses.lost_segments;
        status.damage.add(&self.previous_losses.damage);
        status.newer_format = status.newer_format.max(self.previous_losses.newer_format);
        status
    }
}

impl LiveRun {
    /// Follows the sessions of the same start as `session`, and those that appear in `sessions_dir` later.
    fn follow(run: &str, session: &ListedSession, sessions_dir: &Path) -> Self {
        let listed = discover::list(sessions_dir).map(|listing| listing.sessions).unwrap_or_default();
        let mut all = Self {
            sessions_dir: sessions_dir.to_owned(),
            run: run.to_owned(),
            members: Vec::new(),
            known_dirs: listed.iter().filter_map(|session| Some(session.dir.file_name()?.to_owned())).collect(),
            next_check: Instant::now() + CHECK_INTERVAL,
            turn: 0,
            expected: session.info.place.as_ref().map_or(1, |place| place.ranks),
            ended: 0,
        };
        runs::siblings(session, &listed).sessions.iter().for_each(|session| all.join(session));
        all
    }

    fn join(&mut self, session: &ListedSession) {
        let earlier = self.members.iter_mut().find(|member| member.is_continued_by(session) && !member.is_alive());
        match earlier {
            Some(member) => {
                member.later.push_back(session.clone());
                if member.later.len() > MAX_SESSIONS {
                    member.later.pop_front();
                }
            }
            None => {
                self.members.push(LiveMember::follow(session));
                self.members.truncate(MAX_SESSIONS);
            }
        }
    }

    /// Whether a new session belongs to the run: another rank, or a later start.
    fn is_of_run(&self, session: &ListedSession) -> bool {
        let Some(place) = session.info.place.as_ref().filter(|place| place.run == self.run) else { return false };
        place.ranks > 1 || place.attempt.is_none() || self.members.iter().any(|member| member.is_continued_by(session))
    }

    /// Whether it is too early to place a session: the previous start has not ended, but may at any moment.
    fn is_too_early(&self, session: &ListedSession) -> bool {
        let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(session.info.start.wall_ns);
        let is_young = start.elapsed().is_ok_and(|age| age < Duration::from_nanos(RIVAL_NS));
        is_young && self.members.iter().any(|member| member.is_continued_by(session) && member.is_alive())
    }

    /// Adds sessions of the run that have appeared since the last check. One whose first segment is still empty is checked
    /// again.
    fn find_new_sessions(&mut self) -> bool {
        self.next_check = Instant::now() + CHECK_INTERVAL;
        let Ok(entries) = fs::read_dir(&self.sessions_dir) else { return false };
        let sessions = |members: &[LiveMember]| members.iter().map(|member| 1 + member.later.len()).sum::<usize>();
        let before = sessions(&self.members);
        for entry in entries.flatten() {
            let name = entry.file_name();
            if self.known_dirs.contains(&name) {
                continue;
            }
            if !discover::is_alive(&entry.path()) && is_settled(&entry) {
                self.known_dirs.insert(name);
                continue;
            }
            let Ok(session) = discover::read_own(&entry.path()) else { continue };
            if self.is_too_early(&session) {
                continue;
            }
            self.known_dirs.insert(name);
            if self.is_of_run(&session) {
                self.join(&session);
            }
        }
        sessions(&self.members) > before
    }

    /// Whether all members have ended since the last call. In a run of a second, other ranks may have come and gone between
    /// two checks.
    fn has_just_ended(&mut self) -> bool {
        let ended = self.members.iter().filter(|member| member.later.is_empty() && member.has_ended()).count();
        let is_new = ended == self.members.len() && ended > self.ended;
        self.ended = ended;
        is_new
    }

    fn title(&self) -> String {
        match self.members.as_slice() {
            [only, ..] if self.expected <= 1 => label(only.later.back().unwrap_or(&only.session)),
            members => {
                format!("run {}, {} of {} ranks", self.run, members.len().min(self.expected as usize), self.expected)
            }
        }
    }
}

/// Whether it has been unchanged for so long that no process is about to publish in it.
fn is_settled(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|found| found.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > SETTLED))
}

/// The state of all members: what most of them report at their end, and which ranks differ.
fn combined_state(states: &[(u32, SourceState)]) -> SourceState {
    let ends: Vec<(u32, &str)> = states
        .iter()
        .filter_map(
            |(rank, state)| if let SourceState::Ended(why) = state { Some((*rank, why.as_str())) } else { None },
        )
        .collect();
    if ends.len() < states.len() || ends.is_empty() {
        let is_waiting = states.iter().all(|(_, state)| *state == SourceState::Waiting);
        return if is_waiting { SourceState::Waiting } else { SourceState::Running };
    }
    let usual =
        ends.iter().map(|(_, why)| *why).max_by_key(|why| ends.iter().filter(|(_, other)| other == why).count());
    let usual = usual.unwrap_or_default();
    let others = ends.iter().filter(|(_, why)| *why != usual).map(|(rank, why)| format!("; rank {rank} {why}"));
    SourceState::Ended(std::iter::once(usual.to_owned()).chain(others.take(4)).collect())
}

impl Source for LiveRun {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        let began = Instant::now();
        let mut progress = Progress { changed: began >= self.next_check && self.find_new_sessions(), more: false };
        let members = self.members.len();
        for by in 0..members {
            let at = (self.turn + by) % members;
            let left = budget.saturating_sub(began.elapsed());
            if left.is_zero() {
                (self.turn, progress.more) = (at, true);
                return progress;
            }
            let member = &mut self.members[at];
            sink.select_session(member.session.info.session_id);
            let turn = member.live.poll(sink, left.min(budget / TURNS));
            progress.changed |= turn.changed;
            progress.more |= turn.more || member.advance();
        }
        progress.more |= self.has_just_ended() && self.find_new_sessions();
        progress
    }

    fn status(&self) -> Status {
        let all: Vec<(u32, Status)> = self.members.iter().map(|member| (member.rank(), member.status())).collect();
        let mut sum = Status { title: self.title(), ..Status::default() };
        for (_, status) in &all {
            sum.live |= status.live;
            let new = status.messages.iter().filter(|told| !sum.messages.contains(told)).cloned().collect::<Vec<_>>();
            sum.messages.extend(new);
            sum.lost_segments += status.lost_segments;
            sum.damage.add(&status.damage);
            sum.newer_format = sum.newer_format.max(status.newer_format);
        }
        sum.state = combined_state(&all.into_iter().map(|(rank, status)| (rank, status.state)).collect::<Vec<_>>());
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::SessionDir;
    use super::*;
    use crate::ranks::{Presence, Run};
    use gnntop_fixtures::ParallelRun;

    /// A rank's session on disk.
    fn publish(dir: &Path, parallel: &ParallelRun, rank: u32) -> SessionDir {
        let session = SessionDir::create(dir, "sage", parallel.info(rank).pid);
        session.write_segment(0, &parallel.session(rank));
        session
    }

    fn poll(source: &mut dyn Source, run: &mut Run) {
        while source.poll(run, Duration::from_secs(1)).more {}
    }

    #[test]
    fn all_ranks_are_followed_and_late_ones_taken_in() {
        let dir = tempfile::tempdir().unwrap();
        let parallel = ParallelRun { ranks: 3, ends: false, ..ParallelRun::default() };
        let (one, zero) = (publish(dir.path(), &parallel, 1), publish(dir.path(), &parallel, 0));
        let locks = [one.lock(), zero.lock()];
        let session = discover::read(one.path()).unwrap();
        let mut source = LiveRun::follow("job-17", &session, dir.path());
        let mut run = Run::default();
        poll(&mut source, &mut run);
        assert_eq!((run.ranks().all().len(), run.rank()), (2, Some(0)));
        assert_eq!(source.status().title, "run job-17, 2 of 3 ranks");
        assert_eq!((source.status().state, source.status().live), (SourceState::Running, true));
        // A rank of another run appears, one whose segment is still empty, and the third.
        publish(dir.path(), &ParallelRun { run: "job-18", start: 1, ..parallel.clone() }, 0);
        let late = SessionDir::create(dir.path(), "sage", parallel.info(2).pid);
        late.write_segment(0, b"");
        assert!(!source.find_new_sessions());
        late.write_segment(0, &parallel.session(2));
        let late_lock = late.lock();
        assert!(source.find_new_sessions());
        poll(&mut source, &mut run);
        assert_eq!(run.ranks().all().len(), 3);
        assert!(run.notes().is_empty(), "{:?}", run.notes());
        // Rank 2 is killed, the others continue.
        drop(late_lock);
        while run.ranks().presence(run.ranks().get(2).unwrap()) != Presence::Gone {
            poll(&mut source, &mut run);
        }
        assert_eq!(source.status().state, SourceState::Running);
        drop(locks);
        while !matches!(source.status().state, SourceState::Ended(_)) {
            poll(&mut source, &mut run);
        }
        assert_eq!(source.status().state, SourceState::Ended("ended unexpectedly: killed?".to_owned()));
    }

    #[test]
    fn short_lived_ranks_are_found_at_end() {
        let dir = tempfile::tempdir().unwrap();
        let parallel = ParallelRun { ranks: 2, ..ParallelRun::default() };
        let zero = publish(dir.path(), &parallel, 0);
        let session = discover::read(zero.path()).unwrap();
        let mut source = LiveRun::follow("job-17", &session, dir.path());
        publish(dir.path(), &parallel, 1);
        source.next_check = Instant::now() + Duration::from_secs(3600);
        let mut run = Run::default();
        // Like a recorder: until the end is seen.
        while !matches!(source.status().state, SourceState::Ended(_)) {
            poll(&mut source, &mut run);
        }
        assert_eq!(run.ranks().all().len(), 2);
    }

    #[test]
    fn end_state_is_majority_and_names_others() {
        let ended = |why: &str| SourceState::Ended(why.to_owned());
        let states = [(0, ended("ended")), (1, ended("ended unexpectedly: killed?")), (2, ended("ended"))];
        assert_eq!(combined_state(&states), ended("ended; rank 1 ended unexpectedly: killed?"));
        assert_eq!(combined_state(&[(0, ended("ended")), (1, SourceState::Running)]), SourceState::Running);
        assert_eq!(combined_state(&[(0, SourceState::Waiting)]), SourceState::Waiting);
        assert_eq!(combined_state(&[]), SourceState::Waiting);
    }

    /// The start of a run with this number, a minute after the previous one.
    fn attempt(number: u32) -> ParallelRun {
        ParallelRun::restarted(number, u64::from(number) * 60)
    }

    #[test]
    fn attempts_are_read_in_order_and_later_ones_added() {
        let dir = tempfile::tempdir().unwrap();
        let (_zero, one) = (publish(dir.path(), &attempt(0), 0), publish(dir.path(), &attempt(1), 0));
        let lock = one.lock();
        let session = discover::read(one.path()).unwrap();
        let mut source = follow(&session);
        let mut run = Run::default();
        while run.store().steps().total() < 120 {
            poll(&mut *source, &mut run);
        }
        assert_eq!((run.members().len(), run.store().attempts().count()), (1, 2));
        assert_eq!((source.status().state, source.status().live), (SourceState::Running, true));
        // It is killed, which ends it until it is started again.
        drop(lock);
        while !matches!(source.status().state, SourceState::Ended(_)) {
            poll(&mut *source, &mut run);
        }
        let two = publish(dir.path(), &attempt(2), 0);
        let _lock = two.lock();
        while run.store().attempts().count() < 3 {
            poll(&mut *source, &mut run);
        }
        while run.store().steps().total() < 180 {
            poll(&mut *source, &mut run);
        }
        assert_eq!(source.status().state, SourceState::Running);
        assert_eq!(run.store().session().info().unwrap().pid, attempt(2).info(0).pid);
    }

    #[test]
    fn hundred_attempts_are_one_history() {
        let dir = tempfile::tempdir().unwrap();
        let all: Vec<SessionDir> =
            (0..100).map(|number| publish(dir.path(), &ParallelRun { steps: 5, ..attempt(number) }, 0)).collect();
        let mut source = follow(&discover::read(all[50].path()).unwrap());
        let mut run = Run::default();
        while !matches!(source.status().state, SourceState::Ended(_)) {
            poll(&mut *source, &mut run);
        }
        let store = run.store();
        assert_eq!((run.members().len(), store.attempts().count(), store.steps().total()), (1, 100, 500));
    }

    #[test]
    fn other_program_of_job_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let zero = publish(dir.path(), &attempt(0), 0);
        let session = discover::read(zero.path()).unwrap();
        let mut source = LiveRun::follow("job-17", &session, dir.path());
        // It began alongside, with the same number.
        publish(dir.path(), &ParallelRun { start: 7, ..attempt(0) }, 0);
        assert!(!source.find_new_sessions());
        publish(dir.path(), &attempt(1), 0);
        assert!(source.find_new_sessions());
    }
}
