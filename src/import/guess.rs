//! What the columns of a table mean by their names, if that is plain, and which of them count since the start, by their names
//! and by never falling.

use super::options::CsvOptions;
use super::outcome::{ImportError, ImportSummary};
use super::table::{TIME, Table};
use gnntop_wire::phase::{DATA_WAIT, STANDARD};

use super::mapping::{Mapping, Role};
use super::units::{UnitScale, split_unit};

/// Names of columns without a unit, in any case and with any separator between their words.
const PLAIN: [(Role, &[&str]); 10] = [
    (Role::Step, &["step", "step_idx", "global_step", "iteration", "iter"]),
    (Role::Epoch, &["epoch"]),
    (Role::Loss, &["loss", "train_loss"]),
    (Role::Graphs, &["graphs", "num_graphs", "batch_num_graphs", "batch_size", "sequences"]),
    (Role::Graphs, &["images", "num_images", "batch_num_images", "samples", "num_samples"]),
    (Role::Nodes, &["nodes", "num_nodes", "batch_num_nodes"]),
    (Role::Edges, &["edges", "num_edges", "batch_num_edges"]),
    (Role::Seeds, &["seeds", "num_seeds"]),
    (Role::End, &["timestamp", "time", "datetime", "end_time"]),
    (Role::Start, &["start_time"]),
];
/// Names of the time that a step took.
const DURATIONS: [&str; 10] = [
    "step",
    "batch",
    "iteration",
    "iter",
    "duration",
    "step_time",
    "batch_time",
    "iter_time",
    "iteration_time",
    "step_duration",
];
const ENDS: [&str; 7] = ["timestamp", "end", "time", "end_time", "elapsed", "elapsed_time", "wall_time"];
const STARTS: [&str; 3] = ["start", "start_time", "begin"];
const WAITS: [&str; 3] = ["data_wait", "data", "wait"];
/// Words around the name of a time that counts since the start; it may also be that of one step, so its values decide.
const RUNNING_ENDS: [&str; 6] = ["_total", "_cumulative", "_cum", "_cumsum", "_accumulated", "_so_far"];
const RUNNING_STARTS: [&str; 4] = ["total_", "cumulative_", "cum_", "accumulated_"];
/// Names of a column with names of phases.
const PHASE_NAMES: [&str; 2] = ["phase", "phase_name"];

/// Words in the names of times.
const TIME_WORDS: [&str; 10] =
    ["time", "dur", "duration", "latency", "elapsed", "sec", "secs", "seconds", "took", "runtime"];

/// What a column may be that has no meaning by its name, and the option that reads it so; `None` if it has nothing of a time.
pub(super) fn look_alike(column: &str) -> Option<String> {
    let unit = UnitScale::from_column(column).filter(UnitScale::is_time);
    let stem = normalize(split_unit(column).filter(|_| unit.is_some()).map_or(column, |(stem, _)| stem));
    let is_known = PLAIN.iter().any(|(role, names)| !role.is_stamp() && names.contains(&stem.as_str()));
    let has_time_word = stem.split('_').any(|word| TIME_WORDS.contains(&word));
    let (role, what) = match () {
        () if ENDS.contains(&stem.as_str()) => ("end", "the time since the start"),
        () if DURATIONS.contains(&stem.as_str()) && !is_known => ("duration", "one"),
        () if has_time_word || unit.is_some() => ("duration", "one"),
        () => return None,
    };
    let unit = if unit.is_some() { "" } else { ":s" };
    Some(format!("{column} may be {what}: --column {role}={column}{unit}"))
}

/// The meaning of each column, if it is plain.
pub fn guess(columns: &[String]) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = columns.iter().filter_map(|column| guess_column(column)).collect();
    // The phases of a step in the order in which it runs through them, not in the table's.
    let order = |mapping: &Mapping| match &mapping.role {
        Role::Phase(name) | Role::Before(name) => STANDARD.iter().position(|standard| standard == name),
        _ => None,
    };
    found.sort_by_key(order);
    found
}

/// What a column means if it counts since the start, where its name says that it may.
pub(super) fn guess_cumulative(column: &str) -> Option<Mapping> {
    let scale = UnitScale::from_column(column).filter(UnitScale::is_time)?;
    let name = normalize(split_unit(column)?.0);
    let by_end = RUNNING_ENDS.iter().find_map(|end| name.strip_suffix(end));
    let stem = by_end.or_else(|| RUNNING_STARTS.iter().find_map(|start| name.strip_prefix(start)))?;
    let role = guess_time(stem).filter(|role| !role.is_stamp())?;
    Some(Mapping { role, column: column.to_owned(), scale: Some(scale), is_cumulative: true })
}

/// Whether a column's name is that of one that names phases.
pub(super) fn is_phase_name(column: &str) -> bool {
    PHASE_NAMES.contains(&normalize(column).as_str())
}

fn normalize(name: &str) -> String {
    let name = name.trim().to_lowercase();
    // Loggers put the part of the run first, as in `train/step_time`.
    let name = ["train/", "train|"].iter().find_map(|part| name.strip_prefix(part)).unwrap_or(&name);
    name.replace([' ', '-', '.'], "_")
}

fn guess_column(column: &str) -> Option<Mapping> {
    let name = normalize(column);
    let made = |role, scale| Some(Mapping { role, column: column.to_owned(), scale, is_cumulative: false });
    if let Some((role, _)) = PLAIN.iter().find(|(_, names)| names.contains(&name.as_str())) {
        return made(role.clone(), None);
    }
    let scale = UnitScale::from_column(column).filter(UnitScale::is_time)?;
    made(guess_time(&normalize(split_unit(column)?.0))?, Some(scale))
}

/// What a time is, by its name without the unit.
fn guess_time(stem: &str) -> Option<Role> {
    Some(match stem {
        _ if DURATIONS.contains(&stem) => Role::Duration,
        _ if ENDS.contains(&stem) => Role::End,
        _ if STARTS.contains(&stem) => Role::Start,
        _ if WAITS.contains(&stem) => Role::Before(DATA_WAIT.to_owned()),
        _ => {
            let stem = stem.strip_suffix("_time").unwrap_or(stem);
            Role::Phase(STANDARD.iter().find(|name| normalize(name) == stem)?.to_string())
        }
    })
}

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
    for candidate in table.columns().iter().filter_map(|column| guess_cumulative(column)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_guessed_from_plain_names() {
        let columns = [
            "run_num",
            "epoch",
            "step_idx",
            "timestamp_s",
            "step_ms",
            "optimizer_ms",
            "Forward Time (ms)",
            "batch_num_edges",
            "ram_used_mb",
        ];
        let roles: Vec<Role> = guess(&columns.map(str::to_owned)).into_iter().map(|mapping| mapping.role).collect();
        let phase = |name: &str| Role::Phase(name.into());
        let expected =
            [Role::Epoch, Role::Step, Role::End, Role::Duration, Role::Edges, phase("forward"), phase("optimizer")];
        assert_eq!(roles, expected);
    }

    #[test]
    fn column_that_looks_like_a_time_is_named_with_its_option() {
        for (column, option) in [
            ("step_time", Some("step_time may be one: --column duration=step_time:s")),
            ("elapsed", Some("elapsed may be the time since the start: --column end=elapsed:s")),
            ("t_iter (ms)", Some("t_iter (ms) may be one: --column duration=t_iter (ms)")),
            ("fwd latency", Some("fwd latency may be one: --column duration=fwd latency:s")),
            ("loss", None),
            ("step", None),
            ("accuracy", None),
        ] {
            assert_eq!(look_alike(column).as_deref(), option, "{column}");
        }
    }

    #[test]
    fn cumulative_time_is_guessed_from_name() {
        let role = |column: &str| guess_cumulative(column).map(|mapping| mapping.role);
        assert_eq!(role("data_wait_total_ms"), Some(Role::Before("data wait".into())));
        assert_eq!(role("Cumulative Forward Time (s)"), Some(Role::Phase("forward".into())));
        assert_eq!(role("step_total_ms"), Some(Role::Duration));
        assert_eq!((role("total_ms"), role("forward_ms"), role("total_time_s")), (None, None, None));
    }
}
