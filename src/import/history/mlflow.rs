//! A run of MLflow: in its folder `mlruns`, a file for each metric with lines `milliseconds value step`; or in its SQLite database.

use std::fs;
use std::path::{Path, PathBuf};

use super::options::HistoryOptions;
use super::places::{entries, failed, file_name, select, useless};
use super::series::History;
use super::signals::is_reading;
use super::sqlite::{Cell, Database};
use crate::import::outcome::ImportError;

/// Folders below a run's metrics, at the most: a name with slashes has some.
const MAX_DEPTH: usize = 8;
/// Where deleted experiments are, beside the others, and what MLflow calls a deleted run.
const TRASH: &str = ".trash";
const DELETED: &str = "deleted";

/// The history of a run in a folder or a database.
pub(super) fn read(path: &Path, said: &HistoryOptions) -> Result<History, ImportError> {
    let database = path.join("mlflow.db");
    let mut history = match () {
        () if path.is_file() => read_database(path, said),
        () if database.is_file() => read_database(&database, said),
        () => read_folder(path, said),
    }?;
    history.account.guessed.push("MLflow keeps times to the millisecond".to_owned());
    Ok(history)
}

fn add(history: &mut History, name: &str, ms: f64, step: i64, value: f64) {
    match is_reading(name) {
        true => history.add_reading(name, ms * 1e6, value),
        false => history.add(name, ms * 1e6, step, value),
    }
}

fn read_folder(path: &Path, said: &HistoryOptions) -> Result<History, ImportError> {
    let is_run = |folder: &PathBuf| folder.join("metrics").is_dir();
    let folders = |path: &Path| -> Result<Vec<PathBuf>, ImportError> {
        Ok(entries(path)?.into_iter().filter(|folder| folder.is_dir() && file_name(folder) != TRASH).collect())
    };
    let mut runs = vec![path.to_owned()];
    // A run, an experiment with runs, or all experiments.
    for _ in 0..2 {
        if !runs.iter().any(is_run) {
            runs = runs.iter().map(|folder| folders(folder)).collect::<Result<Vec<_>, _>>()?.concat();
        }
    }
    runs.retain(is_run);
    if runs.is_empty() {
        return Err(useless(path, "has no run of MLflow: a folder with a folder metrics, or mlflow.db"));
    }
    runs.retain(|run| run == path || !is_deleted(run));
    let run = select(path, runs, |run| [run_name(run), file_name(run)], said.only.as_deref())?;
    let mut history = History::named(run_name(&run));
    read_metrics(&run.join("metrics"), "", 0, &mut history)?;
    Ok(history)
}

/// The run's name in its `meta.yaml`, or else its id.
fn run_name(run: &Path) -> String {
    meta(run, "run_name:").unwrap_or_else(|| file_name(run))
}

/// Whether a person has deleted the run: MLflow keeps its folder until `mlflow gc`.
fn is_deleted(run: &Path) -> bool {
    meta(run, "lifecycle_stage:").is_some_and(|stage| stage == DELETED)
}

/// What the run's `meta.yaml` has behind this.
fn meta(run: &Path, key: &str) -> Option<String> {
    let meta = fs::read_to_string(run.join("meta.yaml")).ok()?;
    let value = meta.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.trim().trim_matches(['\'', '"']).to_owned())
}

fn read_metrics(folder: &Path, above: &str, depth: usize, history: &mut History) -> Result<(), ImportError> {
    for path in entries(folder)? {
        let name = format!("{above}{}", file_name(&path));
        if path.is_dir() && depth < MAX_DEPTH {
            read_metrics(&path, &format!("{name}/"), depth + 1, history)?;
        } else if path.is_file() {
            let text = fs::read(&path).map_err(|error| failed(&path, error))?;
            for line in String::from_utf8_lossy(&text).lines() {
                let mut words = line.split_whitespace();
                let (ms, value, step) = (words.next(), words.next(), words.next());
                let parsed = ms.and_then(|ms| ms.parse().ok()).zip(value.and_then(|value| value.parse().ok()));
                match parsed {
                    Some((ms, value)) => {
                        add(history, &name, ms, step.and_then(|step| step.parse().ok()).unwrap_or_default(), value);
                    }
                    None => history.other_entries += 1,
                }
            }
        }
    }
    Ok(())
}

fn read_database(path: &Path, said: &HistoryOptions) -> Result<History, ImportError> {
    let database = Database::open(path).map_err(|error| failed(path, error))?;
    let mut runs = Vec::new();
    let found = database.rows("runs", ["run_uuid", "name", "lifecycle_stage"], |[id, name, stage]| {
        if stage.text() != DELETED {
            runs.push([name.text(), id.text()]);
        }
    });
    found.map_err(|error| failed(path, error))?;
    let [name, id] = select(path, runs, Clone::clone, said.only.as_deref())?;
    let mut history = History::named(if name.is_empty() { id.clone() } else { name });
    let columns = ["run_uuid", "key", "value", "timestamp", "step", "is_nan"];
    let read = database.rows("metrics", columns, |[run, key, value, ms, step, is_nan]| {
        if run.text() == id {
            let value = if is_nan == Cell::Int(1) { Some(f64::NAN) } else { value.float() };
            add(&mut history, &key.text(), ms.float().unwrap_or_default(), step.int(), value.unwrap_or(f64::NAN));
        }
    });
    read.map_err(|error| failed(path, error))?;
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_runs_are_left_out_unless_their_folder_is_given() {
        let runs = tempfile::tempdir().unwrap();
        let add = |run: &str, meta: &str| {
            let run = runs.path().join(run);
            fs::create_dir_all(run.join("metrics")).unwrap();
            fs::write(run.join("meta.yaml"), meta).unwrap();
            fs::write(run.join("metrics/loss"), "1700000000000 0.5 1\nno number\n").unwrap();
            run
        };
        add("0/a", "lifecycle_stage: active\nrun_name: night\n");
        let deleted = add("0/b", "lifecycle_stage: deleted\nrun_name: 'day'\n");
        let read = |path: &Path| read(path, &HistoryOptions::default()).unwrap();
        let night = read(runs.path());
        assert_eq!((night.name.as_str(), night.other_entries, night.left_out), ("night", 1, 0));
        assert_eq!(read(&deleted).name, "day");
        add(".trash/c", "lifecycle_stage: active\n");
        fs::remove_dir_all(runs.path().join("0")).unwrap();
        assert!(super::read(runs.path(), &HistoryOptions::default()).is_err());
    }
}
