//! Event files of TensorBoard: messages `Event` of its `event.proto`, of which the scalars are read.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::options::HistoryOptions;
use super::places::{entries, failed, file_name, select, useless};
use super::protobuf::{Value, fields};
use super::series::History;
use super::tfrecord::{self, RecordEnd};
use crate::import::outcome::ImportError;

/// What is in the name of every event file.
const EVENTS: &str = "tfevents";
/// TensorFlow's numbers of types, in a tensor.
const FLOAT: i64 = 1;
const DOUBLE: i64 = 2;

/// The scalars of an event file, or of all that are in a folder.
pub(super) fn read(path: &Path, said: &HistoryOptions) -> Result<History, ImportError> {
    let (folder, files) = files(path, said.only.as_deref())?;
    let mut history = History::named(file_name(&folder));
    for file in &files {
        let opened = File::open(file).map_err(|error| failed(file, error))?;
        let end = tfrecord::read(BufReader::new(opened), |record| add_event(record, &mut history));
        match end.map_err(|error| failed(file, error))? {
            RecordEnd::Whole => (),
            RecordEnd::Cut => {
                history.account.warnings.push(format!("{} ends within a record, which is left out", file_name(file)));
            }
            RecordEnd::Damaged(at) => history
                .account
                .warnings
                .push(format!("{} is damaged at byte {at}: what follows is left out", file_name(file))),
        }
    }
    if files.len() > 1 {
        history.account.used.push(format!("{} event files of one folder, as one run", files.len()));
    }
    Ok(history)
}

/// The event files that are meant, and whose they are.
fn files(path: &Path, only: Option<&str>) -> Result<(PathBuf, Vec<PathBuf>), ImportError> {
    if path.is_file() {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        return Ok((folder.unwrap_or(path).to_owned(), vec![path.to_owned()]));
    }
    let of = |folder: &Path| -> Result<Vec<PathBuf>, ImportError> {
        Ok(entries(folder)?.into_iter().filter(|file| file_name(file).contains(EVENTS) && file.is_file()).collect())
    };
    let own = of(path)?;
    if !own.is_empty() && only.is_none() {
        return Ok((path.to_owned(), own));
    }
    let mut below = Vec::new();
    for folder in entries(path)?.into_iter().filter(|folder| folder.is_dir()) {
        let files = of(&folder)?;
        if !files.is_empty() {
            below.push((folder, files));
        }
    }
    if below.is_empty() {
        return Err(useless(path, "has no event file: its name contains \"tfevents\""));
    }
    select(path, below, |(folder, _)| [file_name(folder), String::new()], only)
}

/// Adds the scalars of an `Event { wall_time = 1, step = 2, summary = 5 }`.
fn add_event(event: &[u8], history: &mut History) {
    let (mut wall_s, mut step) = (None, 0);
    for (number, value) in fields(event) {
        match number {
            1 => wall_s = value.float(),
            2 => step = value.int(),
            _ => (),
        }
    }
    let summaries = fields(event).filter(|(number, _)| *number == 5).flat_map(|(_, summary)| fields(summary.bytes()));
    for (_, value) in summaries.filter(|(number, _)| *number == 1) {
        let mut tag = String::new();
        let mut scalar = None;
        for (number, field) in fields(value.bytes()) {
            match number {
                1 => tag = field.text(),
                2 => scalar = field.float(),
                8 => scalar = scalar_of_tensor(field),
                _ => (),
            }
        }
        match (scalar, wall_s) {
            (Some(scalar), Some(wall_s)) => history.add(&tag, wall_s * 1e9, step, scalar),
            _ => history.other_entries += 1,
        }
    }
}

/// The number in a tensor that has only one, as TensorFlow 2 writes scalars:
/// `TensorProto { dtype = 1, tensor_content = 4, float_val = 5, double_val = 6 }`.
fn scalar_of_tensor(tensor: Value<'_>) -> Option<f64> {
    let dtype = fields(tensor.bytes()).find(|(number, _)| *number == 1)?.1.int();
    let data = fields(tensor.bytes()).find(|(number, _)| [4, 5, 6].contains(number))?.1;
    match (dtype, data) {
        (FLOAT, Value::Bytes(bytes)) => Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        (DOUBLE, Value::Bytes(bytes)) => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        (FLOAT | DOUBLE, number) => number.float(),
        _ => None,
    }
}
