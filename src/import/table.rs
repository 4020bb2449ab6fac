//! Tables with a head, read row by row. A table is hostile input: rows are bounded in number, and every number is
//! looked at before it is believed.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::error::ImportError;

/// Rows that are read at the most.
const MAX_ROWS: usize = 10_000_000;
/// Bytes of a table that are read at the most: a row without an end must not fill the memory.
const MAX_BYTES: u64 = 8 << 30;

/// A table that is being read.
pub(super) struct Table {
    path: String,
    reader: csv::Reader<std::io::Take<BufReader<File>>>,
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
        let file = File::open(path).map_err(|error| ImportError::Io { path: name.clone(), error })?;
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(BufReader::new(file).take(MAX_BYTES));
        let failed = |error| ImportError::Csv { path: name.clone(), error };
        let columns = reader.headers().map_err(failed)?.iter().map(str::to_owned).collect();
        Ok(Self { path: name, reader, columns })
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

    /// Hands every row to `take`.
    pub(super) fn each(
        &mut self,
        mut take: impl FnMut(&Row<'_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let mut row = Row { table: &self.path, columns: &self.columns, record: csv::StringRecord::new() };
        let mut rows = 0;
        let failed = |error| ImportError::Csv { path: self.path.clone(), error };
        while self.reader.read_record(&mut row.record).map_err(failed)? {
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
