//! A run of W&B, as its offline mode leaves it: `offline-run-.../run-ID.wandb`, messages `Record` of `wandb_internal.proto`. An online
//! run has the same file while it lasts, and where its folder stays. Before 0.10 there was another (`wandb_jsonl`).

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use gnntop_analysis::figures::counted;

use super::options::HistoryOptions;
use super::places::{entries, failed, file_name, select, useless};
use super::protobuf::{Value, fields};
use super::series::History;
use super::{wandb_jsonl, wandb_log};
use crate::import::outcome::ImportError;

/// The history of a run's file, or of the one that a folder has.
pub(super) fn read(path: &Path, said: &HistoryOptions) -> Result<History, ImportError> {
    let file = run_file(path, said.only.as_deref())?;
    if file_name(&file) == wandb_jsonl::HISTORY {
        return wandb_jsonl::read(&file);
    }
    let opened = File::open(&file).map_err(|error| failed(&file, error))?;
    let mut history = History::default();
    let end = wandb_log::read(BufReader::new(opened), |record| add_record(record, &mut history));
    let end = end.map_err(|error| failed(&file, error))?;
    if !end.is_log {
        return Err(useless(&file, "is no file of a run of W&B: these are called run-ID.wandb"));
    }
    if end.damaged_blocks > 0 {
        let parts = counted(end.damaged_blocks, "part", "parts");
        let warning = format!("{parts} of 32 KiB damaged or cut: what could not be read there is left out");
        history.account.warnings.push(warning);
    }
    if end.too_long > 0 {
        let records = counted(end.too_long, "record", "records");
        history.account.warnings.push(format!("{records} of more than {} MiB: left out", wandb_log::MAX_LEN >> 20));
    }
    if history.name.is_empty() {
        history.name = run_id(&file);
    }
    Ok(history)
}

/// The id of a run, in the name of its file, or of its folder where all files have the same name.
fn run_id(file: &Path) -> String {
    match file_name(file) {
        name if name == wandb_jsonl::HISTORY => {
            let folder = file.parent().map(file_name).unwrap_or_default();
            folder.rsplit('-').next().unwrap_or_default().to_owned()
        }
        name => name.trim_start_matches("run-").trim_end_matches(".wandb").to_owned(),
    }
}

/// The file of a run: this one, the one in this folder, or the one in a folder of a run in it.
fn run_file(path: &Path, only: Option<&str>) -> Result<PathBuf, ImportError> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let is_run = |file: &PathBuf| {
        file.extension().is_some_and(|extension| extension == "wandb") || file_name(file) == wandb_jsonl::HISTORY
    };
    let mut found: Vec<PathBuf> = entries(path)?.into_iter().filter(is_run).collect();
    for folder in [path.to_owned(), path.join("wandb")] {
        if found.is_empty() && folder.is_dir() {
            // `latest-run` is a link to one of the others.
            let folders = entries(&folder)?.into_iter().filter(|entry| entry.is_dir() && !entry.is_symlink());
            for folder in folders {
                found.extend(entries(&folder)?.into_iter().filter(is_run));
            }
        }
    }
    if found.is_empty() {
        return Err(useless(
            path,
            "has no run of W&B: a file run-ID.wandb or wandb-history.jsonl, in a folder offline-run-... or run-...",
        ));
    }
    let id = |file: &PathBuf| {
        let folder = file.parent().map(file_name).unwrap_or_default();
        [run_id(file), folder]
    };
    select(path, found, id, only)
}

/// Adds what is of use in a `Record { history = 2, stats = 7, run = 17 }`.
fn add_record(record: &[u8], history: &mut History) {
    for (number, value) in fields(record) {
        match number {
            2 => add_row(value, history),
            7 => add_readings(value, history),
            17 => {
                let name = fields(value.bytes()).find(|(number, _)| *number == 8);
                history.name = name.map_or_else(String::new, |(_, name)| name.text());
            }
            _ => (),
        }
    }
}

/// A row: `HistoryRecord { item = 1 { key = 1, nested_key = 2, value_json = 16 } }`.
fn add_row(row: Value<'_>, history: &mut History) {
    let (mut wall_s, mut step, mut values) = (0.0, 0, Vec::new());
    for (_, item) in fields(row.bytes()).filter(|(number, _)| *number == 1) {
        let (key, value) = item_of(item);
        match (key.as_str(), value) {
            ("_timestamp", Some(value)) => wall_s = value,
            ("_step", Some(value)) => step = value as i64,
            (key, Some(value)) if !key.starts_with('_') => values.push((key.to_owned(), value)),
            (key, None) if !key.starts_with('_') => history.other_entries += 1,
            _ => (),
        }
    }
    history.add_row(wall_s * 1e9, step, &values);
}

/// A name, or the parts of one, and its number as JSON; `None` for what is no number.
fn item_of(item: Value<'_>) -> (String, Option<f64>) {
    let (mut key, mut parts, mut json) = (String::new(), Vec::new(), String::new());
    for (number, value) in fields(item.bytes()) {
        match number {
            1 => key = value.text(),
            2 => parts.push(value.text()),
            16 => json = value.text(),
            _ => (),
        }
    }
    let number = match json.trim().trim_matches('"') {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        number => serde_json::from_str::<f64>(number).ok(),
    };
    (if key.is_empty() { parts.join(".") } else { key }, number)
}

/// Readings of hardware: `StatsRecord { timestamp = 2 { seconds = 1, nanos = 2 }, item = 3 { key = 1, value_json = 16 } }`.
fn add_readings(stats: Value<'_>, history: &mut History) {
    let time = fields(stats.bytes()).find(|(number, _)| *number == 2);
    let part = |number| {
        let found = time.and_then(|(_, time)| fields(time.bytes()).find(|(known, _)| *known == number));
        found.map_or(0.0, |(_, value)| value.int() as f64)
    };
    let wall_ns = part(1) * 1e9 + part(2);
    for (_, item) in fields(stats.bytes()).filter(|(number, _)| *number == 3) {
        if let (key, Some(value)) = item_of(item) {
            history.add_reading(&key, wall_ns, value);
        }
    }
}
