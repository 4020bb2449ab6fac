//! Switches for debugging that are on in a training: they make each operation slower, and how much is in no record.

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(switches) = evidence.store.session().debugging() else { return CheckOutcome::Nothing };
    let finding = Finding::for_run(FindingKind::Debugging, Confidence::High, None, |_| {
        format!("the program trains with what is meant for debugging: {switches}")
    });
    let finding = switches.split(", ").filter_map(advice).fold(finding, Finding::with_advice);
    Finding { severity: Severity::Major, ..finding }.into()
}

/// How to turn it off.
fn advice(switch: &str) -> Option<&'static str> {
    match switch {
        "anomaly detection" => Some(
            "train without torch.autograd.detect_anomaly(): it looks at every gradient, and keeps a stack for every operation",
        ),
        "CUDA_LAUNCH_BLOCKING=1" => Some("unset CUDA_LAUNCH_BLOCKING: with it the program waits for every kernel"),
        "TORCH_DISTRIBUTED_DEBUG=DETAIL" => {
            Some("unset TORCH_DISTRIBUTED_DEBUG: with DETAIL the ranks compare every collective")
        }
        "PYTHONMALLOC=debug" | "PYTHONMALLOC=malloc_debug" | "PYTHONMALLOC=pymalloc_debug" => {
            Some("unset PYTHONMALLOC: with debug, Python fills and checks all memory")
        }
        "Python's development mode" => Some("run Python without -X dev (PYTHONDEVMODE): it checks memory and objects"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::planned::StepPlan;
    use gnntop_wire::{Definition, Fact};

    use super::*;
    use crate::findings::Judgement;
    use crate::findings::tests::{store_of, stream};

    #[test]
    fn every_switch_is_named_with_how_to_turn_it_off() {
        let found = |switches: &str| {
            let mut stream = stream(100, |_| StepPlan::default(), &[]);
            stream.define(Definition::Fact(Fact::Other { key: "debugging".to_owned(), text: switches.to_owned() }));
            let found = Judgement::for_steps(&store_of(stream), 0..u64::MAX).findings.found;
            found.into_iter().find(|finding| finding.kind == FindingKind::Debugging).unwrap()
        };
        let all = "anomaly detection, CUDA_LAUNCH_BLOCKING=1, TORCH_DISTRIBUTED_DEBUG=DETAIL, PYTHONMALLOC=debug, Python's development mode";
        let it = found(all);
        assert!(it.summary.ends_with(all) && it.advice.len() == 5, "{it:#?}");
        assert_eq!(found("a switch of later").advice, [""; 0]);
    }
}
