//! Another session beside the one that is shown, and what the two have in common.

use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::Status;
use gnntop_analysis::store::{Distribution, GAP, PhaseSlot, Store};

/// A session to compare with.
#[derive(Default)]
pub struct Other {
    /// What is known of it. Its source writes it; the compare view reads the rank that is looked at.
    pub run: Run,
    status: Status,
}

impl Other {
    /// What is known of the session, or of the rank, to compare with.
    pub fn store(&self) -> &Store {
        self.run.store()
    }

    /// What is known about its source.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Its source was asked.
    pub(super) fn polled(&mut self, status: Status) {
        self.status = status;
    }
}

/// A line of the comparison: the step, or a phase, in both sessions.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// What it is called; `step` for the step, else the phase.
    pub name: &'a str,
    /// Its place among the phases of this session; `None` for the step and for a phase of the other session only.
    pub phase: Option<usize>,
    /// Durations in this session and in the other; `None` where it did not happen.
    pub durations: [Option<&'a Distribution>; 2],
    /// Shares of the wall time of all steps, from 0 to 1.
    pub shares: [Option<f64>; 2],
}

/// The step and all phases of both sessions, those of the other one that the first one lacks before the gap.
pub(super) fn pairs<'a>(one: &'a Store, other: &'a Store) -> Vec<Pair<'a>> {
    let stores = [one, other];
    let step = stores.map(|store| Some(store.statistics().period()).filter(|all| all.count() > 0));
    let mut pairs = vec![Pair { name: "step", phase: None, durations: step, shares: [None; 2] }];
    let (gap, own) = (one.phases().len().saturating_sub(1), one.phases());
    let is_missing = |name: &str| !own.iter().any(|phase| phase.text == name);
    let lacking = other.phases().iter().filter(|phase| !phase.is_gap() && is_missing(&phase.text));
    let names = own[..gap].iter().map(|phase| phase.text.as_str()).enumerate().map(|(at, name)| (name, Some(at)));
    let names = names.chain(lacking.map(|phase| (phase.text.as_str(), None))).chain([(GAP, Some(gap))]);
    pairs.extend(names.map(|(name, phase)| {
        let slots = stores.map(|store| slot(store, name));
        let figures = [0, 1].map(|at| (stores[at].statistics(), slots[at]));
        Pair {
            name,
            phase,
            durations: figures.map(|(statistics, slot)| statistics.phase(slot?).filter(|all| all.count() > 0)),
            shares: figures.map(|(statistics, slot)| statistics.share(slot?)),
        }
    }));
    pairs
}

/// Where the numbers of a phase, or of the gap, are; a phase that is itself called `gap` has none here.
fn slot(store: &Store, name: &str) -> Option<PhaseSlot> {
    if name == GAP { Some(PhaseSlot::GAP) } else { store.phase(name).map(|phase| phase.slot) }
}
