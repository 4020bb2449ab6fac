//! What bounds the run as a finding of its own, with what to try first: the verdict's phase, if no other finding is about it.

use gnntop_wire::phase::{
    ALL_REDUCE, ASSEMBLE, BACKWARD, DATA_WAIT, FORWARD, GATHER, OPTIMIZER, RECEIVE, SAMPLE, SEND, TRANSFER, VALIDATION,
};

use super::bottleneck::Verdict;
use super::finding::{Confidence, Finding, FindingKind, Findings, NotEnough, Severity};
use super::number::Number;
use super::repeated_work;
use super::sampled_places::SampledPlaces;
use crate::store::{GAP, Store, StoredSession};

/// The type of parameters that takes twice as long as the usual one, and far longer on most GPUs.
const DOUBLE: &str = "float64";
/// Embeddings with this much of the parameters, in percent, are what an optimizer that goes through all of them works on.
const MOSTLY: u64 = 50;

/// Where the lines of the forward pass are known.
const BACKWARD_ADVICE: &str =
    "see which layer takes most of it, by the lines above or with `gnntop trace`, then try a larger batch";

/// The finding; `None` if nothing bounds the run, or another finding says so.
pub(super) fn finding(verdict: &Verdict, findings: &Findings, store: &Store) -> Option<Finding> {
    let (phase, share) = verdict.bound.as_ref().filter(|_| verdict.is_settled && verdict.bare_ns.is_none())?;
    let about = match phase.as_str() {
        DATA_WAIT | SAMPLE | GATHER | ASSEMBLE | TRANSFER => FindingKind::DataBound,
        GAP => FindingKind::Gap,
        VALIDATION => FindingKind::Validation,
        "compile" => FindingKind::Recompilation,
        ALL_REDUCE | RECEIVE | SEND => FindingKind::CommunicationBound,
        _ => FindingKind::Bound,
    };
    if findings.found.iter().any(|finding| finding.kind == about || finding.is_stall_in(phase, *share)) {
        return None;
    }
    let of = if verdict.is_on_device { " on the device" } else { "" };
    let finding = Finding::for_run(FindingKind::Bound, Confidence::High, Some(*share), |facts| {
        let share = facts.share(Number::OfTime, *share);
        match phase.as_str() {
            GAP => format!("{share} of the time is outside every phase, more than any phase takes"),
            _ => format!("{phase} takes {share} of the time{of}, more than any other phase"),
        }
    });
    // It is where the time goes, and no mistake.
    let finding = Finding { severity: Severity::Note, ..finding };
    if findings.found.iter().any(Finding::is_unmeasured_cause) {
        return Some(
            finding
                .with_evidence("the process waits for a CPU meanwhile, and how much of this time is not measured")
                .with_advice("see to the CPU contention first: it makes every phase longer than the program does"),
        );
    }
    if waits_somewhere(findings, phase) {
        return Some(
            finding
                .with_evidence("the process uses little CPU time meanwhile: it waits, and where is not recorded")
                .with_advice("see where it waits: run it with gnntop run --stacks 20, or look at its stack (py-spy dump, gdb -p)"),
        );
    }
    // A backward pass is no Python, and does what follows from the forward pass.
    let shown = if phase == BACKWARD { FORWARD } else { phase };
    let places = SampledPlaces::in_phase(store, shown);
    let finding = repeated_work::describe(store, phase, of_parameters(phase, store.session(), finding));
    let finding = match phase.as_str() {
        OPTIMIZER => finding, // one line calls it
        _ if !places.are_enough() => finding,
        _ => finding.with_evidence_lines(|facts| places.lines(facts, shown)),
    };
    let mut finding = finding.with_advice(match phase.as_str() {
        OPTIMIZER => optimizer_advice(store.session().settings()).to_owned(),
        FORWARD if places.are_enough() => forward_advice(places.line()),
        BACKWARD if places.are_enough() => BACKWARD_ADVICE.to_owned(),
        _ => advice(phase).to_owned(),
    });
    finding.advice.truncate(1); // what to try first
    Some(finding)
}

/// Adds what the model's parameters have to do with it, and what to try.
fn of_parameters(phase: &str, session: &StoredSession, finding: Finding) -> Finding {
    match (phase, session.parameters()) {
        (OPTIMIZER, Some((_, embedded @ MOSTLY..))) => finding
            .with_evidence_from(|facts| {
                let share = facts.share(Number::DenseEmbeddings, embedded as f64 / 100.0);
                format!("{share} of the parameters are in embeddings with dense gradients: each step updates all of their rows")
            })
            .with_advice("update only the rows of a batch: Embedding(sparse=True) with SparseAdam or SGD"),
        (FORWARD | BACKWARD | OPTIMIZER, Some((DOUBLE, _))) => finding
            .with_evidence("most parameters are float64")
            .with_advice("use float32 if it is precise enough: it takes about half the time and memory, and far less time on most GPUs"),
        _ => finding,
    }
}

/// Whether the phase waits for something that is not known.
fn waits_somewhere(findings: &Findings, phase: &str) -> bool {
    let is_it =
        |one: &NotEnough| one.kind == FindingKind::IdlePhase && one.reason.starts_with(&format!("{phase} uses little"));
    findings.not_enough.iter().any(is_it)
}

/// By the form that the optimizer has already.
fn optimizer_advice(settings: Option<&str>) -> &'static str {
    let form = settings.unwrap_or_default().split(", ").find_map(|setting| {
        let form = setting.rsplit(' ').next().filter(|form| ["foreach", "fused"].contains(form))?;
        (!setting.ends_with("not fused")).then_some(form)
    });
    match form {
        Some("foreach") => "try the optimizer's fused form (fused=True)",
        Some(_) => "step less often: larger batches, or gradients of several summed",
        None => "try the optimizer's fused or foreach form",
    }
}

/// By the line in which most of the forward pass is, if there is one.
fn forward_advice(line: Option<&str>) -> String {
    match line {
        Some(line) => format!("make {line} cheaper, where most of it is; then try a larger batch"),
        None => "make the lines above cheaper, then try a larger batch".to_owned(),
    }
}

fn advice(phase: &str) -> &'static str {
    match phase {
        FORWARD => {
            "see which layer takes most of it (`gnntop trace`, the spans, stacks with --stacks 20), then try a larger batch"
        }
        BACKWARD => "see which layer takes most of it (`gnntop trace`, the spans), then try a larger batch",
        DATA_WAIT | SAMPLE | GATHER | ASSEMBLE => "let loader workers prepare batches ahead, or make a batch cheaper",
        TRANSFER => "pin the batches' memory and copy them without waiting, or keep them on the device",
        ALL_REDUCE | RECEIVE | SEND => "see which rank the others wait for; communicate less often, or overlap it",
        VALIDATION => "validate less often, or on fewer batches",
        "checkpoint" => "write checkpoints less often, or from another thread",
        "gc" => {
            "collect garbage between epochs only (gc.disable(), gc.collect()), and leave out what stays (gc.freeze())"
        }
        "loss" => "see what it computes; values that are read in it (item(), print) wait for the device",
        "rollout" | "environment" => "run several environments side by side, or make a step of one cheaper",
        "compile" => "see what is compiled again: shapes that change, or code that does",
        GAP => "name what the loop does there: put phases or spans around it",
        _ => "see what it does: spans inside it, or stacks with --stacks 20",
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::{Finding, FindingKind, Judgement, Severity};
    use crate::store::Store;
    use gnntop_fixtures::{MS, TrainingRun, each_item};
    use gnntop_wire::{Definition, Fact, Item};

    fn found(phases: Vec<(&'static str, u64)>) -> Vec<Finding> {
        let mut store = Store::new();
        let run = TrainingRun { phases, steps: 200, epoch_steps: 1000, has_hardware: false, ..TrainingRun::default() };
        each_item(&run.bytes(), |item| store.apply(item));
        Judgement::for_steps(&store, 0..u64::MAX).findings.found
    }

    #[test]
    fn bound_has_a_finding_with_what_to_try() {
        let found = found(vec![("forward", 10 * MS), ("backward", 22 * MS)]);
        let [bound] = found.as_slice() else { panic!("{found:#?}") };
        assert_eq!((bound.kind, bound.severity, bound.advice.len()), (FindingKind::Bound, Severity::Note, 1));
        assert_eq!(bound.summary, "backward takes 67 % of the time, more than any other phase");
    }

    #[test]
    fn optimizer_gets_no_advice_that_it_follows() {
        let advice = |settings| super::optimizer_advice(settings);
        assert_eq!(advice(None), "try the optimizer's fused or foreach form");
        assert_eq!(advice(Some("autocast off, AdamW not fused, 2 threads")), advice(None));
        assert_eq!(advice(Some("autocast off, AdamW foreach")), "try the optimizer's fused form (fused=True)");
        assert!(advice(Some("AdamW fused, 1 thread")).starts_with("step less often"));
    }

    /// What it says of a run whose longest phase this is, with these parameters.
    fn with_parameters(phase: &'static str, number_type: &str, dense_embeddings: u64) -> Finding {
        let run = TrainingRun {
            phases: vec![("data wait", MS), (phase, 22 * MS)],
            steps: 200,
            epoch_steps: 1000,
            has_hardware: false,
            ..TrainingRun::default()
        };
        let mut store = Store::new();
        each_item(&run.bytes(), |item| store.apply(item));
        let fact = Fact::Parameters { number_type: number_type.to_owned(), dense_embeddings };
        store.apply(Item::Definitions(vec![Definition::Fact(fact)]));
        let found = Judgement::for_steps(&store, 0..u64::MAX).findings.found;
        found.into_iter().find(|finding| finding.kind == FindingKind::Bound).unwrap()
    }

    #[test]
    fn what_the_parameters_are_is_said_where_it_makes_the_phase_long() {
        let dense = with_parameters("optimizer", "float32", 98);
        assert!(dense.evidence[0].starts_with("98 % of the parameters are in embeddings"), "{dense:#?}");
        assert!(dense.advice[0].contains("Embedding(sparse=True)") && dense.advice.len() == 1, "{dense:#?}");
        let double = with_parameters("forward", "float64", 0);
        assert!(
            double.evidence[0] == "most parameters are float64" && double.advice[0].contains("float32"),
            "{double:#?}"
        );
        for usual in [("optimizer", "float32", 12), ("forward", "float32", 98), ("rollout", "float64", 0)] {
            assert_eq!(with_parameters(usual.0, usual.1, usual.2).evidence, [""; 0], "{usual:?}");
        }
    }

    #[test]
    fn bound_that_another_finding_is_about_is_not_repeated() {
        let found = found(vec![("data wait", 30 * MS), ("forward", 10 * MS)]);
        let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::DataBound]);
    }
}
