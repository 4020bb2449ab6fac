//! Recordings of PyTorch on a real GPU (`recordings/labelled/gpu-*`, an H200): what steps take and use is by the GPU's clock, not by
//! that of the host, which queues work.

use std::path::Path;

use gnntop_analysis::energy::{Assumptions, EnergyScope};
use gnntop_analysis::findings::{FindingKind, all_findings};
use gnntop_analysis::ranks::Run;

use crate::labelled::score::read_run;

fn recording(name: &str) -> Run {
    read_run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/labelled").join(name))
}

/// The host waits for data 17 % of the time in a loop of ten steps between two reads of the loss, and the GPU 2 %.
#[test]
fn what_the_gpu_waits_for_decides_not_what_the_host_waits_for() {
    let run = recording("gpu-epochs.gnntop");
    let store = run.store();
    let of_host = store.statistics().share(store.phase("data wait").unwrap().slot).unwrap();
    assert!(of_host > 0.15, "{of_host}");
    let findings = all_findings(store);
    let kinds: Vec<FindingKind> = findings.found.iter().map(|finding| finding.kind).collect();
    assert!(!kinds.contains(&FindingKind::DataBound), "{kinds:?}");
    assert!(!kinds.contains(&FindingKind::StepKinds), "{kinds:?}");
}

#[test]
fn energy_of_a_gpu_is_split_by_its_own_phases() {
    let run = recording("gpu-epochs.gnntop");
    let store = run.store();
    let book = store.energy(&Assumptions::default());
    let gpu = book.components.iter().find(|component| component.name == "gpu 0").unwrap();
    assert!(gpu.device.is_ok());
    let phases = store.energy_by_phase(gpu);
    let all: f64 = phases.iter().map(|(_, figure)| figure.joules).sum();
    let share = |name: &str| phases.iter().find(|(phase, _)| *phase == name).unwrap().1.joules / all;
    assert!(book.total(EnergyScope::Job, store.steps_time().unwrap()).unwrap().0.joules > all);
    // By the host's clock, 17 % and 23 %.
    assert!(share("data wait") < 0.05, "{}", share("data wait"));
    assert!(share("backward") > 0.5, "{}", share("backward"));
}
