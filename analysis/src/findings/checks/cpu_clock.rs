//! A CPU whose clock gets lower during the run, by heat or a limit on its power, and steps that get slower with it.

use std::ops::Range;

use gnntop_wire::Quantity;

use super::check::fewer_than;
use crate::figures::{FigureUnit, duration};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::store::Signal;

/// With fewer steps a quarter of them says little.
const ENOUGH: usize = 40;
/// A processor takes longer to get hot.
const LEAST_NS: f64 = 30e9;
/// A clock below this part of what it was is lower...
const LOWER: f64 = 0.9;
/// ...where the program uses as much of the CPU as before, within this share: a core alone has a higher clock than many...
const ALIKE: f64 = 0.15;
/// ...and steps take this much longer.
const SLOWER: f64 = 0.05;

/// The first or the last quarter of the steps.
struct Quarter {
    /// Median clock of the main thread's core.
    mhz: f64,
    /// Cores that the program uses.
    cores: f64,
    /// Median time of a step, as a multiple of what its work explains.
    step: f64,
}

impl Quarter {
    fn new(evidence: &StepEvidence<'_>, clock: &Signal, rows: Range<usize>) -> Option<Self> {
        let span = evidence.rows.get(rows.start)?.period_start_ns()..evidence.rows.get(rows.end - 1)?.end_ns();
        let mut mhz: Vec<f64> = hardware::held_values(clock, &span).map(|(value, _)| value).collect();
        let cores = hardware::rate_per_s(evidence.store, Quantity::ProcessCpuTime, &span)? / 1e9;
        let mut ratios: Vec<f64> = rows.map(|row| evidence.inside_ns[row] / evidence.by_work_ns[row]).collect();
        Some(Self { mhz: median(&mut mhz)?, cores, step: median(&mut ratios)? })
    }
}

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(clock) = evidence.store.signals().find(Quantity::MainThreadClock) else {
        return CheckOutcome::NotEnough("the CPU's clock is not recorded".to_owned());
    };
    let n = evidence.rows.len();
    if n < ENOUGH {
        return fewer_than(evidence, ENOUGH);
    }
    if evidence.wall_ns < LEAST_NS {
        let reason =
            format!("only {} of steps: too short for a processor to get hot", duration(evidence.wall_ns as u64));
        return CheckOutcome::NotEnough(reason);
    }
    let quarters = [0..n / 4, 3 * n / 4..n].map(|rows| Quarter::new(evidence, clock, rows));
    let [Some(first), Some(last)] = quarters else {
        return CheckOutcome::NotEnough("the CPU's clock is not recorded at both ends of the run".to_owned());
    };
    let is_alike = (last.cores - first.cores).abs() <= ALIKE * first.cores;
    let slower = last.step / first.step - 1.0;
    if last.mhz >= LOWER * first.mhz || !is_alike || slower < SLOWER {
        return CheckOutcome::Nothing;
    }
    finding(&first, &last, slower).into()
}

fn finding(first: &Quarter, last: &Quarter, slower: f64) -> Finding {
    let finding = Finding::for_run(FindingKind::CpuClock, Confidence::Medium, None, |facts| {
        let from = facts.note(Number::From, first.mhz * 1e6, FigureUnit::Frequency);
        let to = facts.note(Number::To, last.mhz * 1e6, FigureUnit::Frequency);
        let slower = facts.share(Number::Slower, slower);
        format!("the CPU's clock falls from {from} to {to}, and steps take {slower} longer")
    });
    finding
        .with_evidence(
            "medians of the first and the last quarter of the steps; the program uses as many cores as before",
        )
        .with_advice(
            "check the cooling, the limit on power, and the battery; use fewer threads; compare runs at a fixed clock",
        )
}
