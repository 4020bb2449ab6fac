//! Histories that trackers' own libraries have written (`histories/SOURCE.md`), as recordings.

use std::fs;
use std::path::{Path, PathBuf};

use gnntop::import::ImportError;
use gnntop::import::history::{HistoryOptions, Tracker, import};
use gnntop_analysis::store::Store;

use super::store_of;
use crate::sessions::Sessions;

fn histories() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/histories")
}

fn imported(tracker: Tracker, path: &Path, only: Option<&str>) -> Result<(Vec<String>, Store), ImportError> {
    let options = HistoryOptions { only: only.map(str::to_owned), ..HistoryOptions::default() };
    let mut bytes = Vec::new();
    let done = import(tracker, path, &options, &mut bytes)?;
    Ok((done.account.lines(), store_of(&bytes)))
}

fn periods_ms(store: &Store) -> Vec<u64> {
    (0..store.steps().total()).map(|row| store.steps().row(row).unwrap().period_ns() / 1_000_000).collect()
}

/// What every history of the loop shows, where each step has its own time.
fn assert_is_the_loop(store: &Store) {
    let steps = |row| store.steps().row(row).unwrap().step().0;
    assert_eq!((store.steps().total(), steps(0), steps(38)), (39, 2, 40));
    let periods = periods_ms(store);
    // Of MLflow, the first call that logs takes as long.
    let slowest = periods[1..].iter().max().unwrap();
    assert_eq!(&periods[28], slowest, "step 30: {periods:?}");
    assert!((200..300).contains(slowest), "{periods:?}");
    let count = |name: &str| {
        store.counters().iter().find(|counter| store.name(counter.name) == name).map(|it| it.series.points().count())
    };
    assert_eq!((count("train/loss"), count("val/accuracy")), (Some(40), Some(4)));
}

#[test]
fn trackers_files_become_the_steps_between_their_values() {
    let histories = histories();
    let file = |name: &str| histories.join(name);
    for (tracker, path, only) in [
        (Tracker::TensorBoard, file("tensorboard/torch"), None),
        (Tracker::TensorBoard, file("tensorboard"), Some("torch")),
        (Tracker::Wandb, file("wandb"), None),
        (Tracker::Wandb, file("wandb/run-night.wandb"), None),
        (Tracker::Wandb, file("wandb-0.9.7"), None),
        (Tracker::MlFlow, file("mlruns"), None),
        (Tracker::MlFlow, file("mlflow.db"), Some("night")),
    ] {
        let (account, store) = imported(tracker, &path, only).unwrap();
        assert_is_the_loop(&store);
        assert!(account[0].starts_with("used: train/loss as steps: 40 values"), "{account:?}");
        let name = store.session().info().unwrap().name.clone();
        assert_eq!(name, if tracker == Tracker::TensorBoard { "torch" } else { "night" });
    }
}

#[test]
fn readings_of_hardware_are_signals() {
    let util = |tracker, name: &str, only| {
        let (_, store) = imported(tracker, &histories().join(name), only).unwrap();
        let signal = store.signals().find(gnntop_wire::Quantity::GpuUtil).unwrap();
        signal.series.points().map(|point| point.value().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(util(Tracker::MlFlow, "mlflow.db", Some("night")), [50_000]);
    assert_eq!(util(Tracker::Trackio, "project.db", None), [50_000]);
    let unnamed = ["no name for: cpu, ", "and 7 more"];
    for (name, said) in [("wandb", &unnamed[..]), ("wandb-0.9.7", &[])] {
        let (account, store) = imported(Tracker::Wandb, &histories().join(name), None).unwrap();
        assert!(store.signals().find(gnntop_wire::Quantity::ProcessRss).is_some(), "{name}");
        said.iter().for_each(|said| assert!(account.iter().any(|line| line.contains(said)), "{account:?}"));
    }
}

#[test]
fn steps_between_rare_values_have_their_mean_time_and_no_findings_of_single_steps() {
    let (account, store) = imported(Tracker::TensorBoard, &histories().join("tensorboard/tensors"), None).unwrap();
    assert_eq!((store.steps().total(), store.session().mean_of_steps()), (35, 5));
    let periods = periods_ms(&store);
    assert!(periods.chunks(5).all(|five| five.iter().max().unwrap() - five.iter().min().unwrap() <= 1), "{periods:?}");
    assert!(account.iter().any(|line| line.contains("5 steps apart in time")), "{account:?}");
    // trackio stamps all rows that it writes at once.
    let (_, store) = imported(Tracker::Trackio, &histories().join("project.db"), None).unwrap();
    assert!(store.session().mean_of_steps() > 5);
}

#[test]
fn what_is_cut_damaged_or_something_else_is_said() {
    let sessions = Sessions::new();
    let torch = fs::read_dir(histories().join("tensorboard/torch")).unwrap().next().unwrap().unwrap().path();
    let events = fs::read(&torch).unwrap();
    let wandb = fs::read(histories().join("wandb/run-night.wandb")).unwrap();
    let import = |tracker: &str, bytes: &[u8]| {
        let file = sessions.file("events.tfevents", bytes);
        sessions.run(["import", tracker, file.to_str().unwrap(), "-o", "t.gnntop", "--force"])
    };
    let cut = import("tensorboard", &events[..events.len() - 700]);
    assert!(cut.code == Some(0) && cut.err.contains("ends within a record"), "{cut:?}");
    let mut damaged = events;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let damaged = import("tensorboard", &damaged);
    assert!(damaged.code == Some(0) && damaged.err.contains("is damaged at byte"), "{damaged:?}");
    let cut = import("wandb", &wandb[..wandb.len() - 3000]);
    assert!(cut.code == Some(0) && cut.err.contains("damaged or cut"), "{cut:?}");
    import("wandb", b"something").assert_refused("is no file of a run of W&B");
    import("tensorboard", b"").assert_refused("has no numbers with a time");
    import("mlflow", b"").assert_refused("is no SQLite database");
    import("trackio", &[7; 200]).assert_refused("is no SQLite database");
    let address = sessions.run(["import", "mlflow", "http://127.0.0.1:5000", "-o", "t.gnntop"]);
    assert!(address.code == Some(2) && address.err.contains("is an address"), "{address:?}");
    fs::create_dir(sessions.path().join("empty")).unwrap();
    sessions.run(["import", "mlflow", "empty", "-o", "t.gnntop", "--force"]).assert_refused("has no run of MLflow");
    let path = histories().join("mlflow.db");
    let several = sessions.run(["import", "mlflow", path.to_str().unwrap(), "-o", "t.gnntop", "--force"]);
    several.assert_refused("name one with --only");
}

#[test]
fn hostile_files_end_in_an_error_or_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let sources =
        [(Tracker::MlFlow, "mlflow.db"), (Tracker::Trackio, "project.db"), (Tracker::Wandb, "wandb/run-night.wandb")];
    for (tracker, name) in sources {
        let whole = fs::read(histories().join(name)).unwrap();
        for at in 0..60 {
            let mut bytes = whole.clone();
            let place = at * 7919 % bytes.len();
            let end = (place + 40).min(bytes.len());
            bytes[place..end].fill([0, 0xff, 0x7f, 5][at % 4]);
            bytes.truncate(if at % 5 == 0 { place } else { bytes.len() });
            let file = dir.path().join("file.db");
            fs::write(&file, bytes).unwrap();
            let options = HistoryOptions { only: Some("night".to_owned()), ..HistoryOptions::default() };
            let _ = import(tracker, &file, &options, Vec::new());
        }
    }
}
