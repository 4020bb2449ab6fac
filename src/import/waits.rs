//! Whether a step's time includes its wait for data. Its name does not say so, but its time stamps may: where the time between two
//! steps has no room for the wait, it is inside.

use super::mapping::{Mapping, Role};
use super::outcome::{ImportError, ImportSummary};
use super::table::{TIME, Table, TableRow};

/// A shorter wait, as a share of the step, shows nothing.
const LEAST_SHARE: f64 = 0.01;
/// A wait has no room where less than this part of it fits in.
const FITS: f64 = 0.5;

/// Moves the guessed waits into their steps where there is no room for them before, and says so.
pub(super) fn put_inside(
    table: &Table,
    given: &[Mapping],
    mappings: &mut [Mapping],
    account: &mut ImportSummary,
) -> Result<(), ImportError> {
    let position = |role: &Role| {
        let mapping = mappings.iter().find(|mapping| mapping.role == *role && !mapping.is_cumulative)?;
        Some((table.position(&mapping.column).ok()?, mapping.factor()))
    };
    let (Some(end), Some(duration)) = (position(&Role::End), position(&Role::Duration)) else { return Ok(()) };
    for mapping in mappings.iter_mut().filter(|mapping| !given.contains(mapping) && !mapping.is_cumulative) {
        let Role::Before(name) = &mapping.role else { continue };
        let wait = (table.position(&mapping.column)?, mapping.factor());
        if has_no_room(table, end, duration, wait)? {
            account
                .guessed
                .push(format!("{} is inside its step: the time stamps leave no room for it before", mapping.column));
            mapping.role = Role::Phase(name.clone());
        }
    }
    Ok(())
}

/// Whether most waits that matter are no longer than their step and do not fit between the end of the step before and the begin of their own. Columns are given by
/// their positions, each with what a number in it is multiplied by.
fn has_no_room(
    table: &Table,
    end: (usize, f64),
    duration: (usize, f64),
    wait: (usize, f64),
) -> Result<bool, ImportError> {
    let (mut last, mut waits, mut tight) = (None, 0_u64, 0_u64);
    table.each(|row: &TableRow<'_>| {
        let time = |(at, factor): (usize, f64)| row.number(at, factor, &TIME);
        let end_ns = row.stamp(end.0, end.1)?;
        if let (Some(last), Some(end_ns), Some(took), Some(wait)) = (last, end_ns, time(duration)?, time(wait)?)
            && wait > LEAST_SHARE * took
        {
            let before: f64 = end_ns - took - last;
            waits += 1;
            tight += u64::from(before < FITS * wait && wait <= took);
        }
        last = end_ns.or(last);
        Ok(())
    })?;
    Ok(2 * tight > waits)
}
