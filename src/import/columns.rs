//! Which columns of a table are used, and as what: those that the user names, and those with plain names.

use super::guess::{self, guess, is_phase_name};
use super::mapping::{self, Mapping, Role};
use super::options::CsvOptions;
use super::outcome::{ImportError, ImportSummary};
use super::table::Table;
use super::table_text::{IsoTime, is_absent, parse_iso_time, parse_number};
use super::units::UnitScale;
use super::waits;

/// The columns that are used, and whether a row is a phase and not a step.
pub(super) struct Columns {
    pub(super) mappings: Vec<Mapping>,
    pub(super) is_long: bool,
}

impl Columns {
    /// Chooses the columns, and says which.
    pub(super) fn choose(table: &Table, given: &CsvOptions, account: &mut ImportSummary) -> Result<Self, ImportError> {
        for column in given.columns.iter().map(|mapping| &mapping.column).chain(&given.ignored) {
            table.position(column)?;
        }
        refuse_roles_given_twice(&given.columns)?;
        let mut guesses = guesses(table, given, account);
        guess::add_cumulative(table, given, &mut guesses, account)?;
        let is_long = make_long(table, given, &mut guesses)?;
        let mut mappings = given.columns.clone();
        mappings.extend(guesses);
        resolve_stamps(table, given, &mut mappings, account)?;
        need_a_duration(table, &mut mappings, account)?;
        if !is_long {
            waits::put_inside(table, &given.columns, &mut mappings, account)?;
        }
        mappings.sort_by_key(|mapping| !matches!(mapping.role, Role::Before(_) | Role::Phase(_)));
        let chosen = Self { mappings, is_long };
        chosen.summarize(table, given, account);
        Ok(chosen)
    }

    fn summarize(&self, table: &Table, given: &CsvOptions, account: &mut ImportSummary) {
        account.used.extend(self.mappings.iter().map(Mapping::describe));
        let is_used = |column: &String| self.mappings.iter().any(|mapping| mapping.column == *column);
        let mut rest: Vec<&str> =
            table.columns().iter().filter(|column| !is_used(column)).map(String::as_str).collect();
        rest.retain(|column| !column.is_empty() && !given.only.iter().any(|(only, _)| only == column));
        if !rest.is_empty() {
            account
                .left_out
                .push(format!("the columns {} (--column ROLE=COLUMN names a use for one)", rest.join(", ")));
        }
        let guessed: Vec<&str> = self
            .mappings
            .iter()
            .filter(|mapping| !given.columns.contains(mapping))
            .map(|mapping| mapping.column.as_str())
            .collect();
        if !guessed.is_empty() {
            account.guessed.push(format!("the meaning and units of {}, from their names", guessed.join(", ")));
        }
        for mapping in self.mappings.iter().filter(|mapping| !given.columns.contains(mapping)) {
            if let Role::Before(name) = &mapping.role {
                let Mapping { column, scale, .. } = mapping;
                let unit = scale.map_or("ms", |scale| scale.name);
                let inside = Mapping { role: Role::Phase(name.clone()), ..mapping.clone() }.role_in_words();
                account.guessed.push(format!(
                    "{column} comes just before its step, not inside it (inside: --column \"{inside}={column}:{unit}\")"
                ));
            }
        }
        for mapping in &self.mappings {
            if table.columns().iter().filter(|column| **column == mapping.column).count() > 1 {
                account.warnings.push(format!("two columns are called {}: the first is used", mapping.column));
            }
            account.warnings.extend(mapping::unread_signal_warning(mapping));
        }
    }
}

fn refuse_roles_given_twice(given: &[Mapping]) -> Result<(), ImportError> {
    let twice = |(at, mapping): &(usize, &Mapping)| given[..*at].iter().any(|before| before.role == mapping.role);
    match given.iter().enumerate().find(twice) {
        Some((_, mapping)) => Err(ImportError::Mapping {
            text: format!("{}={}", mapping.role, mapping.column),
            reason: "another column has that role already: a role has one column",
        }),
        None => Ok(()),
    }
}

/// What columns mean by their names, one column a role, where a person has not said it.
fn guesses(table: &Table, given: &CsvOptions, account: &mut ImportSummary) -> Vec<Mapping> {
    let mut taken: Vec<Mapping> = Vec::new();
    for guess in guess(table.columns()) {
        let is_named = given.columns.iter().any(|known| known.role == guess.role || known.column == guess.column);
        if is_named || given.ignored.contains(&guess.column) {
            continue;
        }
        match taken.iter().find(|known| known.role == guess.role) {
            Some(known) if known.column != guess.column => account.warnings.push(format!(
                "{} and {} can both be {}: {} is used; --column {}={} takes the other",
                known.column, guess.column, guess.role, known.column, guess.role, guess.column
            )),
            Some(_) => (),
            None => taken.push(guess),
        }
    }
    taken
}

/// Whether a row is a phase of a step: where a column names phases. Then no other column is one.
fn make_long(table: &Table, given: &CsvOptions, guesses: &mut Vec<Mapping>) -> Result<bool, ImportError> {
    let is_given = given.columns.iter().any(|mapping| mapping.role == Role::PhaseName);
    let names = |column: &&String| is_phase_name(column) && !given.ignored.contains(column);
    let column = table.columns().iter().find(names).filter(|column| {
        !given.columns.iter().any(|mapping| mapping.column == **column)
            && !given.only.iter().any(|(only, _)| only == *column)
    });
    let is_text =
        |at: usize| table.first(|row| !is_absent(row.text(at)) && parse_number(row.text(at), false).is_none());
    let has = |role: &Role| guesses.iter().chain(&given.columns).any(|mapping| mapping.role == *role);
    let is_long = match column {
        _ if is_given => true,
        Some(column) if has(&Role::Step) => {
            let is_long = is_text(table.position(column)?)? == Some(true);
            if is_long {
                guesses.push(Mapping {
                    role: Role::PhaseName,
                    column: column.clone(),
                    scale: None,
                    is_cumulative: false,
                });
            }
            is_long
        }
        _ => false,
    };
    if !is_long {
        return Ok(false);
    }
    if !guesses.iter().chain(&given.columns).any(|mapping| mapping.role == Role::Step) {
        return Err(
            table.useless("has a row for each phase, but no column has the step: name it with --column step=COLUMN")
        );
    }
    guesses.retain(|guess| !matches!(guess.role, Role::Phase(_) | Role::Before(_)) && !guess.is_cumulative);
    if let Some(mapping) = given.columns.iter().find(|mapping| mapping.is_cumulative) {
        return Err(ImportError::Mapping {
            text: format!("{}={}", mapping.role_in_words(), mapping.column),
            reason: "a table with a row for each phase cannot have cumulative times",
        });
    }
    // In such a table time_ms is how long the phase took.
    let has_duration = guesses.iter().chain(&given.columns).any(|mapping| mapping.role == Role::Duration);
    if let Some(time) =
        guesses.iter_mut().find(|guess| guess.role == Role::End && guess.scale.is_some() && !has_duration)
    {
        time.role = Role::Duration;
    }
    Ok(true)
}

/// What the columns of a table of marks mean.
pub(super) fn choose_for_marks(table: &Table, account: &mut ImportSummary) -> Result<Vec<Mapping>, ImportError> {
    let given = CsvOptions::default();
    let mut mappings = guesses(table, &given, account);
    resolve_stamps(table, &given, &mut mappings, account)?;
    Ok(mappings)
}

/// Determines the units of time stamps without one. What turns out not to be a time stamp is left out.
fn resolve_stamps(
    table: &Table,
    given: &CsvOptions,
    mappings: &mut Vec<Mapping>,
    account: &mut ImportSummary,
) -> Result<(), ImportError> {
    let mut kept = Vec::new();
    for mut mapping in std::mem::take(mappings) {
        if mapping.role.is_stamp() {
            let at = table.position(&mapping.column)?;
            let first = table.first(|row| (parse_iso_time(row.text(at)), row.loss(at)))?.unwrap_or((None, None));
            match (first, mapping.scale) {
                ((Some(IsoTime { has_zone, .. }), _), _) if !has_zone => {
                    account.guessed.push(format!("{} is in UTC, as it names no time zone", mapping.column));
                }
                ((Some(_), _), _) | (_, Some(_)) => (),
                ((None, number), None) => match number.and_then(since_1970) {
                    Some(scale) => {
                        account.guessed.push(format!(
                            "{} counts {} since 1970, inferred from its values",
                            mapping.column, scale.name
                        ));
                        mapping.scale = Some(scale);
                    }
                    None if given.columns.contains(&mapping) && number.is_some() => {
                        return Err(ImportError::Mapping {
                            text: format!("{}={}", mapping.role, mapping.column),
                            reason: "these time stamps need their unit: end it with :ns, :us, :ms or :s",
                        });
                    }
                    None if given.columns.contains(&mapping) => (),
                    None => continue,
                },
            }
        }
        kept.push(mapping);
    }
    *mappings = kept;
    Ok(())
}

/// The unit in which a number is a time between 2001 and 2100.
fn since_1970(number: f64) -> Option<UnitScale> {
    let fits = |scale: &UnitScale| (1e18..4.1e18).contains(&(number * scale.factor));
    ["s", "ms", "us", "ns"].iter().filter_map(|unit| UnitScale::from_name(unit)).find(fits)
}

/// Why a table is refused that has no duration: which columns look like one, and how each would be read.
fn without_duration(columns: &[String]) -> String {
    let alike: Vec<String> = columns.iter().filter_map(|column| guess::look_alike(column)).collect();
    if !alike.is_empty() {
        return format!("no column has a step's duration with its unit: {}", alike.join("; "));
    }
    let named = columns.join(", ");
    format!("no column has a step's duration: name it with --column duration=COLUMN:UNIT; the columns are {named}")
}

/// A step needs a duration; without one, start and end give it.
fn need_a_duration(table: &Table, mappings: &mut Vec<Mapping>, account: &mut ImportSummary) -> Result<(), ImportError> {
    let at = |role: Role, mappings: &[Mapping]| mappings.iter().position(|mapping| mapping.role == role);
    let (start, end) = (at(Role::Start, mappings), at(Role::End, mappings));
    match (at(Role::Duration, mappings), start, end) {
        (Some(_), Some(start), Some(_)) => {
            let start = mappings.remove(start);
            account.guessed.push(format!("a step begins its duration before its end; {} is not used", start.column));
        }
        (None, Some(_), Some(_)) | (Some(_), ..) => (),
        (None, None, Some(end)) if mappings[end].scale.is_some() => {
            let end = &mappings[end];
            account.guessed.push(format!("a step lasts from the row before until {}, of its own row", end.column));
            mappings.push(Mapping { role: Role::Duration, is_cumulative: true, ..end.clone() });
        }
        _ => return Err(table.useless(without_duration(table.columns()))),
    }
    Ok(())
}
