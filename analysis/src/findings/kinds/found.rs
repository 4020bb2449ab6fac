//! The kinds of some steps, and the kind of each step. Causes outside a step's work that make it longer are no separate kind.

use gnntop_wire::ThreadUsage;

use super::sides::KindSides;
use super::{mixture, repeats};
use crate::findings::robust::{median, quantile};
use crate::store::{StepRow, Store};

/// With fewer steps, kinds are chance.
const ENOUGH: usize = 20;
/// Most kinds reported.
const MAX_ITEMS: usize = 4;
/// If nearly all steps differ by less than this, there are no kinds.
const EVEN: f64 = 1.15;
/// The usual number on one side is at least this many times that on the other...
const TIMES: f64 = 5.0;
/// ...and at least so large: page faults,
const FAULTS: f64 = 500.0;
/// or how often the CPU was taken away.
const SWITCHES: f64 = 3.0;
/// If this share of a kind's steps has marks, they explain it.
const MARKED: f64 = 0.5;

/// A kind of step.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::findings) struct StepKind {
    /// Which steps are of this kind, as the start of a sentence: `every 3rd step takes`.
    pub which: String,
    /// Number of steps.
    pub steps: usize,
    /// Their median time inside, in nanoseconds.
    pub usual_ns: f64,
}

/// The kinds of some steps: at least two, or none.
#[derive(Clone, Debug, Default)]
pub(in crate::findings) struct FoundKinds {
    /// The kinds, the most common one last.
    pub all: Vec<StepKind>,
    /// For each step its place in `all`; empty without kinds.
    pub of_row: Vec<usize>,
}

impl FoundKinds {
    /// The kinds of rows with these times.
    pub(in crate::findings) fn find(store: &Store, rows: &[StepRow<'_>], inside_ns: &[f64]) -> Self {
        let mut left: Vec<usize> = (0..rows.len()).collect();
        let mut of_row = vec![usize::MAX; rows.len()];
        let mut which = Vec::new();
        while which.len() + 1 < MAX_ITEMS
            && let Some((odd, name)) = next(store, rows, &left, inside_ns)
        {
            odd.iter().for_each(|row| of_row[*row] = which.len());
            left.retain(|row| of_row[*row] == usize::MAX);
            which.push(name);
        }
        if which.is_empty() {
            return Self::default();
        }
        left.iter().for_each(|row| of_row[*row] = which.len());
        which.push("the others".to_owned());
        let all = which.into_iter().enumerate().map(|(kind, which)| {
            let of = |row: usize| (of_row[row] == kind).then(|| inside_ns[row]);
            let mut times: Vec<f64> = (0..rows.len()).filter_map(of).collect();
            StepKind { which, steps: times.len(), usual_ns: median(&mut times).unwrap_or(1.0).max(1.0) }
        });
        Self { all: all.collect(), of_row }
    }

    /// The usual time of the step's kind; `None` without kinds.
    pub(in crate::findings) fn usual_ns(&self, row: usize) -> Option<f64> {
        Some(self.all.get(*self.of_row.get(row)?)?.usual_ns)
    }

    /// Whether a step is of the most common kind; without kinds, every step is.
    pub(in crate::findings) fn is_commonest(&self, row: usize) -> bool {
        self.of_row.get(row).is_none_or(|kind| {
            let most = self.all.iter().map(|kind| kind.steps).max();
            self.all.get(*kind).map(|kind| kind.steps) == most
        })
    }

    /// Removes the first steps.
    pub(in crate::findings) fn leave_out(&mut self, first: usize) {
        self.of_row.drain(..first.min(self.of_row.len()));
    }
}

/// The next kind among the remaining rows.
fn next(store: &Store, rows: &[StepRow<'_>], left: &[usize], inside_ns: &[f64]) -> Option<(Vec<usize>, String)> {
    let times: Vec<f64> = left.iter().map(|row| inside_ns[*row]).collect();
    if left.len() < ENOUGH || is_even(&times) {
        return None;
    }
    let (sides, name) = repeats::find_in_epochs(rows, left, &times)
        .or_else(|| repeats::find_in_rhythm(rows, left, &times))
        .or_else(|| mixture::find_mixture(&times))?;
    if is_explained(store, rows, left, &sides) {
        return None;
    }
    let odd = left.iter().zip(&sides.is_odd).filter(|(_, is_odd)| **is_odd).map(|(row, _)| *row);
    Some((odd.collect(), name))
}

fn is_even(times: &[f64]) -> bool {
    let mut times = times.to_vec();
    let (short, long) = (quantile(&mut times, 0.015), quantile(&mut times, 0.985));
    short.zip(long).is_none_or(|(short, long)| long < EVEN * short)
}

/// Whether the longer side is explained by page faults, preemption, or marks.
fn is_explained(store: &Store, rows: &[StepRow<'_>], all: &[usize], sides: &KindSides) -> bool {
    let side = |longer: bool| {
        let is_on_it = move |(_, is_odd): &(&usize, &bool)| (**is_odd == sides.is_longer()) == longer;
        all.iter().zip(&sides.is_odd).filter(is_on_it).map(|(row, _)| &rows[*row])
    };
    let usual = |longer: bool, number: fn(&ThreadUsage) -> u64| {
        median(&mut side(longer).filter_map(|row| Some(number(&row.usage()?) as f64)).collect::<Vec<f64>>())
    };
    let differs = |number: fn(&ThreadUsage) -> u64, least: f64| {
        let numbers = usual(true, number).zip(usual(false, number));
        numbers.is_some_and(|(long, short)| long >= least && long > TIMES * short)
    };
    let marked = |longer: bool| {
        let (marked, all) =
            side(longer).fold((0, 0), |sum, row| (sum.0 + usize::from(is_marked(store, row)), sum.1 + 1));
        marked as f64 / f64::from(all.max(1))
    };
    differs(|usage| usage.minor_faults, FAULTS)
        || differs(|usage| usage.involuntary_switches, SWITCHES)
        || marked(true) > MARKED && marked(false) < MARKED / 2.0
}

fn is_marked(store: &Store, row: &StepRow<'_>) -> bool {
    store.marks().within(row.start_ns()..row.end_ns()).next().is_some()
}
