//! What is found in the published traces of two studies. They are not part of this repository: `../shared`, or `$GNNTOP_SHARED`,
//! has them, and `./check.sh` runs these tests where it does.

use std::path::{Path, PathBuf};

use super::{MarkFile, imported};
use crate::sessions::Sessions;
use gnntop_analysis::energy::{Assumptions, ComponentKind, Label};
use gnntop_analysis::findings::{self, Finding, FindingKind};
use gnntop_analysis::store::Store;

/// The published traces of a study.
fn traces_of(study: &str) -> PathBuf {
    let shared = std::env::var_os("GNNTOP_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    // Commands run elsewhere.
    shared.join(format!("data/{study}_study_traces")).canonicalize().unwrap()
}

fn find(store: &Store, kind: FindingKind) -> Option<Finding> {
    findings::all_findings(store).found.into_iter().find(|finding| finding.kind == kind)
}

fn spikes(store: &Store) -> Vec<u64> {
    let places = find(store, FindingKind::Spike).map(|finding| finding.places).unwrap_or_default();
    places.iter().map(|place| store.steps().row(place.ordinals.start).unwrap().step().0).collect()
}

#[test]
#[ignore = "needs the published traces beside the repository: CONTRIBUTING.md"]
fn the_published_outliers_are_found_and_no_others() {
    let traces = traces_of("pna");
    let of = |file: &str| spikes(&imported(&traces.join(file), &[], &[]).unwrap().1);
    assert_eq!(of("base/pna_base_bs512_wk2.csv"), [136, 456, 672, 1089]);
    assert_eq!(of("spike/pna_spike_bs512_wk0_gc_on.csv"), [22, 76, 168, 258]);
    for clean in
        ["base/pna_base_bs4096_wk2.csv", "manual/pna_manual_gc_bs512_wk2.csv", "spike/pna_spike_bs512_wk0_gc_off.csv"]
    {
        assert_eq!(of(clean), [0; 0], "{clean}");
    }
}

#[test]
#[ignore = "needs the published traces beside the repository: CONTRIBUTING.md"]
fn every_third_step_of_the_largest_batch_is_a_partial_batch() {
    let traces = traces_of("pna");
    let (_, store) = imported(&traces.join("simple/pna_simple_bs4096_wk2.csv"), &[], &[]).unwrap();
    let partial = find(&store, FindingKind::PartialBatch).unwrap();
    assert!(partial.count >= 29 && partial.places.iter().all(|place| (place.ordinals.start + 1) % 3 == 0));
    let fit = &partial.evidence[0];
    let r: f64 = fit.split_once("r = ").unwrap().1.trim_end_matches(')').parse().unwrap();
    assert!(fit.contains("1,000 edges") && r > 0.99, "{fit}");
    assert_eq!(spikes(&store), [0; 0]);
}

#[test]
#[ignore = "needs the published traces beside the repository: CONTRIBUTING.md"]
fn garbage_collections_are_joined_by_time() {
    let traces = traces_of("pna");
    let marks = [MarkFile { name: "gc".into(), path: traces.join("spike/pna_spike_bs512_wk0_gc_events.csv") }];
    let (_, store) = imported(&traces.join("spike/pna_spike_bs512_wk0_gc_on.csv"), &[], &marks).unwrap();
    assert_eq!(store.marks().iter().len(), 17);
    let stall = find(&store, FindingKind::Stall).unwrap();
    assert!(stall.summary.contains("4 in steps, 13 between them"), "{}", stall.summary);
    let spike = find(&store, FindingKind::Spike).unwrap();
    assert!(spike.places.iter().all(|place| place.sentence.ends_with("more in forward")), "{spike:#?}");
}

#[test]
#[ignore = "needs the published traces beside the repository: CONTRIBUTING.md"]
fn the_published_epoch_leaves_out_the_wait_for_data() {
    let traces = traces_of("pna");
    let (_, store) = imported(&traces.join("simple/pna_simple_bs512_wk2.csv"), &[], &[]).unwrap();
    let gap = find(&store, FindingKind::Gap).unwrap();
    let said = "timers around steps add up to 2.11 s an epoch, the wall clock shows 2.60 s";
    assert!(gap.evidence.iter().any(|line| line == said), "{gap:#?}");
    assert_eq!(store.statistics().epochs(), 15);
    assert_eq!(store.statistics().batch().edges.sum, 15 * 287_000);
}

#[test]
#[ignore = "needs the published traces beside the repository: CONTRIBUTING.md"]
fn published_cpu_energy_is_found_to_be_modelled() {
    let traces = traces_of("pna");
    let file = traces.join("carbon/pna_carbon_bs4096_wk2_steps.csv");
    let (_, store) = imported(&file, &["total:cpu.energy=cpu_energy:kWh"], &[]).unwrap();
    let energy = find(&store, FindingKind::ModelledEnergy).unwrap();
    assert!(energy.summary.contains("a constant 360 W"), "{}", energy.summary);
    let book = store.energy(&Assumptions::default());
    let cpu = book.components.iter().find(|component| component.kind == ComponentKind::Cpu).unwrap();
    assert_eq!(cpu.source.as_deref(), Some("column cpu_energy"));
    let figure = cpu.device.as_ref().unwrap().figure(0..u64::MAX).unwrap();
    assert_eq!(figure.label, Label::Modelled, "a table's number is not ours to call measured");
    assert!(figure.hi > 2.9 * figure.joules && figure.lo < 0.35 * figure.joules, "{figure:?}");
}

/// Imports the training steps of one of the pipeline study's ranks.
fn pipeline_rank(sessions: &Sessions, file: &Path, to: &str, said: &[&str]) -> String {
    let mut words = vec!["import", "csv", file.to_str().unwrap(), "-o", to, "--only", "phase=0"];
    words.extend(["--column", "duration=batch_time(s):s"]);
    words.extend(said);
    let ran = sessions.run(words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    to.to_owned()
}

#[test]
#[ignore = "needs the published traces beside the repository: CONTRIBUTING.md"]
fn published_pipelines_show_missing_control_and_slow_stage() {
    let traces = traces_of("vig");
    let sessions = Sessions::new();
    let sequential = pipeline_rank(&sessions, &traces.join("seq.csv"), "seq.gnntop", &[]);
    let compared = |stages: u32, micro_batches: u32| {
        let file = traces.join(format!("pipe_0_micro{micro_batches}_stage{stages}.csv"));
        let (place, fact) = (format!("0/{stages}"), format!("micro-batches={micro_batches}"));
        let name = format!("{stages}-{micro_batches}.gnntop");
        let said = ["--rank", &place, "--stage", &place, "--fact", &fact];
        let pipeline = pipeline_rank(&sessions, &file, &name, &said);
        let ran = sessions.run(["compare", &sequential, &pipeline]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    let (two, four) = (compared(2, 5), compared(4, 5));
    assert!(two.contains("B is 1.97 x as fast as A; its ranks and stages can give at most 1.67 x"), "{two}");
    assert!(
        two.contains("a speed-up of 1.97 is more than the 1.67 that 2 stages with 5 micro-batches can give"),
        "{two}"
    );
    assert!(two.contains("try the control is missing: measure one rank with the same micro-batches"), "{two}");
    assert!(four.contains("the slowest stage takes about 2.8 x its even share"), "{four}");
    assert!(!four.contains("more than the ideal"), "{four}");
    assert!(compared(4, 10).contains("the slowest stage takes about 3.1 x its even share"));
}
