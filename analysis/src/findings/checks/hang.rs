//! Hang: a process that is no rank of several makes no step, and where it is. Of several ranks, see
//! [`crate::findings::rank_findings`].

use gnntop_wire::Quantity;

use crate::figures::counted;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::ranks::hang::RankActivity;
use crate::ranks::lone_hang::{LoneHang, find_lone_hang};
use crate::store::Store;

/// A process that uses fewer cores waits.
const WAITS: f64 = 0.1;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let newest = |ordinal: u64| evidence.store.steps().last().is_some_and(|row| row.ordinal() == ordinal);
    let is_newest = evidence.rows.last().or(evidence.warm_up.last()).is_some_and(|row| newest(row.ordinal()));
    match find_lone_hang(evidence.store).filter(|_| is_newest) {
        Some(hang) => finding(evidence.store, &hang).into(),
        None => CheckOutcome::Nothing,
    }
}

fn finding(store: &Store, hang: &LoneHang) -> Finding {
    let cores = hardware::rate_per_s(store, Quantity::ProcessCpuTime, &(hang.since_ns..store.now_ns()));
    let cores = cores.map(|ns| ns / 1e9);
    // What computes may come back.
    let is_certain = cores.is_some_and(|cores| cores < WAITS) || hang.is_over;
    let confidence = if is_certain { Confidence::High } else { Confidence::Medium };
    let finding = Finding::for_run(FindingKind::Hang, confidence, None, |facts| {
        facts.time(Number::Lasting, hang.for_ns as f64);
        hang.sentence()
    });
    let finding = finding.with_evidence_lines(|facts| {
        let steps = counted(store.steps().total(), "step", "steps");
        let usual = facts.time(Number::Step, hang.usual_step_ns as f64);
        let place = hang.place.as_ref().map(|place| format!("it is in {place}"));
        let call = hang.call.as_ref().map(|call| format!("the thread waits in the system call {call}"));
        let cores = cores.map(|cores| {
            let does = if cores < WAITS { "it waits" } else { "it computes" };
            format!("{does}: it uses {:.2} cores meanwhile", facts.number(Number::Cores, cores))
        });
        [Some(format!("{steps} ended before that; a step usually takes {usual}")), place, call, cores]
            .into_iter()
            .flatten()
    });
    Finding { severity: Severity::Major, ..finding }.with_advice(advice(hang))
}

fn advice(hang: &LoneHang) -> &'static str {
    let call = hang.call.as_deref().unwrap_or_default();
    match &hang.activity {
        RankActivity::Data(_) => "see what the loader is doing: a lock, a full disk, a dead worker",
        RankActivity::Together(_) | RankActivity::Neighbour(_) => {
            "see whether the other ranks are there, and call the same collectives in the same order"
        }
        _ if call.starts_with("read of pts") || call.starts_with("read of tty") => {
            "the program reads from the terminal: give it what it asks for, or take the question out"
        }
        _ if hang.place.is_some() => "see what that line waits for",
        _ => "look at its stack, such as with gdb -p or py-spy dump",
    }
}
