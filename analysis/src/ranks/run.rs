//! All sessions of one run, each with its own store, and which of them is selected.
//!
//! Items come for one session at a time. A segment's opening names the session of the items that follow, as does
//! [`Run::select_session`] for a source that takes turns. A session without a place is a run by itself. If two sessions claim the
//! same rank, the later one counts, and the other is kept and marked as replaced. If the launcher counts it as a later start of
//! the run, it continues in the other's store.

use gnntop_wire::{Item, Place, SessionInfo};

use super::rank::{Rank, Ranks};
use crate::store::{Limits, Store};
use crate::stream::{Alignment, MAX_SESSIONS, RIVAL_NS, Sink, align, follows, may_overlap};

/// One session of a run.
#[derive(Clone, Debug, Default)]
pub struct RunMember {
    /// Its store.
    pub store: Store,
    /// Whether another session has since taken its rank.
    pub is_replaced: bool,
}

impl RunMember {
    /// The publisher; `None` before its first segment.
    pub fn info(&self) -> Option<&SessionInfo> {
        self.store.session().info()
    }

    /// Its place in the run; `None` if it is the whole run.
    pub fn place(&self) -> Option<&Place> {
        self.info()?.place.as_deref()
    }

    fn is_session(&self, id: u128) -> bool {
        self.info().is_some_and(|info| info.session_id == id)
    }

    /// This session as a rank of its run, relative to the clock of `reference`.
    fn rank(&self, reference: &SessionInfo) -> Option<Rank<'_>> {
        let Alignment { offset_ns, error_ns, evidence } = align(self.store.session().origin()?, reference);
        Some(Rank { place: self.place()?, store: &self.store, offset_ns, error_ns, evidence })
    }

    /// Whether this session is the next start of this member's rank.
    fn is_continued_by(&self, info: &SessionInfo) -> bool {
        let Some((last, origin)) = self.info().zip(self.store.session().origin()) else { return false };
        let start_ns = info.start.monotonic_ns.saturating_add_signed(align(info, origin).offset_ns);
        let is_beside = may_overlap(last, info) && self.store.now_ns() > start_ns.saturating_add(RIVAL_NS);
        !self.is_replaced && follows(last, info) && !is_beside
    }

    /// Whether this was an earlier start of this rank.
    fn was_session(&self, id: u128) -> bool {
        self.store.attempts().previous().iter().any(|attempt| attempt.session_id == id)
    }

    fn start_wall_ns(&self) -> u64 {
        self.info().map_or(0, |info| info.start.wall_ns)
    }
}

/// The sessions of a run. One is always selected, even if it is empty.
#[derive(Clone, Debug)]
pub struct Run {
    limits: Limits,
    pub(super) members: Vec<RunMember>,
    /// The session of the next items; `None` if they belong to none of these.
    current: Option<usize>,
    /// The rank chosen by the user; `None` selects the lowest.
    chosen: Option<u32>,
    /// Index of the selected member.
    selected: usize,
    /// Sessions of this run for which there was no room.
    left_out: u64,
}

impl Default for Run {
    fn default() -> Self {
        Self::with_limits(Limits::default())
    }
}

impl Run {
    /// A run with these limits, divided among its ranks.
    pub fn with_limits(limits: Limits) -> Self {
        let members = vec![RunMember { store: Store::with_limits(limits), is_replaced: false }];
        Self { limits, members, current: Some(0), chosen: None, selected: 0, left_out: 0 }
    }

    /// The store of the selected session.
    pub fn store(&self) -> &Store {
        &self.members[self.selected].store
    }

    /// The selected rank, and the amount known of all ranks: a different pair whenever anything is new.
    pub fn revision(&self) -> (Option<u32>, u64) {
        let revisions = self.members.iter().map(|member| member.store.revision());
        (self.rank(), revisions.fold(0, u64::wrapping_add))
    }

    /// The selected session.
    pub fn member(&self) -> &RunMember {
        &self.members[self.selected]
    }

    /// All sessions, including replaced ones, in the order of their first items.
    pub fn members(&self) -> &[RunMember] {
        &self.members
    }

    /// The run's id; `None` if it is a single session.
    pub fn id(&self) -> Option<&str> {
        Some(self.members[0].place()?.run.as_str())
    }

    /// Whether the run has several ranks, because it reports them or because several have published.
    pub fn is_parallel(&self) -> bool {
        self.members.iter().any(|member| member.place().is_some_and(|place| place.ranks > 1 || place.rank > 0))
    }

    /// Whether it is a pipeline of several stages.
    pub fn is_pipeline(&self) -> bool {
        self.members.iter().any(|member| member.place().is_some_and(|place| place.stages > 1))
    }

    /// The selected rank; `None` if the run is a single session.
    pub fn rank(&self) -> Option<u32> {
        Some(self.member().place()?.rank)
    }

    /// Number of ranks that the selected session reports.
    pub fn expected(&self) -> u32 {
        self.member().place().map_or(1, |place| place.ranks.max(1))
    }

    /// Selects this rank, as soon as it has published. Returns whether it has.
    pub fn select(&mut self, rank: u32) -> bool {
        self.chosen = Some(rank);
        self.find_selected();
        self.rank() == Some(rank)
    }

    /// Selects the next or previous rank that has published; stops at the last and the first.
    pub fn select_next(&mut self, forward: bool) {
        let Some(now) = self.rank() else { return };
        let ranks = self.current_places().map(|place| place.rank);
        let next =
            if forward { ranks.filter(|rank| *rank > now).min() } else { ranks.filter(|rank| *rank < now).max() };
        self.chosen = Some(next.unwrap_or(now));
        self.find_selected();
    }

    /// The current sessions of all ranks, by number; none if the run is a single session.
    pub fn ranks(&self) -> Ranks<'_> {
        let Some(reference) = self.reference() else { return Ranks::default() };
        let current = self.members.iter().filter(|member| !member.is_replaced);
        Ranks::new(current.filter_map(|member| member.rank(reference)).collect())
    }

    /// Applies the next item.
    pub fn apply(&mut self, item: Item<'_>) {
        match item {
            Item::Segment(info) => self.begin(info),
            // Damage and newer formats always count, if need be for the selected session.
            Item::Damage(_) | Item::Newer { .. } | Item::Unknown => {
                let at = self.current.unwrap_or(self.selected);
                self.members[at].store.apply(item);
            }
            item => {
                if let Some(at) = self.current {
                    self.members[at].store.apply(item);
                }
            }
        }
    }

    /// The next items belong to this session.
    pub fn select_session(&mut self, session_id: u128) {
        self.current = self.members.iter().position(|member| member.is_session(session_id));
    }

    /// The store of the next items, or the selected one if they belong to no session.
    pub fn current_mut(&mut self) -> &mut Store {
        let at = self.current.unwrap_or(self.selected);
        &mut self.members[at].store
    }

    /// Forgets all sessions, but not which rank was chosen.
    pub fn reset(&mut self) {
        *self = Self { chosen: self.chosen, ..Self::with_limits(self.limits) };
    }

    /// Adds the sessions of another reading of the same run, from another file. Rejects it if it is another run or a
    /// session in it is already known.
    ///
    /// # Errors
    /// The other reading, unchanged.
    pub fn join(&mut self, other: Self) -> Result<(), Box<Self>> {
        let is_known = |member: &RunMember| {
            member.info().is_none_or(|info| self.members.iter().any(|m| m.is_session(info.session_id)))
        };
        let is_same = self.is_parallel() && self.id().is_some() && self.id() == other.id();
        if !is_same || other.members.iter().any(is_known) || self.members.len() + other.members.len() > MAX_SESSIONS {
            return Err(Box::new(other));
        }
        self.members.extend(other.members);
        self.mark_replaced();
        self.find_selected();
        Ok(())
    }

    /// Whether another reading is a later start of this run, whose items continue this one.
    pub fn is_continued_by(&self, other: &Self) -> bool {
        let first = other.members[0].store.session().origin();
        first.is_some_and(|first| self.members.iter().any(|member| member.is_continued_by(first)))
    }

    /// Problems of the run, a sentence each: ranks that are missing, were restarted or are claimed twice, and sessions that
    /// do not fit.
    pub fn notes(&self) -> Vec<String> {
        let Some(first) = self.members[0].place() else { return Vec::new() };
        let mut notes = Vec::new();
        let (published, expected) = (self.current_places().count() as u64, u64::from(self.expected()));
        if published < expected {
            notes.push(format!("{published} of {expected} ranks have published"));
        }
        let shape = |place: &Place| (place.ranks, place.stages, place.copies);
        if let Some(other) = self.current_places().find(|place| shape(place) != shape(first)) {
            notes.push(format!(
                "sessions of run {} disagree about its shape: {} ranks in {} stages and {} copies, {} in {} and {}",
                first.run, first.ranks, first.stages, first.copies, other.ranks, other.stages, other.copies
            ));
        }
        notes.extend(self.replacements());
        if self.left_out > 0 {
            notes.push(format!("{} more sessions of the run are not shown", self.left_out));
        }
        notes
    }

    /// Sentences on ranks that more than one session has claimed.
    fn replacements(&self) -> Vec<String> {
        let replaced: Vec<&RunMember> = self.members.iter().filter(|member| member.is_replaced).collect();
        let Some(place) = replaced.first().and_then(|member| member.place()) else { return Vec::new() };
        let rivals = replaced.iter().filter(|member| self.has_rival(member)).count();
        if rivals > 0 {
            return vec![format!(
                "TWO RUNS SHARE THE ID {}: {rivals} ranks are claimed by two sessions at the same time; the later start is \
                 shown",
                place.run
            )];
        }
        if replaced.len() >= self.expected() as usize && self.expected() > 1 {
            return vec![format!("the ranks of run {} were started again; the newer ones are shown", place.run)];
        }
        let line = |member: &&RunMember| {
            let (info, place) = (member.info()?, member.place()?);
            Some(format!("rank {} was restarted and replaces pid {}", place.rank, info.pid))
        };
        replaced.iter().filter_map(line).collect()
    }

    /// Whether a replaced session continued alongside its replacement.
    fn has_rival(&self, replaced: &RunMember) -> bool {
        let (Some(info), Some(place)) = (replaced.info(), replaced.place()) else { return false };
        let same_rank = |member: &&RunMember| member.place().is_some_and(|other| other.rank == place.rank);
        let mut current = self.members.iter().filter(|member| !member.is_replaced).filter(same_rank);
        current.any(|member| {
            let Some(other) = member.info() else { return false };
            let offset_ns = align(info, other).offset_ns;
            let last_ns = replaced.store.now_ns().saturating_add_signed(offset_ns);
            last_ns > other.start.monotonic_ns.saturating_add(RIVAL_NS)
        })
    }

    /// Begins a segment: the next items belong to its session, if that is one of this run's.
    fn begin(&mut self, info: SessionInfo) {
        let known = self.members.iter().position(|member| member.is_session(info.session_id));
        if let Some(at) = known {
            self.current = Some(at);
            return self.members[at].store.apply(Item::Segment(info));
        }
        if self.members[0].info().is_none() {
            return self.begin_first(info);
        }
        let same_run = self.id().is_some() && self.id() == info.place.as_ref().map(|place| place.run.as_str());
        if !same_run {
            self.current = None;
            return self.members[self.selected].store.note_foreign_segment();
        }
        if self.members.iter().any(|member| member.was_session(info.session_id)) {
            // The next start continues its history.
            self.current = None;
            return;
        }
        if let Some(at) = self.members.iter().position(|member| member.is_continued_by(&info)) {
            self.current = Some(at);
            return self.members[at].store.begin_attempt(info);
        }
        if self.members.len() >= MAX_SESSIONS {
            (self.current, self.left_out) = (None, self.left_out + 1);
            return;
        }
        let mut store = Store::with_limits(self.shared_limits(&info));
        store.apply(Item::Segment(info));
        self.members.push(RunMember { store, is_replaced: false });
        self.current = Some(self.members.len() - 1);
        self.mark_replaced();
        self.find_selected();
    }

    /// The first session determines which run this is.
    fn begin_first(&mut self, info: SessionInfo) {
        let member = &mut self.members[0];
        // Earlier losses are not forgotten.
        if member.store.revision() == 0 && info.place.is_some() {
            self.members[0].store = Store::with_limits(self.shared_limits(&info));
        }
        self.current = Some(0);
        self.members[0].store.apply(Item::Segment(info));
        self.find_selected();
    }

    fn shared_limits(&self, info: &SessionInfo) -> Limits {
        let ranks = info.place.as_ref().map_or(1, |place| place.ranks);
        self.limits.shared_by((ranks as usize).clamp(1, MAX_SESSIONS))
    }

    /// Marks all sessions of a rank as replaced except the one that started last, or of those that started together, the
    /// first seen.
    fn mark_replaced(&mut self) {
        for at in 0..self.members.len() {
            let rank = self.members[at].place().map(|place| place.rank);
            let (start, is_same) =
                (self.members[at].start_wall_ns(), |member: &RunMember| member.place().map(|place| place.rank) == rank);
            let is_after = |(other, member): (usize, &RunMember)| {
                let theirs = member.start_wall_ns();
                is_same(member) && (theirs > start || theirs == start && other < at)
            };
            self.members[at].is_replaced = self.members.iter().enumerate().any(is_after);
        }
    }

    /// Finds the session of the chosen rank, or else of the lowest one.
    fn find_selected(&mut self) {
        let rank = |at: &usize| self.members[*at].place().map(|place| place.rank);
        let current = || (0..self.members.len()).filter(|at| !self.members[*at].is_replaced);
        let chosen = self.chosen.and_then(|chosen| current().find(|at| rank(at) == Some(chosen)));
        self.selected = chosen.or_else(|| current().min_by_key(rank)).unwrap_or(0);
    }

    fn current_places(&self) -> impl Iterator<Item = &Place> {
        self.members.iter().filter(|member| !member.is_replaced).filter_map(RunMember::place)
    }

    /// The session whose clock is the run's: the lowest rank's.
    fn reference(&self) -> Option<&SessionInfo> {
        let current = self.members.iter().filter(|member| !member.is_replaced);
        current
            .filter(|member| member.place().is_some())
            .min_by_key(|member| member.place().map(|place| place.rank))?
            .store
            .session()
            .origin()
    }
}

impl Sink for Run {
    fn apply(&mut self, item: Item<'_>) {
        Self::apply(self, item);
    }

    fn reset(&mut self) {
        Self::reset(self);
    }

    fn select_session(&mut self, session_id: u128) {
        Self::select_session(self, session_id);
    }

    fn add_lost_segments(&mut self, count: u64) {
        self.current_mut().note_lost_segments(count);
    }

    fn set_publisher_alive(&mut self, alive: bool) {
        self.current_mut().note_publisher(alive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::Presence;
    use gnntop_fixtures::{MS, ParallelRun, SECOND, TrainingRun, each_item};

    fn run_of(streams: &[Vec<u8>]) -> Run {
        let mut run = Run::default();
        streams.iter().for_each(|stream| each_item(stream, |item| run.apply(item)));
        run
    }

    #[test]
    fn a_session_without_a_place_is_a_run_by_itself() {
        let run = run_of(&[TrainingRun::default().bytes()]);
        assert_eq!((run.id(), run.rank(), run.is_parallel(), run.expected()), (None, None, false, 1));
        assert_eq!(run.store().steps().total(), 100);
        assert!(run.ranks().all().is_empty() && run.notes().is_empty());
    }

    #[test]
    fn each_rank_has_store_and_one_is_selected() {
        let parallel = ParallelRun { ranks: 3, slow: vec![(2, 0..100, "backward", 5 * MS)], ..ParallelRun::default() };
        // Rank 0 comes last; until then the lowest rank so far is selected.
        let mut streams = parallel.sessions();
        streams.rotate_left(1);
        let mut run = run_of(&streams);
        assert_eq!((run.id(), run.rank(), run.expected()), (Some("job-17"), Some(0), 3));
        let backward = |run: &Run| run.store().percentile("backward", 0.5).unwrap() / MS;
        assert_eq!(backward(&run), 20);
        run.select_next(true);
        run.select_next(true);
        assert_eq!((run.rank(), backward(&run)), (Some(2), 25));
        run.select_next(true);
        assert_eq!(run.rank(), Some(2), "there is no further one");
        assert!(!run.select(7) && run.select(1));
        assert!(run.notes().is_empty());
        run.reset();
        streams.iter().for_each(|stream| each_item(stream, |item| run.apply(item)));
        assert_eq!(run.rank(), Some(1), "the choice outlives a rewind");
    }

    #[test]
    fn steps_in_common_end_with_the_rank_that_is_behind() {
        let parallel = ParallelRun { dies: Some((1, 40)), ..ParallelRun::default() };
        let run = run_of(&parallel.sessions());
        let common: Vec<u64> = run.ranks().common_steps().map(|common| common.step.0).collect();
        assert_eq!(common, (1..=40).rev().collect::<Vec<u64>>());
    }

    #[test]
    fn missing_and_late_ranks_are_noted() {
        let parallel = ParallelRun { ranks: 4, ..ParallelRun::default() };
        let mut run = run_of(&parallel.sessions()[..2]);
        assert_eq!(run.notes(), ["2 of 4 ranks have published"]);
        each_item(&parallel.session(3), |item| run.apply(item));
        assert_eq!(run.notes(), ["3 of 4 ranks have published"]);
    }

    #[test]
    fn restarted_rank_replaces_previous() {
        let first = ParallelRun { ranks: 3, dies: Some((1, 5)), ..ParallelRun::default() };
        let again = ParallelRun { ranks: 3, start: 1, later_ns: SECOND, ..ParallelRun::default() };
        let mut streams = first.sessions();
        streams.push(again.session(1));
        // Whatever the order in which they are read.
        for by in 0..4 {
            streams.rotate_left(by);
            let run = run_of(&streams);
            assert_eq!(run.members().len(), 4);
            assert_eq!(run.ranks().all().len(), 3);
            assert_eq!(run.ranks().get(1).unwrap().store.session().info().unwrap().pid, again.info(1).pid);
            assert_eq!(run.notes(), ["rank 1 was restarted and replaces pid 5001"]);
        }
    }

    #[test]
    fn two_runs_with_same_id_are_noted() {
        let one = ParallelRun { steps: 400, ..ParallelRun::default() };
        let other = ParallelRun { start: 1, later_ns: SECOND, ..one.clone() };
        let mut streams = one.sessions();
        streams.extend(other.sessions());
        let notes = run_of(&streams).notes();
        assert!(notes[0].starts_with("TWO RUNS SHARE THE ID job-17: 2 ranks are claimed"), "{notes:?}");
        let later = ParallelRun { start: 1, later_ns: 60 * SECOND, ..ParallelRun::default() };
        let streams = [ParallelRun::default().sessions(), later.sessions()].concat();
        assert_eq!(run_of(&streams).notes(), ["the ranks of run job-17 were started again; the newer ones are shown"]);
        let larger = ParallelRun { ranks: 4, start: 1, ..ParallelRun::default() };
        let notes = run_of(&[ParallelRun::default().session(0), larger.session(3)]).notes();
        assert!(notes.iter().any(|note| note.contains("disagree about its shape")), "{notes:?}");
    }

    #[test]
    fn sessions_of_other_runs_are_left_out_and_counted() {
        let other = ParallelRun { run: "job-18", start: 7, ..ParallelRun::default() };
        let run = run_of(&[ParallelRun::default().session(0), other.session(1), ParallelRun::default().session(1)]);
        assert_eq!(run.ranks().all().len(), 2);
        assert_eq!(run.store().losses().foreign_segments, 1);
    }

    #[test]
    fn clocks_are_aligned_to_rank_0() {
        let (one, two) = (-2 * SECOND as i64, 3600 * SECOND as i64);
        let elsewhere = vec![(1, one, Some(MS)), (2, two, None)];
        let run = run_of(&ParallelRun { ranks: 3, elsewhere, ..ParallelRun::default() }.sessions());
        let ranks = run.ranks();
        let known: Vec<_> = ranks.all().iter().map(|rank| (rank.offset_ns, rank.error_ns)).collect();
        assert_eq!(known, [(0, Some(0)), (-one, Some(MS)), (-two, None)]);
        let common = ranks.common_steps().next().unwrap();
        let ends: Vec<u64> =
            ranks.all().iter().zip(&common.rows).map(|(rank, row)| rank.run_ns(row.unwrap().end_ns())).collect();
        assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{ends:?}");
    }

    #[test]
    fn limits_are_shared_by_ranks() {
        let run = run_of(&ParallelRun { ranks: 64, steps: 3, ..ParallelRun::default() }.sessions());
        assert_eq!(run.ranks().all().len(), 64);
        let whole = Limits::default();
        let share = whole.shared_by(64);
        assert!(share.step_rows <= whole.step_rows / 64 && share.boxes <= whole.boxes / 32, "{share:?}");
        assert_eq!(whole.shared_by(1), whole);
        let tiny = Limits { step_rows: 10, ..whole };
        assert_eq!(tiny.shared_by(64).step_rows, 10, "a share is never more than the whole");
    }

    #[test]
    fn presence_of_dead_and_hung_rank() {
        let dies = ParallelRun { ranks: 3, steps: 200, dies: Some((1, 5)), ends: false, ..ParallelRun::default() };
        let mut run = run_of(&dies.sessions());
        let silent = |run: &Run| {
            let ranks = run.ranks();
            ranks.presence(ranks.get(1).unwrap())
        };
        assert!(matches!(silent(&run), Presence::Silent(ns) if ns > 5 * SECOND), "{:?}", silent(&run));
        run.select_session(dies.info(1).session_id);
        run.current_mut().note_publisher(false);
        assert_eq!(silent(&run), Presence::Gone);
        let ranks = run.ranks();
        assert_eq!(ranks.presence(ranks.get(2).unwrap()), Presence::Here);
    }
}
