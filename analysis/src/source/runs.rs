//! Which sessions of a folder are one run: those with the same run id that existed at the same time, and those of later
//! starts counted by the launcher.
//!
//! A folder may have sessions of an earlier start with the same id that no launcher counts. Time distinguishes them:
//! sessions of one start overlap, even if one rank died and was restarted while the others ran.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gnntop_sessions::discover::ListedSession;

use crate::stream::{RIVAL_NS, follows, may_overlap};

/// Sessions further apart than this belong to different starts. Ranks of one start begin within seconds.
const APART: Duration = Duration::from_secs(10);

/// The sessions of a run, by rank; or a session that is a run by itself.
#[derive(Clone, Debug)]
pub struct SessionGroup {
    /// Its sessions, at least one; those of each rank in the order of their starts.
    pub sessions: Vec<ListedSession>,
}

impl SessionGroup {
    /// The run's id; `None` for a session by itself.
    pub fn id(&self) -> Option<&str> {
        Some(self.sessions.first()?.info.place.as_ref()?.run.as_str())
    }

    /// The number of ranks that the run reports, and how many of them have published.
    pub fn ranks(&self) -> (u32, usize) {
        let places = || self.sessions.iter().filter_map(|session| session.info.place.as_ref());
        let mut published: Vec<u32> = places().map(|place| place.rank).collect();
        published.dedup();
        (places().map(|place| place.ranks).max().unwrap_or(1), published.len())
    }

    /// Number of ranks that two sessions claimed at the same time, because two runs share the id.
    pub fn rivals(&self) -> usize {
        let same_rank = |a: &ListedSession, b: &ListedSession| session_rank(a) == session_rank(b);
        let is_rival = |of: &[ListedSession]| {
            // If they cannot have run at the same time, one clock was wrong.
            let newest = &of[of.len() - 1];
            let of =
                of.iter().filter(|other| !is_continuation(other, newest) || may_overlap(&other.info, &newest.info));
            let of: Vec<&ListedSession> = of.chain([newest]).collect();
            let starts = of.iter().map(|session| u128::from(session.info.start.wall_ns));
            let ends = of.iter().map(|session| (u128::from(session.info.start.wall_ns), end_ns(session)));
            let latest_ns = starts.max().unwrap_or_default();
            ends.filter(|(start_ns, _)| *start_ns < latest_ns)
                .any(|(_, end_ns)| end_ns > latest_ns + u128::from(RIVAL_NS))
        };
        self.sessions.chunk_by(same_rank).filter(|of| is_rival(of)).count()
    }

    /// How many times the run was started, if its launcher counts that.
    pub fn starts(&self) -> usize {
        let of_ranks = self.sessions.chunk_by(|a, b| session_rank(a) == session_rank(b));
        let restarts = |of: &[ListedSession]| of.windows(2).filter(|two| is_continuation(&two[0], &two[1])).count();
        1 + of_ranks.map(restarts).max().unwrap_or(0)
    }

    /// The newest session of the lowest rank if its launcher counts starts, else the first.
    pub fn newest(&self) -> &ListedSession {
        let later = |newest, session| if is_continuation(newest, session) { session } else { newest };
        self.sessions.iter().fold(&self.sessions[0], later)
    }

    /// Number of sessions whose publisher is alive.
    pub fn living(&self) -> usize {
        self.sessions.iter().filter(|session| session.alive).count()
    }
}

/// Groups sessions by run and start. Runs are in the order of their first sessions.
pub fn group(sessions: &[ListedSession]) -> Vec<SessionGroup> {
    let mut groups: Vec<SessionGroup> = Vec::new();
    let mut of_run: HashMap<&str, Vec<&ListedSession>> = HashMap::new();
    for session in sessions {
        if let Some(place) = &session.info.place {
            of_run.entry(&place.run).or_default().push(session);
        }
    }
    let mut starts: HashMap<&str, Vec<SessionGroup>> =
        of_run.into_iter().map(|(run, all)| (run, by_start(all))).collect();
    for session in sessions {
        let Some(place) = &session.info.place else {
            groups.push(SessionGroup { sessions: vec![session.clone()] });
            continue;
        };
        let Some(starts) = starts.get_mut(place.run.as_str()) else { continue };
        let has_it = |group: &SessionGroup| group.sessions.iter().any(|member| member.dir == session.dir);
        if let Some(at) = starts.iter().position(has_it) {
            groups.push(starts.swap_remove(at));
        }
    }
    groups
}

/// The sessions of the same start of the same run as this one, including itself, by rank.
pub fn siblings(session: &ListedSession, all: &[ListedSession]) -> SessionGroup {
    let has_it = |group: &SessionGroup| group.sessions.iter().any(|member| member.dir == session.dir);
    let found = group(all).into_iter().find(has_it);
    found.unwrap_or_else(|| SessionGroup { sessions: vec![session.clone()] })
}

/// Splits the sessions of one run where nothing ran for a while and no launcher says that the run continued.
fn by_start(mut sessions: Vec<&ListedSession>) -> Vec<SessionGroup> {
    sessions.sort_by_key(|session| session.info.start.wall_ns);
    let mut groups: Vec<SessionGroup> = Vec::new();
    let mut until_ns = 0u128;
    for session in sessions {
        let start_ns = u128::from(session.info.start.wall_ns);
        let is_beside = start_ns <= until_ns + APART.as_nanos() && has_ranks(session);
        let is_of_it = |group: &&mut SessionGroup| is_start_of(session, group);
        let last = groups.len().checked_sub(1).filter(|last| is_beside && has_ranks(&groups[*last].sessions[0]));
        let last = last.filter(|last| !is_after(session, &groups[*last]));
        match groups.iter_mut().rev().find(is_of_it) {
            Some(group) => group.insert(session.clone()),
            None => match last {
                Some(last) => groups[last].insert(session.clone()),
                None => groups.push(SessionGroup { sessions: vec![session.clone()] }),
            },
        }
        until_ns = until_ns.max(end_ns(session)).max(start_ns);
    }
    for group in &mut groups {
        group.sessions.sort_by_key(session_rank);
    }
    groups
}

impl SessionGroup {
    /// Inserts a session before those that continue it, since a wall clock may have gone back.
    fn insert(&mut self, session: ListedSession) {
        let at = self.sessions.iter().position(|other| is_continuation(&session, other)).unwrap_or(self.sessions.len());
        self.sessions.insert(at, session);
    }
}

/// Whether a rank begins when all of the group have ended, and its own as well: a training after another, as of each fold.
fn is_after(session: &ListedSession, group: &SessionGroup) -> bool {
    let start_ns = u128::from(session.info.start.wall_ns);
    let have_ended = group.sessions.iter().all(|other| !other.alive && end_ns(other) < start_ns);
    have_ended && group.sessions.iter().any(|other| session_rank(other) == session_rank(session))
}

/// Whether a session is another start of a rank in a group, rather than one that began at the same time.
fn is_start_of(session: &ListedSession, group: &SessionGroup) -> bool {
    let mut of_rank = group.sessions.iter().filter(|other| session_rank(other) == session_rank(session)).peekable();
    of_rank.peek().is_some() && of_rank.all(|other| is_continuation(other, session) || is_continuation(session, other))
}

fn is_continuation(earlier: &ListedSession, later: &ListedSession) -> bool {
    follows(&earlier.info, &later.info)
}

fn session_rank(session: &ListedSession) -> Option<u32> {
    session.info.place.as_ref().map(|place| place.rank)
}

/// Whether it is one of several ranks.
fn has_ranks(session: &ListedSession) -> bool {
    session.info.place.as_ref().is_some_and(|place| place.ranks > 1 || place.attempt.is_none())
}

/// When a session ended, in nanoseconds since 1970; a live one has not.
fn end_ns(session: &ListedSession) -> u128 {
    let end = if session.alive { Some(SystemTime::now()) } else { session.last_active };
    end.and_then(|end| end.duration_since(UNIX_EPOCH).ok()).unwrap_or_default().as_nanos()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use gnntop_fixtures::ParallelRun;

    const SECOND: u64 = 1_000_000_000;

    /// A session of a rank that ran for `seconds` after it started.
    fn session(run: &ParallelRun, rank: u32, seconds: u64, alive: bool) -> ListedSession {
        let info = run.info(rank);
        let end = UNIX_EPOCH + Duration::from_nanos(info.start.wall_ns + seconds * SECOND);
        let dir = PathBuf::from(format!("/sessions/{:x}", info.session_id));
        ListedSession { dir, info, alive, copy: None, size_bytes: 1, last_active: Some(end), owner: 0 }
    }

    fn shape(groups: &[SessionGroup]) -> Vec<Vec<u32>> {
        groups.iter().map(|group| group.sessions.iter().map(|session| session.info.pid).collect()).collect()
    }

    #[test]
    fn group_orders_sessions_of_start_by_rank() {
        let (one, other) = (ParallelRun::default(), ParallelRun { run: "job-18", start: 3, ..ParallelRun::default() });
        let mut alone = session(&ParallelRun { start: 9, ..one.clone() }, 0, 5, true);
        alone.info.place = None;
        let all = [session(&one, 1, 10, true), alone, session(&other, 0, 10, true), session(&one, 0, 10, true)];
        let groups = group(&all);
        assert_eq!(shape(&groups), [vec![5000, 5001], vec![14_000], vec![8000]]);
        assert_eq!((groups[0].id(), groups[0].ranks(), groups[0].living()), (Some("job-17"), (2, 2), 2));
        assert_eq!((groups[1].id(), groups[1].ranks().0), (None, 1));
        assert_eq!(groups[2].ranks(), (2, 1), "one has published");
        assert_eq!(shape(&[siblings(&all[0], &all)]), [vec![5000, 5001]]);
        assert_eq!(shape(&[siblings(&all[1], &all)]), [vec![14_000]]);
    }

    #[test]
    fn earlier_start_with_same_id_is_other_group() {
        let first = ParallelRun::default();
        // Half an hour later.
        let again = ParallelRun { start: 1, later_ns: 1800 * SECOND, ..ParallelRun::default() };
        let all = [session(&again, 0, 60, true), session(&first, 0, 20, false), session(&first, 1, 20, false)];
        let pids = |rank: u32| again.info(rank).pid;
        assert_eq!(shape(&group(&all)), [vec![pids(0)], vec![5000, 5001]]);
    }

    #[test]
    fn ranks_that_begin_when_all_have_ended_are_another_group() {
        let folds =
            [0, 1, 2].map(|n| ParallelRun { start: n, later_ns: 22 * u64::from(n) * SECOND, ..ParallelRun::default() });
        let all: Vec<ListedSession> =
            folds.iter().flat_map(|fold| [0, 1].map(|rank| session(fold, rank, 20, false))).collect();
        let pids = folds.map(|fold| vec![fold.info(0).pid, fold.info(1).pid]);
        assert_eq!(shape(&group(&all)), pids);
        assert_eq!(shape(&[siblings(&all[1], &all)]), [pids[0].clone()]);
        // While one of them still runs, a rank is started again.
        let mut alive = all.clone();
        alive[0].alive = true;
        assert_eq!(group(&alive)[0].sessions.len(), 6);
    }

    #[test]
    fn overlapping_sessions_of_rank_are_rivals() {
        let first = ParallelRun::default();
        let again = ParallelRun { start: 1, later_ns: 5 * SECOND, ..ParallelRun::default() };
        let rivals = |sessions: &[ListedSession]| group(sessions)[0].rivals();
        let both = |seconds: u64| {
            let of = |run: &ParallelRun, seconds: u64| [0, 1].map(|rank| session(run, rank, seconds, false));
            [of(&first, seconds), of(&again, 60)].concat()
        };
        assert_eq!((rivals(&both(60)), rivals(&both(8))), (2, 2));
        assert_eq!(rivals(&both(6)), 0, "the second was started while the first still ended");
        assert_eq!(rivals(&both(60)[1..]), 1);
        assert_eq!(rivals(&both(60)[..2]), 0);
    }

    #[test]
    fn restarted_rank_stays_in_group() {
        let first = ParallelRun::default();
        let again = ParallelRun { start: 1, later_ns: 30 * SECOND, ..ParallelRun::default() };
        let all = [session(&first, 0, 0, true), session(&first, 1, 10, false), session(&again, 1, 0, true)];
        assert_eq!(shape(&group(&all)), [vec![5000, 5001, again.info(1).pid]]);
        assert_eq!(group(&all)[0].ranks(), (2, 2));
    }

    /// The start of a run with this number, this many seconds after the first.
    fn attempt(number: u32, ranks: u32, later_s: u64) -> ParallelRun {
        ParallelRun { ranks, ..ParallelRun::restarted(number, later_s) }
    }

    #[test]
    fn counted_starts_are_one_group() {
        let (first, again) = (attempt(0, 2, 0), attempt(1, 2, 3600));
        let all = [
            session(&again, 1, 60, true),
            session(&again, 0, 60, true),
            session(&first, 0, 20, false),
            session(&first, 1, 20, false),
        ];
        let groups = group(&all);
        let pids = [first.info(0).pid, again.info(0).pid, first.info(1).pid, again.info(1).pid];
        assert_eq!(shape(&groups), [pids.to_vec()]);
        let only = &groups[0];
        assert_eq!((only.ranks(), only.starts(), only.rivals(), only.living()), ((2, 2), 2, 0, 2));
        assert_eq!(only.newest().info.pid, pids[1]);
    }

    #[test]
    fn programs_of_job_are_separate_groups() {
        let of = |number, later_s, command: &str| {
            let mut session = session(&attempt(number, 1, later_s), 0, 20, false);
            session.info.command = command.to_owned();
            session.info.session_id += u128::from(later_s) << 32;
            session.info.pid += later_s as u32;
            session.dir = PathBuf::from(format!("/sessions/{number}-{later_s}"));
            session
        };
        // Two at the same time and one after them; the job is requeued, and two of them begin again.
        let all = [of(0, 0, "a"), of(0, 1, "b"), of(0, 30, "c"), of(1, 600, "a"), of(1, 601, "b")];
        let starts: Vec<usize> = group(&all).iter().map(SessionGroup::starts).collect();
        assert_eq!(starts, [2, 2, 1]);
        let alike = [of(0, 0, "a"), of(0, 1, "a"), of(1, 600, "a"), of(1, 601, "a")];
        let groups = group(&alike);
        assert_eq!(
            groups.iter().map(|group| (group.sessions.len(), group.rivals())).collect::<Vec<_>>(),
            [(2, 0), (2, 0)]
        );
    }

    #[test]
    fn starts_stay_ordered_when_clock_goes_back() {
        let (first, again) = (attempt(0, 1, 3600), attempt(1, 1, 0));
        let mut again = session(&again, 0, 20, true);
        again.info.boot_id = "later".to_owned();
        let groups = group(&[again.clone(), session(&first, 0, 20, false)]);
        assert_eq!(shape(&groups), [vec![first.info(0).pid, again.info.pid]]);
        assert_eq!((groups[0].newest().info.pid, groups[0].rivals()), (again.info.pid, 0));
    }
}
