//! Tables with a head, read row by row. A table is hostile input: rows are bounded in number, and every number is
//! checked before it is used.

use std::cell::Cell;
use std::io::BufRead;
use std::ops::RangeInclusive;
use std::path::Path;

use super::input::Input;
use super::order::{Order, Sorter};
use super::outcome::ImportError;
use super::table_text::{BadLine, Cells, Dialect, Lines, Splitter, is_absent, not_utf8, parse_iso_time, parse_number};

/// Most rows that are read.
const MAX_ROWS: u64 = 10_000_000;

/// A table whose rows can be read more than once.
pub(super) struct Table {
    input: Input,
    dialect: Dialect,
    /// The order in which its rows are read; by default the file's.
    order: Option<Order>,
    left_out: Cell<SkippedRows>,
}

/// What was passed over on the last way through the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SkippedRows {
    pub(super) comments: u64,
    /// The last line, if it is cut.
    pub(super) cut_line: Option<u64>,
}

/// What a number must be.
pub(super) struct NumberKind {
    /// In words.
    pub(super) what: &'static str,
    /// From where to where it may be, in the stream's unit.
    pub(super) range: RangeInclusive<f64>,
}

/// A time: no step takes longer, and no table spans more, than a hundred years.
pub(super) const TIME: NumberKind = NumberKind { what: "time", range: 0.0..=3.2e18 };
/// A number of things.
pub(super) const COUNT: NumberKind = NumberKind { what: "count", range: 0.0..=9e15 };
/// What a signal can hold.
pub(super) const READING: NumberKind = NumberKind { what: "number that a signal can hold", range: -9.2e18..=9.2e18 };
/// Any number.
pub(super) const NUMBER: NumberKind = NumberKind { what: "number", range: f64::MIN..=f64::MAX };

/// A row.
pub(super) struct TableRow<'a> {
    table: &'a Table,
    bytes: Vec<u8>,
    cells: Cells,
    /// Its line, from 1; the first where it has several.
    pub(super) line: u64,
}

impl Table {
    pub(super) fn open(path: &Path, separator: Option<u8>) -> Result<Self, ImportError> {
        let input = Input::open_table(path)?;
        let dialect = Dialect::detect(&input, separator)?;
        Ok(Self { input, dialect, order: None, left_out: Cell::default() })
    }

    /// The table's file.
    pub(super) fn path(&self) -> &str {
        self.input.path()
    }

    /// The columns' names.
    pub(super) fn columns(&self) -> &[String] {
        &self.dialect.columns
    }

    /// How it is written, in words.
    pub(super) fn form(&self) -> String {
        let form = self.input.form().map_or_else(String::new, |form| format!("{form}; "));
        form + &self.dialect.describe()
    }

    /// What was passed over on the last way through.
    pub(super) fn left_out(&self) -> SkippedRows {
        self.left_out.get()
    }

    /// Goes through the rows in this order from now on.
    pub(super) fn set_order(&mut self, order: Order) {
        self.order = Some(order);
    }

    /// What to say of a table that holds nothing of use.
    pub(super) fn useless(&self, reason: impl Into<String>) -> ImportError {
        self.input.useless(reason)
    }

    /// Where a column is.
    pub(super) fn position(&self, column: &str) -> Result<usize, ImportError> {
        self.columns().iter().position(|there| there == column).ok_or_else(|| ImportError::NoColumn {
            path: self.path().to_owned(),
            column: column.to_owned(),
            there: self.columns().join(", "),
        })
    }

    /// Hands every row to `take`.
    pub(super) fn each(
        &self,
        mut take: impl FnMut(&TableRow<'_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        match &self.order {
            Some(order) => self.each_in(order, take),
            None => self.each_until(|row| take(row).map(|()| true)),
        }
    }

    /// The first row.
    pub(super) fn first<T>(&self, take: impl Fn(&TableRow<'_>) -> T) -> Result<Option<T>, ImportError> {
        let mut first = None;
        self.each_until(|row| {
            first = Some(take(row));
            Ok(false)
        })?;
        Ok(first)
    }

    /// Hands rows to `take` as the file has them, until it returns false.
    fn each_until(&self, mut take: impl FnMut(&TableRow<'_>) -> Result<bool, ImportError>) -> Result<(), ImportError> {
        let mut reader = RowReader::new(self, self.input.text()?);
        let mut left_out = SkippedRows::default();
        let (mut rows, mut is_head) = (0, !self.dialect.has_head_in_comment);
        while reader.read()? {
            if std::mem::take(&mut is_head) {
                continue;
            }
            if reader.is_short() {
                let line = reader.row.line;
                let cells = reader.row.cells.len();
                if reader.read()? {
                    return Err(self.useless(self.uneven(line, cells)));
                }
                left_out.cut_line = Some(line);
                break;
            }
            rows += 1;
            if rows > MAX_ROWS {
                return Err(self.useless(format!("has more than {MAX_ROWS} rows: import it in parts")));
            }
            if !take(&reader.row)? {
                return Ok(());
            }
        }
        left_out.comments = reader.lines.comments;
        self.left_out.set(left_out);
        Ok(())
    }

    fn each_in(
        &self,
        order: &Order,
        mut take: impl FnMut(&TableRow<'_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let failed = |error| self.input.failed(error);
        let (mut rows, mut row) = (order.rows().map_err(failed)?, TableRow::new(self));
        let mut splitter = Splitter::new(self.dialect.separator);
        while let Some((_, line)) = rows.next(&mut row.bytes).map_err(failed)? {
            row.line = line;
            splitter.split(&row.bytes, &mut row.cells);
            take(&row)?;
        }
        Ok(())
    }

    /// An order of the rows for which `key` gives one, by that.
    pub(super) fn order_by(
        &self,
        mut key: impl FnMut(&TableRow<'_>) -> Result<Option<u64>, ImportError>,
    ) -> Result<Order, ImportError> {
        let failed = |error| self.input.failed(error);
        let mut sorter = Sorter::new().map_err(failed)?;
        self.each(|row| match key(row)? {
            Some(key) => sorter.add(key, row.line, &row.bytes).map_err(failed),
            None => Ok(()),
        })?;
        sorter.finish().map_err(failed)
    }

    /// Whether two rows have the same place in an order.
    pub(super) fn has_equals(&self, order: &Order) -> Result<bool, ImportError> {
        order.has_equals().map_err(|error| self.input.failed(error))
    }

    fn uneven(&self, line: u64, cells: usize) -> String {
        let (columns, verb) = (self.columns().len(), if cells == 1 { "cell" } else { "cells" });
        format!(
            "line {line} has {cells} {verb}, but the header names {columns} columns: fix that line, or give --separator"
        )
    }
}

/// Reads rows one after the other.
struct RowReader<'a, R> {
    lines: Lines<R>,
    splitter: Splitter,
    row: TableRow<'a>,
}

impl<'a, R: BufRead> RowReader<'a, R> {
    fn new(table: &'a Table, text: R) -> Self {
        Self { lines: Lines::new(text), splitter: Splitter::new(table.dialect.separator), row: TableRow::new(table) }
    }

    /// Reads the next row; false at the end.
    fn read(&mut self) -> Result<bool, ImportError> {
        let table = self.row.table;
        let line = match self.lines.next(&mut self.row.bytes) {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(false),
            Err(BadLine::Io(error)) => return Err(table.input.failed(error)),
            Err(BadLine::Row(line, reason)) => return Err(table.useless(format!("line {line} {reason}"))),
        };
        if std::str::from_utf8(&self.row.bytes).is_err() {
            return Err(not_utf8(&table.input, line));
        }
        self.splitter.split(&self.row.bytes, &mut self.row.cells);
        self.row.line = line;
        let columns = table.columns().len();
        // A separator at the end of each row is not another column.
        if (columns..self.row.cells.len()).any(|at| !self.row.cells.get(at).is_empty()) {
            return Err(table.useless(table.uneven(line, self.row.cells.len())));
        }
        Ok(true)
    }

    fn is_short(&self) -> bool {
        self.row.cells.len() < self.row.table.columns().len()
    }
}

impl<'a> TableRow<'a> {
    fn new(table: &'a Table) -> Self {
        Self { table, bytes: Vec::new(), cells: Cells::default(), line: 0 }
    }

    /// A number in the stream's unit, `factor` times what is written; `None` if the cell has no value.
    pub(super) fn number(&self, at: usize, factor: f64, wanted: &NumberKind) -> Result<Option<f64>, ImportError> {
        let text = self.text(at);
        if is_absent(text) {
            return Ok(None);
        }
        let number = parse_number(text, self.table.dialect.has_decimal_commas).map(|number| number * factor);
        match number.filter(|number| number.is_finite() && wanted.range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(at, text, wanted.what)),
        }
    }

    /// A number as [`TableRow::number`], which must be there.
    pub(super) fn needed(&self, at: usize, factor: f64, wanted: &NumberKind) -> Result<f64, ImportError> {
        self.number(at, factor, wanted)?.ok_or_else(|| self.wrong(at, self.text(at), wanted.what))
    }

    /// A time stamp in nanoseconds: ISO 8601, or else a number.
    pub(super) fn stamp(&self, at: usize, factor: f64) -> Result<Option<f64>, ImportError> {
        match parse_iso_time(self.text(at)).filter(|time| TIME.range.contains(&time.ns)) {
            Some(time) => Ok(Some(time.ns)),
            None => self.number(at, factor, &NumberKind { what: "time stamp", ..TIME }),
        }
    }

    /// What to say where a time stamp is missing.
    pub(super) fn no_stamp(&self, at: usize) -> ImportError {
        self.wrong(at, self.text(at), "time stamp")
    }

    /// A loss, which may well be no number.
    pub(super) fn loss(&self, at: usize) -> Option<f64> {
        parse_number(self.text(at), self.table.dialect.has_decimal_commas)
    }

    /// The cell's text.
    pub(super) fn text(&self, at: usize) -> &str {
        self.cells.get(at)
    }

    fn wrong(&self, at: usize, value: &str, wanted: &'static str) -> ImportError {
        ImportError::Value {
            path: self.table.path().to_owned(),
            line: self.line,
            column: self.table.columns().get(at).cloned().unwrap_or_default(),
            value: value.chars().take(80).collect(),
            wanted,
        }
    }
}
