//! `gnntop run` and `gnntop train`: starting programs, their output, their exit codes, their sessions.

use std::fs;
use std::path::PathBuf;

use crate::sessions::{Ran, Sessions, signal, spawn, wait_until};

fn logs(sessions: &Sessions) -> Vec<PathBuf> {
    let entries = fs::read_dir(sessions.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect()
}

#[test]
fn the_exit_code_is_passed_on() {
    let sessions = Sessions::new();
    assert_eq!(sessions.run(["run", "--", "true"]).code, Some(0));
    assert_eq!(sessions.run(["run", "--", "sh", "-c", "exit 7"]).code, Some(7));
    assert_eq!(sessions.run(["run", "--", "sh", "-c", "kill -9 $$"]).code, Some(128 + 9));
    sessions.run(["run", "--", "no-such-program"]).refused("cannot start no-such-program: No such file");
    assert_eq!(sessions.run(["run"]).code, Some(2));
}

#[test]
fn output_goes_into_a_log_and_its_end_is_shown_after_a_failure() {
    let sessions = Sessions::new();
    let ran = sessions.run(["run", "--", "sh", "-c", "echo to out; echo to err >&2; exit 3"]);
    assert_eq!(ran.code, Some(3));
    assert!(!ran.out.contains("to out"), "{ran:?}");
    assert!(ran.err.contains("sh ended with exit code 3") && ran.err.contains("  to err"), "{ran:?}");
    let logs = logs(&sessions);
    assert_eq!(logs.len(), 1);
    assert_eq!(fs::read_to_string(&logs[0]).unwrap(), "to out\nto err\n");
}

#[test]
#[cfg(feature = "workloads")]
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
fn the_program_gets_what_it_needs() {
    let sessions = Sessions::new();
    let script = r#"read line; echo "$line $GNNTOP_DIR""#;
    let ran = sessions.run_with(["run", "--", "sh", "-c", script], b"piped\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let expected = format!("piped {}\n", sessions.path().display());
    assert_eq!(fs::read_to_string(&logs(&sessions)[0]).unwrap(), expected);
}

#[test]
fn the_program_and_the_doctor_look_for_counters_where_they_are_told() {
    let sessions = Sessions::new();
    let zone = sessions.path().join("rapl/intel-rapl:0");
    fs::create_dir_all(&zone).unwrap();
    for (name, text) in [("name", "package-0"), ("energy_uj", "1234567"), ("max_energy_range_uj", "262143328850")] {
        fs::write(zone.join(name), text).unwrap();
    }
    // A relative path is one of the command line, wherever the program goes.
    let script = "cd / && echo $GNNTOP_POWERCAP_ROOT";
    let ran = sessions.run(["run", "--powercap-root", "rapl", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = fs::read_to_string(&logs(&sessions)[0]).unwrap();
    assert_eq!(PathBuf::from(said.trim()), sessions.path().join("rapl").canonicalize().unwrap());
    let doctor = sessions.run(["doctor", "--powercap-root", "rapl"]);
    assert!(doctor.out.contains("zones intel-rapl:0 (package-0)"), "{}", doctor.out);
    let nowhere = sessions.run(["doctor", "--powercap-root", "nowhere"]);
    assert!(nowhere.code == Some(2) && nowhere.err.contains("No such file or directory"), "{}", nowhere.err);
}

#[test]
fn an_interruption_is_passed_on_once() {
    let sessions = Sessions::new();
    let script =
        "trap 'echo interrupted >> signals; exit 5' INT; touch ready; for _ in $(seq 2400); do sleep 0.05; done";
    let child = spawn(&mut sessions.gnntop(["run", "--", "sh", "-c", script]));
    wait_until(|| sessions.path().join("ready").exists());
    signal(&child, "INT");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(fs::read_to_string(sessions.path().join("signals")).unwrap(), "interrupted\n");
}

#[test]
fn a_program_that_publishes_nothing_is_seen_and_recorded_from_outside() {
    let sessions = Sessions::new();
    let ran = sessions.run(["run", "--record", "a.gnntop", "--", "sleep", "0.5"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("hardware only"), "{ran:?}");
    assert!(ran.err.contains("hardware only: the program published no steps"), "{ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!((&report["session"]["name"], &report["steps"]["total"]), (&"sleep".into(), &0.into()));
    sessions.file("b.gnntop", b"precious");
    sessions.run(["run", "--record", "b.gnntop", "--", "touch", "started"]).refused("b.gnntop already exists");
    assert!(!sessions.path().join("started").exists(), "nothing was started");
}

#[test]
fn the_hardware_of_any_process_is_recorded() {
    let sessions = Sessions::new();
    let own = std::process::id().to_string();
    let ran = sessions.run(["record", &own, "-o", "a.gnntop", "--duration", "400ms"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["session"]["pid"], std::process::id());
    sessions.run(["report", &own]).refused("does not publish");
}

#[cfg(not(feature = "workloads"))]
#[test]
fn without_trainings_it_says_what_it_was_built_without() {
    let sessions = Sessions::new();
    for words in [["train", "pna"], ["run", "pna"]] {
        sessions.run(words).refused("this gnntop was built without the built-in trainings");
    }
}

#[cfg(feature = "workloads")]
mod workloads {
    use super::*;
    use std::ffi::OsString;
    use std::path::Path;

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
    fn an_interrupted_training_ends_in_good_order() {
        let sessions = Sessions::new();
        let child = spawn(&mut sessions.gnntop(["train", "pna", "--steps", "1000000"]));
        wait_until(|| sessions.run(["list"]).out.contains("live"));
        signal(&child, "INT");
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(130), "{ran:?}");
        let attached = sessions.run(["attach", "pna"]);
        assert!(attached.code == Some(0) && attached.out.contains("ended"), "{attached:?}");
        assert!(!attached.out.contains("unexpectedly"), "{attached:?}");
    }

    #[test]
    fn a_killed_training_can_still_be_looked_at_and_saved() {
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
    fn a_sampled_training_shows_sampling_where_it_happens() {
        let sessions = Sessions::new();
        let small = ["--nodes", "600", "--edges", "6000", "--batch-size", "64", "--fanouts", "4,4", "--hidden", "8"];
        let train = |more: &[&str]| sessions.run([&["train", "sage", "--epochs", "1"][..], &small, more].concat());
        assert_eq!(train(&["--workers", "0", "--record", "alone.gnntop"]).code, Some(0));
        assert_eq!(train(&["--workers", "2", "--record", "loaded.gnntop"]).code, Some(0));
        // Done by the training's own thread, sampling is a phase of its steps; done by loaders, the wait for it is.
        let alone = sessions.run(["report", "alone.gnntop"]).out;
        assert!(["sample", "gather", "forward", "F1 train"].iter().all(|name| alone.contains(name)), "{alone}");
        assert!(!alone.contains("data wait"), "{alone}");
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
    fn stages_of_a_pipeline_publish_what_they_do_with_every_micro_batch() {
        let sessions = Sessions::new();
        let small = ["--images", "8", "--batch-size", "4", "--blocks", "3", "--epochs", "1", "--split", "2,1"];
        let train = ["train", "vig", "--schedule", "1f1b", "--micro-batches", "2", "--record", "a.gnntop"];
        let ran = sessions.run([&train[..], &small].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        // The first stage holds two micro-batches, the last one; each says how many blocks it has.
        for (rank, blocks, live) in [("0", 2, 2), ("1", 1, 1)] {
            let said = sessions.run(["export", "a.gnntop", "--rank", rank, "--to", "ndjson"]);
            assert_eq!(said.code, Some(0), "{said:?}");
            let events: Vec<serde_json::Value> =
                said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let named = |name: &'static str| events.iter().filter(move |event| event["name"] == name);
            for name in ["schedule 1f1b", "micro-batches", "training set", "receive", "send", "micro-batch 1"] {
                assert!(named(name).next().is_some(), "rank {rank} without {name}: {said:?}");
            }
            let value = |name| named(name).filter_map(|event| event["value"].as_f64()).fold(0.0, f64::max);
            assert_eq!((value("blocks"), value("live activations")), (f64::from(blocks), f64::from(live)));
        }
    }

    #[test]
    fn every_documented_training_is_understood() {
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
    fn unknown_names_and_settings_are_answered() {
        let sessions = Sessions::new();
        for command in ["run", "train"] {
            let unknown = sessions.run([command, "pan"]);
            assert_eq!((unknown.code, unknown.err.lines().count()), (Some(2), 1), "{unknown:?}");
            assert!(
                unknown.err.contains("no workload pan; workloads are gat, gcn, gin, pna, sage, vig"),
                "{unknown:?}"
            );
            // Nothing is started, and nothing but clap's own error is printed.
            let misspelt = sessions.run([command, "pna", "--epoch", "3"]);
            assert_eq!((misspelt.code, misspelt.out.as_str()), (Some(2), ""), "{misspelt:?}");
            assert!(misspelt.err.starts_with("error: unexpected argument '--epoch'"), "{misspelt:?}");
            assert!(misspelt.err.contains("'--epochs'") && !misspelt.err.contains("output is in"), "{misspelt:?}");
        }
        let help = sessions.run(["train", "pna", "--help"]);
        assert!(help.code == Some(0) && help.out.contains("--steps"), "{help:?}");
    }
}

/// A control group with little memory; it is gone when this is dropped.
struct Cramped(PathBuf);

impl Cramped {
    /// Makes it within the group that this process is in. An error is why it cannot be.
    fn new(bytes: u64) -> Result<Self, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| format!("/proc/self/cgroup: {error}"))?;
        let of = |line: &str| match line.splitn(3, ':').collect::<Vec<_>>()[..] {
            [_, "memory", path] => Some((format!("/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes")),
            ["0", "", path] => Some((format!("/sys/fs/cgroup{path}"), "memory.max")),
            _ => None,
        };
        let mut why = "no control group is told".to_owned();
        for (parent, limit) in groups.lines().filter_map(of) {
            let group = Self(PathBuf::from(parent).join(format!("gnntop-test-{}", std::process::id())));
            let made = fs::create_dir(&group.0).and_then(|()| {
                // Without the controller there is no such file, and none can be made here.
                let mut file = fs::OpenOptions::new().write(true).open(group.0.join(limit))?;
                std::io::Write::write_all(&mut file, bytes.to_string().as_bytes())
            });
            match made {
                Ok(()) => return Ok(group),
                Err(error) => why = format!("a control group with {limit} cannot be made: {error}"),
            }
        }
        Err(why)
    }
}

impl Drop for Cramped {
    fn drop(&mut self) {
        // The kernel needs a moment to forget what was in it.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_program_that_was_killed_for_want_of_memory_is_told_to_have_been() {
    let cramped = match Cramped::new(32 << 20) {
        Ok(cramped) => cramped,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let sessions = Sessions::new();
    // tail keeps the last line, which never ends.
    let script = format!("echo $$ > {}/cgroup.procs && exec tail /dev/zero", cramped.0.display());
    let ran = sessions.run(["run", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, Some(128 + 9), "{ran:?}");
    assert!(ran.err.contains("The kernel's out-of-memory killer ran on this machine at that time"), "{ran:?}");
    let other = sessions.run(["run", "--", "sh", "-c", "kill -9 $$"]);
    assert!(other.code == Some(128 + 9) && !other.err.contains("memory ran out"), "{other:?}");
}
