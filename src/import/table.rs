//! Tables with a head, read row by row. A table is hostile input: rows are bounded in number, and every number is
//! looked at before it is believed.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use super::error::ImportError;

/// Rows that are read at the most.
const MAX_ROWS: usize = 10_000_000;
/// Bytes of a table that are read at the most: a row without an end must not fill the memory.
const MAX_BYTES: u64 = 8 << 30;

/// A table, whose rows can be gone through more than once.
pub(super) struct Table {
    path: String,
    file: File,
    /// The columns' names.
    pub(super) columns: Vec<String>,
}

/// A row of it.
pub(super) struct Row<'a> {
    table: &'a str,
    columns: &'a [String],
    record: csv::StringRecord,
}

impl Table {
    pub(super) fn open(path: &Path) -> Result<Self, ImportError> {
        let name = path.display().to_string();
        let file = File::open(path).and_then(rewindable);
        let file = file.map_err(|error| ImportError::Io { path: name.clone(), error })?;
        let mut table = Self { path: name, file, columns: Vec::new() };
        let mut reader = table.reader()?;
        table.columns = reader.headers().map_err(|error| table.failed(error))?.iter().map(str::to_owned).collect();
        Ok(table)
    }

    /// Reads from the beginning.
    fn reader(&self) -> Result<csv::Reader<io::Take<BufReader<File>>>, ImportError> {
        let file = self.file.try_clone().and_then(|mut file| file.rewind().map(|()| file));
        let file = file.map_err(|error| ImportError::Io { path: self.path.clone(), error })?;
        Ok(csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(BufReader::new(file).take(MAX_BYTES)))
    }

    fn failed(&self, error: csv::Error) -> ImportError {
        ImportError::Csv { path: self.path.clone(), error }
    }

    /// The table's file.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Where a column is.
    pub(super) fn position(&self, column: &str) -> Result<usize, ImportError> {
        self.columns.iter().position(|there| there == column).ok_or_else(|| ImportError::NoColumn {
            path: self.path.clone(),
            column: column.to_owned(),
            there: self.columns.join(", "),
        })
    }

    /// Hands every row to `take`, from the first one.
    pub(super) fn each(&self, mut take: impl FnMut(&Row<'_>) -> Result<(), ImportError>) -> Result<(), ImportError> {
        let mut row = Row { table: &self.path, columns: &self.columns, record: csv::StringRecord::new() };
        let (mut reader, mut rows) = (self.reader()?, 0);
        while reader.read_record(&mut row.record).map_err(|error| self.failed(error))? {
            rows += 1;
            if rows > MAX_ROWS {
                let reason = format!("more than {MAX_ROWS} rows: import it in parts");
                return Err(ImportError::Nothing { path: self.path.clone(), reason });
            }
            take(&row)?;
        }
        Ok(())
    }
}

/// What can be read more than once: what comes from a pipe is laid into a file that is gone with this process.
fn rewindable(mut file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let mut copy = tempfile::tempfile()?;
    io::copy(&mut (&mut file).take(MAX_BYTES), &mut copy)?;
    Ok(copy)
}

impl Row<'_> {
    /// A finite number that is at least `least`; `None` for an empty cell.
    pub(super) fn number(&self, at: usize, least: f64, wanted: &'static str) -> Result<Option<f64>, ImportError> {
        let text = self.record.get(at).unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= least => Ok(Some(number)),
            _ => Err(self.wrong(at, text, wanted)),
        }
    }

    /// A number as [`Row::number`], which must be there.
    pub(super) fn needed(&self, at: usize, least: f64, wanted: &'static str) -> Result<f64, ImportError> {
        self.number(at, least, wanted)?.ok_or_else(|| self.wrong(at, "", wanted))
    }

    /// The cell's text.
    pub(super) fn text(&self, at: usize) -> &str {
        self.record.get(at).unwrap_or_default()
    }

    fn wrong(&self, at: usize, value: &str, wanted: &'static str) -> ImportError {
        ImportError::Value {
            path: self.table.to_owned(),
            line: self.record.position().map_or(0, csv::Position::line),
            column: self.columns.get(at).cloned().unwrap_or_default(),
            value: value.chars().take(80).collect(),
            wanted,
        }
    }
}
