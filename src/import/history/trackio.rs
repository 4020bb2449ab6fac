//! A run of trackio: in the SQLite database of its project, a row for each call that logs, with its values as JSON.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::options::HistoryOptions;
use super::places::{entries, failed, file_name, select, useless};
use super::series::History;
use super::sqlite::{Cell, Database};
use crate::import::outcome::ImportError;

/// The history of a run in a project's database, or in the only one of a folder.
pub(super) fn read(path: &Path, said: &HistoryOptions) -> Result<History, ImportError> {
    let path = &project(path)?;
    let database = Database::open(path).map_err(|error| failed(path, error))?;
    let mut runs: Vec<[String; 2]> = Vec::new();
    let found = database.rows("metrics", ["run_name", "run_id"], |[name, id]| {
        let run = [name.text(), id.text()];
        if runs.last() != Some(&run) && !runs.contains(&run) {
            runs.push(run);
        }
    });
    found.map_err(|error| failed(path, error))?;
    let run = select(path, runs, Clone::clone, said.only.as_deref())?;
    let mut history = History::named(run[0].clone());
    let columns = ["run_name", "run_id", "timestamp", "step", "metrics"];
    let read = database.rows("metrics", columns, |[name, id, time, step, values]| {
        if [name.text(), id.text()] == run {
            let values = numbers(&values, &mut history);
            history.add_row(wall_ns(&time), step.int(), &values);
        }
    });
    read.map_err(|error| failed(path, error))?;
    let when = "rows have the time at which trackio wrote them, several at once, about twice a second";
    history.account.guessed.push(when.to_owned());
    // Older versions have no such table.
    let columns = ["run_name", "run_id", "timestamp", "metrics"];
    let _ = database.rows("system_metrics", columns, |[name, id, time, values]| {
        if [name.text(), id.text()] == run {
            for (key, value) in numbers(&values, &mut history) {
                history.add_reading(&key, wall_ns(&time), value);
            }
        }
    });
    Ok(history)
}

/// The database of a project.
fn project(path: &Path) -> Result<PathBuf, ImportError> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let is_database = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "db");
    let mut found: Vec<PathBuf> = entries(path)?.into_iter().filter(is_database).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(useless(path, "has no project of trackio: a file PROJECT.db")),
        _ => {
            let names: Vec<String> = found.iter().take(20).map(|file| file_name(file)).collect();
            Err(useless(path, format!("has several projects: give the file of one: {}", names.join(", "))))
        }
    }
}

/// Nanoseconds since 1970; 0 where it is no time.
fn wall_ns(time: &Cell) -> f64 {
    time.text().parse::<Timestamp>().map_or(0.0, |time| time.as_nanosecond() as f64)
}

/// The numbers of a row.
fn numbers(row: &Cell, history: &mut History) -> Vec<(String, f64)> {
    let Ok(Value::Object(row)) = serde_json::from_str(&row.text()) else {
        history.other_entries += 1;
        return Vec::new();
    };
    let mut numbers = Vec::new();
    for (name, value) in row {
        match value {
            Value::Number(value) => numbers.extend(value.as_f64().map(|value| (name, value))),
            // What JSON has no number for.
            Value::String(text) if text == "NaN" => numbers.push((name, f64::NAN)),
            Value::String(text) if text == "Infinity" => numbers.push((name, f64::INFINITY)),
            Value::String(text) if text == "-Infinity" => numbers.push((name, f64::NEG_INFINITY)),
            _ => history.other_entries += 1,
        }
    }
    numbers
}
