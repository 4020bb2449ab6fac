//! A run of W&B before 0.10, which wrote a row of its history in each line of `wandb-history.jsonl`, and readings of hardware in
//! `wandb-events.jsonl`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Map, Value};

use super::places::{failed, file_name};
use super::series::History;
use crate::import::outcome::ImportError;

/// The history's file.
pub(super) const HISTORY: &str = "wandb-history.jsonl";
const EVENTS: &str = "wandb-events.jsonl";
const METADATA: &str = "wandb-metadata.json";
/// Longer lines are left out.
const MAX_LINE: u64 = 1 << 20;
/// What readings are called before their names.
const READING: &str = "system.";
/// Dictionaries in dictionaries, at the most.
const MAX_DEPTH: usize = 8;
/// Python writes these as they are, which is no JSON.
const NOT_FINITE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// The history in this file, with what is beside it.
pub(super) fn read(file: &Path) -> Result<History, ImportError> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut history = History::named(run_name(folder));
    each_row(file, &mut history, add_row).map_err(|error| failed(file, error))?;
    let events = folder.join(EVENTS);
    if events.is_file() {
        each_row(&events, &mut history, add_readings).map_err(|error| failed(&events, error))?;
    }
    Ok(history)
}

/// The name in the metadata, or else the id, at which the folder's name ends.
fn run_name(folder: &Path) -> String {
    let mut text = String::new();
    let read = File::open(folder.join(METADATA)).and_then(|file| file.take(MAX_LINE).read_to_string(&mut text));
    let metadata: Option<Value> = read.ok().and_then(|_| serde_json::from_str(&text).ok());
    let name = metadata.as_ref().and_then(|metadata| metadata["name"].as_str()).filter(|name| !name.is_empty());
    let folder = file_name(folder);
    name.unwrap_or_else(|| folder.rsplit('-').next().unwrap_or_default()).to_owned()
}

fn each_row(file: &Path, history: &mut History, add: fn(&Map<String, Value>, &mut History)) -> io::Result<()> {
    let mut lines = BufReader::new(File::open(file)?);
    loop {
        let mut line = Vec::new();
        let len = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        match (len as u64, row(&line)) {
            (0, _) => return Ok(()),
            (_, Some(row)) => add(&row, history),
            (len, None) => {
                history.left_out += u64::from(!line.trim_ascii().is_empty());
                if len == MAX_LINE {
                    lines.skip_until(b'\n')?;
                }
            }
        }
    }
}

fn row(line: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(line).ok()?;
    serde_json::from_str(text).ok().or_else(|| {
        let quoted = NOT_FINITE
            .iter()
            .fold(text.to_owned(), |text, word| text.replace(&format!(": {word}"), &format!(": \"{word}\"")));
        serde_json::from_str(&quoted).ok()
    })
}

fn add_row(row: &Map<String, Value>, history: &mut History) {
    let number = |name: &str| row.get(name).and_then(Value::as_f64).unwrap_or_default();
    let mut values = Vec::new();
    let logged = row.iter().filter(|(name, _)| !name.starts_with('_'));
    logged.for_each(|(name, value)| collect(name, value, 0, &mut values, &mut history.other_entries));
    history.add_row(number("_timestamp") * 1e9, number("_step") as i64, &values);
}

/// Adds a value, or those of a dictionary under its name.
fn collect(name: &str, value: &Value, depth: usize, values: &mut Vec<(String, f64)>, others: &mut u64) {
    match value {
        Value::Object(inner) if depth < MAX_DEPTH => {
            inner.iter().for_each(|(part, value)| collect(&format!("{name}.{part}"), value, depth + 1, values, others));
        }
        _ => match number(value) {
            Some(number) => values.push((name.to_owned(), number)),
            None => *others += 1,
        },
    }
}

fn number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some(word) if NOT_FINITE.contains(&word) => word.parse().ok(),
        _ => value.as_f64(),
    }
}

fn add_readings(row: &Map<String, Value>, history: &mut History) {
    let wall_ns = row.get("_timestamp").and_then(Value::as_f64).unwrap_or_default() * 1e9;
    for (name, value) in row {
        if let Some((name, value)) = name.strip_prefix(READING).zip(value.as_f64()) {
            history.add_reading(name, wall_ns, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_have_what_is_no_json() {
        let values = |line: &str| {
            let (mut values, mut others) = (Vec::new(), 0);
            for (name, value) in &row(line.as_bytes())? {
                collect(name, value, 0, &mut values, &mut others);
            }
            Some((format!("{values:?}"), others))
        };
        let found = values(r#"{"loss": NaN, "least": -Infinity, "sub": {"a": 1, "text": "x: NaN"}}"#);
        assert_eq!(found, None, "a text that would be changed");
        let found = values(r#"{"loss": NaN, "least": -Infinity, "sub": {"a": 1, "text": "x"}}"#);
        assert_eq!(found.unwrap(), (r#"[("least", -inf), ("loss", NaN), ("sub.a", 1.0)]"#.to_owned(), 1));
        assert_eq!(values("[1]"), None);
    }
}
