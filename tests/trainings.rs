//! The program with its built-in trainings: what they publish, how they end, and hangs that really happen. Run by
//! `workloads/check.sh`; the tests of everything else need no training.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod hangs;
mod sessions;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use sessions::{Ran, Sessions, ignored_hangup, signal, spawn, wait_until};

#[test]
fn a_training_that_is_recorded_is_published_too_wherever_the_file_is_named() {
    let sessions = Sessions::new();
    let size = ["--graphs", "64", "--batch-size", "32", "--layers", "1", "--hidden", "8", "--workers", "0"];
    let ran = sessions.run([&["run", "pna"][..], &size, &["--epochs", "3", "--record", "a.gnntop"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("recorded"), "{ran:?}");
    assert!(sessions.run(["list"]).out.contains("pna"), "it was published");
    let report = sessions.run(["report", "a.gnntop"]);
    assert!(report.out.contains("forward"), "{report:?}");
}

#[test]
fn a_workload_is_trained_published_and_recorded() {
    let sessions = Sessions::new();
    let arguments = ["run", "--record", "a.gnntop", "pna", "--steps", "12"];
    let ran = sessions.run(arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("recorded a.gnntop: "), "{ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["session"]["name"], "pna");
    assert_eq!(report["steps"]["total"], 12);
    let names: Vec<&str> = report["phases"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    for phase in ["data wait", "forward", "backward", "optimizer", "gap", "step"] {
        assert!(names.contains(&phase), "{phase} in {names:?}");
    }
}

#[test]
fn validation_between_epochs_is_a_phase_and_no_gap() {
    let sessions = Sessions::new();
    let size = ["--graphs", "640", "--batch-size", "32", "--layers", "2", "--hidden", "8", "--workers", "0"];
    let long = ["--validation", "0.9", "--epochs", "4", "--record", "a.gnntop"];
    assert_eq!(sessions.run([&["train", "pna"][..], &size, &long].concat()).code, Some(0));
    let rows = sessions.run(["export", "a.gnntop", "--to", "csv", "--wide"]).out;
    let mut rows = csv::Reader::from_reader(rows.as_bytes());
    let headers = rows.headers().unwrap().clone();
    let at = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let (validation, gap) = (at("validation_ns"), at("gap_ns"));
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 8);
    for (row, fields) in rows.iter().enumerate() {
        // It lies between the last step of an epoch and the first one of the next, whose period it is in.
        let [validation, gap] = [validation, gap].map(|at| fields[at].parse::<f64>().unwrap_or(0.0));
        assert_eq!(validation > 0.0, row > 0 && row % 2 == 0, "row {row}: {fields:?}");
        assert!(validation == 0.0 || gap < validation / 2.0, "row {row}: {fields:?}");
    }
}

#[test]
fn interrupted_training_ends_cleanly() {
    let sessions = Sessions::new();
    let child = spawn(&mut sessions.gnntop(["train", "pna", "--steps", "1000000"]));
    wait_until(|| sessions.run(["list"]).out.contains("live"));
    signal(&child, "INT");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let attached = sessions.run(["attach", "pna"]);
    assert!(attached.code == Some(0) && attached.out.contains("ended"), "{attached:?}");
    assert!(!attached.out.contains("unexpectedly"), "{attached:?}");
}

#[test]
fn killed_training_can_be_reported_and_recorded() {
    let sessions = Sessions::new();
    let mut child = spawn(&mut sessions.gnntop(["train", "pna", "--steps", "1000000"]));
    wait_until(|| sessions.run(["report"]).out.contains("forward"));
    child.kill().unwrap();
    child.wait().unwrap();
    let attached = sessions.run(["attach", "pna"]);
    assert!(attached.out.contains("ended unexpectedly: killed?"), "{attached:?}");
    assert_eq!(sessions.run(["record", "pna", "--last", "5m", "-o", "a.gnntop"]).code, Some(0));
    assert!(sessions.run(["report", "a.gnntop"]).out.contains("forward"));
}

#[test]
fn sampled_training_has_sampling_phase() {
    let sessions = Sessions::new();
    let small = ["--nodes", "600", "--edges", "6000", "--batch-size", "64", "--fanouts", "4,4", "--hidden", "8"];
    let train = |more: &[&str]| sessions.run([&["train", "sage", "--epochs", "1"][..], &small, more].concat());
    assert_eq!(train(&["--workers", "0", "--record", "alone.gnntop"]).code, Some(0));
    assert_eq!(train(&["--workers", "2", "--record", "loaded.gnntop"]).code, Some(0));
    // Done by the training's own thread, sampling is a phase of its steps; done by loaders, the wait for it is.
    let alone = sessions.run(["report", "alone.gnntop"]).out;
    assert!(["sample", "forward", "F1 train"].iter().all(|name| alone.contains(name)), "{alone}");
    // Features are read where they are, except operation by operation.
    assert!(!alone.contains("data wait") && !alone.contains("gather"), "{alone}");
    assert_eq!(train(&["--workers", "0", "--plain", "--record", "plain.gnntop"]).code, Some(0));
    let plain = sessions.run(["report", "plain.gnntop"]).out;
    assert!(plain.contains("gather"), "{plain}");
    let loaded = sessions.run(["report", "loaded.gnntop"]).out;
    assert!(["data wait", "forward", "queue depth"].iter().all(|name| loaded.contains(name)), "{loaded}");
}

#[test]
fn ranks_train_together_each_in_a_session_of_its_own() {
    let sessions = Sessions::new();
    let small = ["--nodes", "600", "--edges", "6000", "--batch-size", "64", "--fanouts", "4,4", "--hidden", "8"];
    let ran = sessions.run([&["train", "sage", "--epochs", "1", "--ranks", "2"][..], &small].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("2 ranks of ") && ran.err.contains("seeds, split between 2 ranks"), "{ran:?}");
    // Everything that the run's ranks published, by the run's name.
    assert_eq!(sessions.run(["record", "sage", "--last", "5m", "-o", "run.gnntop"]).code, Some(0));
    let report = sessions.run(["report", "run.gnntop"]);
    for words in ["all-reduce", "2 of 2 ranks, engine threads", "all ranks together: "] {
        assert!(report.out.contains(words), "{words} in {report:?}");
    }
}

#[test]
fn pipeline_stages_publish_every_micro_batch() {
    let sessions = Sessions::new();
    let small = ["--images", "8", "--batch-size", "4", "--blocks", "3", "--epochs", "1", "--split", "2,1"];
    let train = ["train", "vig", "--schedule", "1f1b", "--micro-batches", "2", "--record", "a.gnntop"];
    let ran = sessions.run([&train[..], &small].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The first stage holds two micro-batches, the last one; each says how many blocks it has.
    for (rank, blocks, live) in [("0", 2, 2), ("1", 1, 1)] {
        let said = sessions.run(["export", "a.gnntop", "--rank", rank, "--to", "ndjson"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let events: Vec<serde_json::Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let named = |name: &'static str| events.iter().filter(move |event| event["name"] == name);
        for name in ["schedule 1f1b", "micro-batches", "training set", "receive", "send", "micro-batch 1"] {
            assert!(named(name).next().is_some(), "rank {rank} without {name}: {said:?}");
        }
        let value = |name| named(name).filter_map(|event| event["value"].as_f64()).fold(0.0, f64::max);
        assert_eq!((value("blocks"), value("live activations")), (f64::from(blocks), f64::from(live)));
    }
}

#[test]
fn every_documented_command_line_is_parsed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|page| page.unwrap().path());
    let mut commands = 0;
    for page in pages.chain([root.join("README.md")]).filter(|page| page.extension() == Some("md".as_ref())) {
        let text = fs::read_to_string(&page).unwrap();
        let parts =
            text.lines().filter(|line| !line.starts_with(['|', ' '])).flat_map(|line| line.split(['#', ';', '&']));
        for part in parts {
            let words: Vec<&str> = part.split_whitespace().collect();
            let ["gnntop", "run" | "train", name, options @ ..] = &words[..] else { continue };
            if name.starts_with('-') || !name.chars().all(|c| c.is_ascii_lowercase()) {
                continue;
            }
            let options: Vec<OsString> = options.iter().map(Into::into).collect();
            let parsed = gnntop_workloads::command::Workload::parse(name, &options);
            parsed.unwrap_or_else(|error| panic!("{}: {part}: {error}", page.display()));
            commands += 1;
        }
    }
    assert!(commands > 30, "{commands}");
}

#[test]
fn unknown_workloads_and_options_are_refused() {
    let sessions = Sessions::new();
    for command in ["run", "train"] {
        let unknown = sessions.run([command, "pan"]);
        assert_eq!((unknown.code, unknown.err.lines().count()), (Some(2), 1), "{unknown:?}");
        assert!(unknown.err.contains("no workload pan; workloads are gat, gcn, gin, pna, sage, vig"), "{unknown:?}");
        // Nothing is started, and nothing but clap's own error is printed.
        let misspelt = sessions.run([command, "pna", "--epoch", "3"]);
        assert_eq!((misspelt.code, misspelt.out.as_str()), (Some(2), ""), "{misspelt:?}");
        assert!(misspelt.err.starts_with("error: unexpected argument '--epoch'"), "{misspelt:?}");
        assert!(misspelt.err.contains("'--epochs'") && !misspelt.err.contains("output is in"), "{misspelt:?}");
    }
    let help = sessions.run(["train", "pna", "--help"]);
    assert!(help.code == Some(0) && help.out.contains("--steps"), "{help:?}");
}

#[test]
fn training_under_nohup_survives_hangup() {
    let sessions = Sessions::new();
    let mut command = sessions.gnntop(["train", "pna", "--steps", "1000000"]);
    let child = spawn(ignored_hangup(&mut command));
    let steps = || sessions.run(["report", "--json"]).out;
    let total = || serde_json::from_str::<serde_json::Value>(&steps()).ok()?["steps"]["total"].as_u64();
    wait_until(|| total().is_some_and(|total| total > 0));
    signal(&child, "HUP");
    let before = total();
    wait_until(|| total() > before);
    signal(&child, "INT");
    assert_eq!(Ran::new(&child.wait_with_output().unwrap()).code, Some(130));
}
