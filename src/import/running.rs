//! Columns of times that count since the start: recognised by their names and by never falling.

use super::account::ImportSummary;
use super::error::ImportError;
use super::guess;
use super::mapping::Mapping;
use super::options::CsvOptions;
use super::table::{TIME, Table};

/// Rows from which on a column that never falls counts since the start.
const ENOUGH: u64 = 3;

/// Adds the columns that may count since the start by their names and do so by their values. For those that fall the account
/// says why they are left out.
pub(super) fn add_cumulative(
    table: &Table,
    given: &CsvOptions,
    guesses: &mut Vec<Mapping>,
    account: &mut ImportSummary,
) -> Result<(), ImportError> {
    for candidate in table.columns().iter().filter_map(|column| guess::guess_cumulative(column)) {
        let is_known = |known: &Mapping| known.role == candidate.role || known.column == candidate.column;
        let is_taken = guesses.iter().chain(&given.columns).any(is_known);
        if is_taken || given.ignored.contains(&candidate.column) {
            continue;
        }
        match first_fall(table, &candidate)? {
            None => {
                account.guessed.push(format!(
                    "{} is cumulative, because it never falls: each step gets its increase",
                    candidate.column
                ));
                guesses.push(candidate);
            }
            Some(line) => account.left_out.push(format!(
                "{}, which falls in line {line} and so is not cumulative; if it is of each step, say --column \"{}={}:{}\"",
                candidate.column,
                candidate.role,
                candidate.column,
                candidate.scale.map_or("ms", |scale| scale.name),
            )),
        }
    }
    Ok(())
}

/// The first line in which the column falls; the last one of a table in which it does not grow, or that is too short to
/// decide.
fn first_fall(table: &Table, candidate: &Mapping) -> Result<Option<u64>, ImportError> {
    let at = table.position(&candidate.column)?;
    let (mut last, mut first, mut fall, mut rows, mut line) = (None::<f64>, None::<f64>, None, 0_u64, 0);
    table.each(|row| {
        let Some(ns) = row.number(at, candidate.factor(), &TIME)? else { return Ok(()) };
        if last.is_some_and(|last| ns < last) {
            fall = fall.or(Some(row.line));
        }
        (first, last, rows, line) = (first.or(Some(ns)), Some(ns), rows + 1, row.line);
        Ok(())
    })?;
    Ok(fall.or((rows < ENOUGH || first == last).then_some(line)))
}

/// What each column that counts since the start was at in the row before.
#[derive(Clone, Debug, Default)]
pub(super) struct PreviousRow {
    columns: Vec<(usize, f64)>,
    /// A column that is lower than in the row before.
    pub(super) fallen: Option<usize>,
}

impl PreviousRow {
    /// The step's part of the column at `at`. For a cumulative column that is its increase; in the first
    /// row that is all of it, but at most `limit_ns`, as a table may begin in the middle of a run.
    pub(super) fn increase(&mut self, mapping: &Mapping, at: usize, ns: f64, limit_ns: f64) -> f64 {
        if !mapping.is_cumulative {
            return ns;
        }
        let Some((_, last)) = self.columns.iter_mut().find(|(column, _)| *column == at) else {
            self.columns.push((at, ns));
            return if ns <= limit_ns { ns } else { 0.0 };
        };
        let grown = ns - std::mem::replace(last, ns);
        if grown < 0.0 {
            // It started again.
            self.fallen = self.fallen.or(Some(at));
            return ns;
        }
        grown
    }
}
