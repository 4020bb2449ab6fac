//! Causes outside a step's work that make it longer: such steps are not a separate kind.

use super::sides::KindSides;
use crate::findings::robust::median;
use crate::store::{StepRow, Store};
use gnntop_wire::ThreadUsage;

/// The usual number on one side is at least this many times that on the other...
const TIMES: f64 = 5.0;
/// ...and at least so large: page faults,
const FAULTS: f64 = 500.0;
/// or how often the CPU was taken away.
const SWITCHES: f64 = 3.0;
/// If this share of a kind's steps has marks, they explain it.
const MARKED: f64 = 0.5;

/// Whether the longer side is explained by page faults, preemption, or marks.
pub(super) fn explain(store: &Store, rows: &[StepRow<'_>], all: &[usize], sides: &KindSides) -> bool {
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
