//! Contradictions in a table: durations and time stamps that do not fit together, phases longer than their step,
//! counters that fall. Each is reported with its first line and what to do; what would make the whole recording wrong
//! is refused.

use super::anomalies::{ColumnBehaviour, IMPOSSIBLE, ROUNDING, is_value};
use super::mapping::{Mapping, Role};
use super::outcome::ImportError;
use super::rows::TableRows;
use super::survey::Survey;
use super::units::UnitScale;
use gnntop_analysis::figures::{count, duration, percent};

/// With fewer rows, a value's behaviour is not judged.
const ENOUGH: u64 = 20;

/// What to warn of in a table that was read.
///
/// # Errors
/// When the table contradicts itself so far that a recording of it would be wrong.
pub(super) fn warnings(survey: &Survey, rows: &TableRows<'_>) -> Result<Vec<String>, ImportError> {
    let mut warnings = Vec::new();
    if survey.has_times && survey.steps > 1 && !survey.is_coarse() {
        warnings.extend(durations_against_stamps(survey, rows)?);
        warnings.extend(waits_against_stamps(survey, rows));
        warnings.extend(pause(survey));
    }
    times_since_the_start(survey, rows)?;
    warnings.extend(phases_against_steps(survey, rows)?);
    let mappings = rows.mappings().filter(|mapping| is_value(mapping));
    warnings.extend(mappings.zip(&survey.odd.values).filter_map(|(mapping, values)| doubtful_values(mapping, values)));
    Ok(warnings)
}

/// The columns that durations and time stamps come from.
fn columns<'r>(rows: &'r TableRows<'_>) -> (&'r str, &'r str) {
    let named = |role: Role| rows.column(&role).map(|mapping| mapping.column.as_str());
    let stamps = named(Role::End).or_else(|| named(Role::Start)).unwrap_or("the time stamps");
    (named(Role::Duration).unwrap_or("the durations"), stamps)
}

fn durations_against_stamps(survey: &Survey, rows: &TableRows<'_>) -> Result<Option<String>, ImportError> {
    let (durations, stamps) = columns(rows);
    let (work_ns, elapsed_ns) = (survey.odd.work_ns, survey.elapsed_ns());
    let ratio = if elapsed_ns > 0.0 { work_ns / elapsed_ns } else { f64::INFINITY };
    if work_ns > 0.0 && ratio > IMPOSSIBLE {
        return Err(rows.table.useless(format!(
            "{durations} adds up to {} from line {}, but by {stamps} only {} passed: their units contradict each other. {}; --ignore {stamps} leaves the time stamps out",
            duration(work_ns as u64),
            survey.odd.overlaps.first_line,
            duration(elapsed_ns as u64),
            other_unit(rows, ratio).unwrap_or_else(|| "Check the units of both".to_owned()),
        )));
    }
    // One long pause says nothing of units.
    let ratio = work_ns / (elapsed_ns - survey.odd.longest_pause.0).max(1.0);
    if ratio < 1.0 / 500.0
        && let Some(other) = other_unit(rows, ratio)
    {
        let share = percent(ratio);
        return Ok(Some(format!("{durations} adds up to {share} of the time that passed by {stamps}. {other}")));
    }
    Ok(survey.odd.overlaps.describe().map(|place| {
        format!("{place}: {durations} is longer than the time since the row before by {stamps}; such a step is cut to that time. Check the units and which column is the step's end")
    }))
}

/// The unit of durations in which they would fill a fair part of the time, and no more than it.
fn other_unit(rows: &TableRows<'_>, ratio: f64) -> Option<String> {
    let Mapping { column, scale, .. } = rows.column(&Role::Duration)?;
    let factor = (*scale)?.factor;
    let fits = |scale: &UnitScale| (0.05..=1.0 + ROUNDING).contains(&(ratio * scale.factor / factor));
    let unit = ["s", "ms", "us", "ns"].iter().filter_map(|unit| UnitScale::from_name(unit)).find(fits)?.name;
    Some(format!("If {column} is in {unit}, say --column duration={column}:{unit}"))
}

/// A wait assumed to be before its step may be inside it.
fn waits_against_stamps(survey: &Survey, rows: &TableRows<'_>) -> Option<String> {
    let waits: Vec<&Mapping> = rows.mappings().filter(|mapping| matches!(mapping.role, Role::Before(_))).collect();
    let (first, odd, elapsed_ns) = (waits.first()?, &survey.odd, survey.elapsed_ns());
    if odd.lead_ns <= elapsed_ns * (1.0 + ROUNDING) || odd.work_ns > elapsed_ns * (1.0 + ROUNDING) {
        return None;
    }
    let Role::Before(name) = &first.role else { return None };
    let (durations, stamps) = columns(rows);
    let (column, sum) = (&first.column, duration(odd.lead_ns as u64));
    Some(format!(
        "{durations} and {column} add up to {sum}, but by {stamps} only {} passed: {column} seems to be inside {durations}. If so, say --column \"phase:{name}={column}:{}\"",
        duration(elapsed_ns as u64),
        first.scale.map_or("ms", |scale| scale.name),
    ))
}

/// A pause too long for a training run, at which the steps' numbers start over.
fn pause(survey: &Survey) -> Option<String> {
    let (pause_ns, line) = survey.odd.longest_pause;
    let is_long = pause_ns > 6e11 && pause_ns > 1000.0 * survey.usual_ns();
    let restarts = survey.numbers.first_fall.is_some_and(|fall| fall.line == line);
    (is_long && restarts).then(|| {
        format!(
            "line {line}: steps start over after a pause of {}: two runs in one table? Take one with --only COLUMN=VALUE, or split the table",
            duration(pause_ns as u64)
        )
    })
}

/// Times that count since the start, though they are taken for those of each step, and the other way round.
fn times_since_the_start(survey: &Survey, rows: &TableRows<'_>) -> Result<(), ImportError> {
    let odd = &survey.odd;
    if let (Some(at), Some(place)) = (odd.fallen, odd.falls.describe()) {
        return Err(rows.table.useless(format!(
            "{place}: {} falls, but a cumulative time falls only at a new epoch. If it is of each step, leave out cumulative:",
            rows.name(at)
        )));
    }
    if rows.is_long() || survey.steps < ENOUGH {
        return Ok(());
    }
    let waits = rows.mappings().filter(|mapping| matches!(mapping.role, Role::Before(_))).zip(&odd.before);
    let phases = rows.mappings().filter(|mapping| matches!(mapping.role, Role::Phase(_))).zip(&odd.inside);
    for (mapping, values) in waits.chain(phases).filter(|(mapping, _)| !mapping.is_cumulative) {
        let last_ns = values.last.unwrap_or(0.0);
        if values.only_rises() && last_ns > survey.usual_ns() {
            let Mapping { role, column, scale, .. } = mapping;
            return Err(rows.table.useless(format!(
                "{column} rises in each of {} rows, to {} in line {}, where a step takes {}: it seems to be cumulative. If so, say --column \"cumulative:{role}={column}:{}\"",
                count(values.readings),
                duration(last_ns as u64),
                values.last_line,
                duration(survey.usual_ns() as u64),
                scale.map_or("ms", |scale| scale.name),
            )));
        }
    }
    Ok(())
}

fn phases_against_steps(survey: &Survey, rows: &TableRows<'_>) -> Result<Option<String>, ImportError> {
    let odd = &survey.odd;
    let Some(place) = odd.phases.describe() else { return Ok(None) };
    let (phases_ns, step_ns) = odd.first_phases_ns;
    let what = format!(
        "{place}: the phases add up to {}, their step takes {}",
        duration(phases_ns as u64),
        duration(step_ns as u64)
    );
    if odd.far_longer_phases * 2 > survey.steps {
        return Err(rows.table.useless(format!(
            "{what}. Check the units of both, and say --column phase:NAME=COLUMN:UNIT; a phase before the step is before:NAME"
        )));
    }
    Ok(Some(format!(
        "{what}; what is beyond the step's end is cut off. Phases inside each other count twice: --ignore the outer or the inner one"
    )))
}

/// Counters fall only when they start again, and what was counted in a step is not negative.
fn doubtful_values(mapping: &Mapping, values: &ColumnBehaviour) -> Option<String> {
    let Mapping { role, column, scale, .. } = mapping;
    match role {
        Role::Cumulative(name) => values.falls.describe().map(|place| {
            format!("{place}: {column} falls, but a cumulative count never does: if it restarts in each step, say total:{name}")
        }),
        Role::Total(_) if values.negative.rows > 0 => {
            values.negative.describe().map(|place| format!("{place}: {column} is negative, but a count cannot be"))
        }
        Role::Total(name) if values.readings >= ENOUGH && values.rises + 1 == values.readings => {
            let unit = scale.map_or_else(String::new, |scale| format!(":{}", scale.name));
            Some(format!(
                "{column} rises in all of {} rows: if it counts since the start and does not restart in each step, say --column cumulative:{name}={column}{unit}",
                count(values.readings)
            ))
        }
        _ => None,
    }
}
