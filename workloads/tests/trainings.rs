//! Every training as the command line starts it: it learns, its forms and loaders agree, and impossible requests are
//! errors.

use std::ffi::OsString;

use gnntop_nn::kernels::MatmulPrecision;
use gnntop_workloads::command::Workload;
use gnntop_workloads::train::{Observer, StepReport, Summary, TrainError};

/// The output of a training run.
#[derive(Default)]
struct Watch {
    lines: Vec<String>,
    losses: Vec<f64>,
}

impl Observer for Watch {
    fn report_line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    fn step(&mut self, report: &StepReport) {
        self.losses.push(report.loss);
    }
}

/// Trains into a recording that is thrown away.
fn attempt(name: &str, options: &str) -> Result<(Watch, Summary), TrainError> {
    let folder = tempfile::tempdir().unwrap();
    let mut words: Vec<OsString> = options.split_whitespace().map(OsString::from).collect();
    words.extend(["--record".into(), folder.path().join("a.gnntop").into()]);
    let mut watch = Watch::default();
    let summary = Workload::parse(name, &words)?.run(&mut watch)?;
    assert!(std::fs::metadata(folder.path().join("a.gnntop")).unwrap().len() > 1000);
    Ok((watch, summary))
}

fn run(name: &str, options: &str) -> Watch {
    attempt(name, options).unwrap().0
}

fn refused(name: &str, options: &str) -> String {
    attempt(name, options).err().expect("must be refused").with_causes()
}

/// The number before `%` in the last line that has `words`.
fn percentage_after(watch: &Watch, words: &str) -> f64 {
    let line = watch.lines.iter().rev().find(|line| line.contains(words)).expect("a line");
    let rest = line.split(words).nth(1).unwrap().trim();
    rest.split(' ').next().unwrap().parse().unwrap()
}

fn assert_near(a: &[f64], b: &[f64], relative: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= relative * (1.0 + b.abs()), "{a} instead of {b}");
    }
}

#[test]
fn gcn_learns_the_reference_recipe() {
    let watch = run("gcn", "--runs 1 --epochs 60");
    assert_eq!(watch.losses.len(), 60);
    let accuracy = percentage_after(&watch, "test accuracy");
    assert!(accuracy > 70.0, "{accuracy} %, guessing gives 14");
}

#[test]
fn every_mode_of_gcn_trains_and_says_what_it_traded() {
    let watch = run("gcn", "--mode all --recipe study --runs 2 --epochs 3");
    // Two of the five take the graph whole, one step an epoch; the others two sampled batches.
    assert_eq!(watch.losses.len(), 2 * 3 * (1 + 2 + 2 + 2 + 1));
    assert!(watch.losses.iter().all(|loss| loss.is_finite()));
    for mode in ["full", "sampled", "sampled-bf16", "sampled-fp16", "compiled"] {
        let line = watch.lines.iter().find(|line| line.starts_with(&format!("{mode}: "))).expect(mode);
        assert!(line.contains("test accuracy") && line.contains("(mean of 2)"), "{line}");
    }
}

#[test]
fn gcn_is_the_same_whole_or_compiled_sparse_or_plain_scattered_or_not() {
    let common = "--recipe study --runs 1 --epochs 5";
    let compiled = run("gcn", common).losses;
    for options in ["--mode full", "--plain", "--kernels scatter", "--mode full --plain --kernels scatter"] {
        assert_near(&run("gcn", &format!("{common} {options}")).losses, &compiled, 1e-4);
    }
}

#[test]
fn half_precision_stays_near_single() {
    let losses = |mode: &str| run("gcn", &format!("--mode {mode} --recipe study --runs 1 --epochs 4")).losses;
    let single = losses("sampled");
    assert_near(&losses("sampled-bf16"), &single, 0.05);
    assert_near(&losses("sampled-fp16"), &single, 0.05);
}

const SMALL_GRAPH: &str = "--nodes 800 --edges 16000 --batch-size 64 --fanouts 5,5 --hidden 16";

#[test]
fn sampled_trainings_learn_and_are_judged() {
    for name in ["sage", "gat"] {
        let watch = run(name, &format!("{SMALL_GRAPH} --epochs 6"));
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        let epoch = watch.losses.len() / 6;
        let (first, last) = (mean(&watch.losses[..epoch]), mean(&watch.losses[5 * epoch..]));
        assert!(last < 0.95 * first, "{name}: {first} to {last}");
        assert!(watch.lines.iter().any(|line| line.contains("micro-F1: validation 0.")), "{:?}", watch.lines);
    }
}

#[test]
fn features_on_disk_change_nothing_but_time() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sage", "gat"] {
        let common = format!("{SMALL_GRAPH} --epochs 2");
        let on_disk = run(name, &format!("{common} --features-on-disk {}", folder.path().display()));
        assert_eq!(on_disk.losses, run(name, &common).losses, "{name}");
    }
}

#[test]
fn loaders_and_kernels_change_nothing_but_time() {
    for name in ["sage", "gat"] {
        for form in ["blocks", "subgraph"] {
            let common = format!("{SMALL_GRAPH} --epochs 1 --form {form}");
            let expected = run(name, &common).losses;
            assert_eq!(run(name, &format!("{common} --workers 0")).losses, expected, "{name}");
            assert_eq!(run(name, &format!("{common} --workers 3")).losses, expected, "{name}");
            assert_near(&run(name, &format!("{common} --plain")).losses, &expected, 1e-3);
            assert_near(&run(name, &format!("{common} --plain --kernels scatter")).losses, &expected, 1e-3);
        }
    }
}

#[test]
fn products_of_bf16_stay_near_those_of_f32() {
    for name in ["sage", "gat"] {
        let options = format!("{SMALL_GRAPH} --epochs 2 --matmul-precision bf16");
        if MatmulPrecision::Bf16.check().is_err() {
            assert!(refused(name, &options).contains("this processor cannot multiply bf16 numbers"));
            continue;
        }
        let (rounded, exact) = (run(name, &options).losses, run(name, &format!("{SMALL_GRAPH} --epochs 2")).losses);
        assert_ne!(rounded, exact);
        assert_near(&rounded, &exact, 0.02);
        for form in ["--plain", "--kernels scatter"] {
            let message = refused(name, &format!("{options} {form}"));
            assert!(message.contains("the plain form has no products of bf16 numbers"), "{message}");
        }
    }
}

#[test]
fn vig_is_the_same_plain_and_fused() {
    let common = "--images 12 --batch-size 4 --blocks 2 --epochs 1";
    let fused = run("vig", common);
    assert_eq!(fused.losses.len(), 3);
    assert!(fused.lines.iter().any(|line| line.contains("test accuracy")));
    assert_near(&run("vig", &format!("{common} --plain")).losses, &fused.losses, 1e-3);
    assert_eq!(run("vig", &format!("{common} --workers 0")).losses, fused.losses);
}

#[test]
fn vig_in_stages_learns_what_its_control_does() {
    let common = "--images 12 --batch-size 4 --blocks 3 --epochs 1 --micro-batches 2";
    let control = run("vig", &format!("{common} --stages 1"));
    assert_eq!(control.losses.len(), 3);
    let judged = |watch: &Watch| watch.lines.iter().find(|line| line.contains("test accuracy")).cloned();
    for options in ["--stages 2", "--split 1,2 --schedule 1f1b --workers 0", "--stages 3 --recompute --plain"] {
        let staged = run("vig", &format!("{common} {options}"));
        assert_near(&staged.losses, &control.losses, 1e-3);
        assert!(judged(&staged).is_some() && staged.lines.iter().any(|line| line.contains("2 micro-batches")));
    }
    let balanced = run("vig", &format!("{common} --stages 2 --steps 1"));
    assert!(balanced.lines.iter().any(|line| line.starts_with("stage 0 ") && line.contains("% of the measured time")));
}

#[test]
fn copies_share_out_the_images_of_a_batch() {
    // Twelve images in parts of four: two copies need two steps, with four images in the second.
    let common = "--images 12 --batch-size 4 --blocks 2 --epochs 1 --micro-batches 2";
    for options in ["--stages 2 --copies 2", "--stages 2 --ranks 4 --schedule 1f1b", "--ranks 2"] {
        let watch = run("vig", &format!("{common} {options}"));
        assert_eq!(watch.losses.len(), 2, "{options}");
        assert!(watch.lines.iter().any(|line| line.starts_with("2 copies of ")), "{:?}", watch.lines);
    }
    assert_eq!(run("vig", &format!("{common} --ranks 2 --shard none")).losses.len(), 3);
}

#[test]
fn what_cannot_be_done_is_said() {
    for name in ["gcn", "sage", "gat", "vig", "pna"] {
        let error = refused(name, "--data /no/such/place");
        assert!(error.contains("/no/such/place"), "{name}: {error}");
    }
    assert!(refused("sage", &format!("{SMALL_GRAPH} --fanouts 5,0")).contains("fan-out"));
    assert!(refused("gcn", "--mode sampled --fanouts 0").contains("fan-out"));
    assert!(refused("vig", "--batch-size 0").contains("at least 1"));
    assert!(refused("vig", "--stages 9").contains("use fewer stages"));
    assert!(refused("vig", "--stages 2 --preset patches").contains("without stages"));
    assert!(refused("vig", "--micro-batches 5 --batch-size 4").contains("a batch of 4 images cannot be cut into"));
}

#[test]
fn a_batch_larger_than_the_set_is_the_whole_set() {
    let watch = run("sage", "--nodes 300 --edges 3000 --batch-size 100000 --fanouts 3 --hidden 8 --epochs 2");
    assert_eq!(watch.losses.len(), 2);
}
