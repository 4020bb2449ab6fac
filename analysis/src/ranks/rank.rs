//! The current sessions of a run's ranks, whether each is still running, and one step on all of them.

use gnntop_wire::{Place, StepId, TrackRole};

use crate::store::{SessionState, StepRow, Store, Track};
use crate::stream::ClockEvidence;

/// A rank that is this far behind the others is silent.
const SILENT_NS: u64 = 2_000_000_000;

/// One rank of a run: its place, its store, and the offset of its clock to the run's.
#[derive(Clone, Copy, Debug)]
pub struct Rank<'a> {
    /// Which rank it is, among how many, on what.
    pub place: &'a Place,
    /// The store of its session.
    pub store: &'a Store,
    /// To be added to its times to get the run's, in nanoseconds.
    pub offset_ns: i64,
    /// Error of the offset in either direction, in nanoseconds; `None` if unknown.
    pub error_ns: Option<u64>,
    /// What the offset is based on.
    pub evidence: ClockEvidence,
}

impl<'a> Rank<'a> {
    /// A time of this rank on the run's clock, in nanoseconds.
    pub fn run_ns(&self, t_ns: u64) -> u64 {
        t_ns.saturating_add_signed(self.offset_ns)
    }

    /// A time of the run on this rank's clock, in nanoseconds.
    pub fn own_ns(&self, run_ns: u64) -> u64 {
        run_ns.saturating_add_signed(self.offset_ns.saturating_neg())
    }

    /// Its training track, even before the first step has ended.
    pub fn training(&self) -> Option<&'a Track> {
        let says_so = || self.store.tracks().iter().find(|track| track.role == TrackRole::Training);
        self.store.training_track().or_else(says_so)
    }

    /// The newest row of the step that the program counts as `step`, if it is kept. Guesses its position, which is right if
    /// steps are counted without gaps, then falls back to a binary search: step numbers increase.
    pub fn step(&self, step: StepId) -> Option<StepRow<'a>> {
        let steps = self.store.steps();
        let newest = steps.last()?;
        let back = newest.step().0.checked_sub(step.0)?;
        let guess = newest.ordinal().checked_sub(back).and_then(|ordinal| steps.row(ordinal));
        if let Some(row) = guess.filter(|row| row.step() == step) {
            return Some(row);
        }
        let (mut low, mut high) = (steps.kept_ordinals().start, steps.kept_ordinals().end);
        while low < high {
            let middle = low + (high - low) / 2;
            if steps.row(middle)?.step() <= step { low = middle + 1 } else { high = middle }
        }
        steps.row(low.checked_sub(1)?).filter(|row| row.step() == step)
    }
}

/// The ranks of a run that have published, by number.
#[derive(Clone, Debug, Default)]
pub struct Ranks<'a> {
    all: Vec<Rank<'a>>,
}

/// One step on all ranks that have published steps.
#[derive(Clone, Debug)]
pub struct CommonStep<'a> {
    /// The step, as the program counts.
    pub step: StepId,
    /// Its row on each rank, in the order of [`Ranks::all`]; `None` for a rank without steps.
    pub rows: Vec<Option<StepRow<'a>>>,
}

impl<'a> Ranks<'a> {
    /// These ranks, in any order; at most one for each number.
    pub fn new(mut all: Vec<Rank<'a>>) -> Self {
        all.sort_by_key(|rank| rank.place.rank);
        Self { all }
    }

    /// All ranks that have published, by number.
    pub fn all(&self) -> &[Rank<'a>] {
        &self.all
    }

    /// The rank with this number.
    pub fn get(&self, rank: u32) -> Option<&Rank<'a>> {
        self.all.iter().find(|known| known.place.rank == rank)
    }

    /// Number of ranks that the run reports.
    pub fn expected(&self) -> u32 {
        self.all.iter().map(|rank| rank.place.ranks).max().unwrap_or(0)
    }

    /// Steps that every rank with steps has kept, newest first. A rank that lags behind limits them: a step that it has not
    /// finished is not common.
    pub fn common_steps(&self) -> impl Iterator<Item = CommonStep<'a>> + '_ {
        let with_steps = || self.all.iter().filter(|rank| !rank.store.steps().is_empty());
        let slowest = with_steps().min_by_key(|rank| rank.store.steps().last().map(|row| row.step()));
        let rows = slowest.into_iter().flat_map(|rank| rank.store.steps().all().rev());
        rows.filter_map(|row| self.common_step(row.step()))
    }

    /// This step on all ranks, if every rank with steps has kept it.
    pub fn common_step(&self, step: StepId) -> Option<CommonStep<'a>> {
        let row = |rank: &Rank<'a>| match rank.store.steps().is_empty() {
            true => Some(None),
            false => rank.step(step).map(Some),
        };
        let rows: Option<Vec<_>> = self.all.iter().map(row).collect();
        rows.filter(|rows| rows.iter().any(Option::is_some)).map(|rows| CommonStep { step, rows })
    }
}

/// Whether a rank is still running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It publishes, or nothing says otherwise.
    Here,
    /// It has published nothing for this long while others did, in nanoseconds.
    Silent(u64),
    /// It ended normally.
    Ended,
    /// It ended unexpectedly: crashed or killed.
    Gone,
}

impl Ranks<'_> {
    /// The newest time of any rank, on the run's clock in nanoseconds; 0 before the first.
    pub fn now_ns(&self) -> u64 {
        self.all().iter().map(|rank| rank.run_ns(rank.store.now_ns())).max().unwrap_or(0)
    }

    /// Whether a rank is still running.
    pub fn presence(&self, rank: &Rank<'_>) -> Presence {
        let silent_ns = self.now_ns().saturating_sub(rank.run_ns(rank.store.now_ns()));
        match rank.store.session().state() {
            SessionState::Ended(_) => Presence::Ended,
            SessionState::Gone => Presence::Gone,
            // Clocks that were not compared cannot show who is late, and a rank that has not begun is not late.
            _ if silent_ns > SILENT_NS && rank.error_ns.is_some() && rank.store.first_ns().is_some() => {
                Presence::Silent(silent_ns)
            }
            _ => Presence::Here,
        }
    }
}
