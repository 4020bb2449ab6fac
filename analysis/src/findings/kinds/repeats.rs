//! Kinds that recur at the same place: every N steps, or at one position in every epoch.

use super::sides::KindSides;
use crate::findings::robust::median;
use crate::store::StepRow;

/// Longest rhythm that is looked for.
const LONGEST: u64 = 64;
/// Least number of occurrences of a rhythm.
const TIMES: usize = 5;
/// Steps in a row from which a rhythm is guessed before it is tested on all.
const GUESSED_FROM: usize = 2048;
/// Positions distinguished in an epoch, from its start or its end.
const PLACES: usize = 64;

/// A place at which a kind recurs.
pub(super) type Repeat = (KindSides, String);

/// The kind at one position in every epoch.
pub(super) fn find_in_epochs(rows: &[StepRow<'_>], all: &[usize], times: &[f64]) -> Option<Repeat> {
    let places = EpochPositions::new(rows)?;
    let from_end = split(all, times, |row| places.before_end(row), PLACES);
    let from_start = || split(all, times, |row| places.after_start(row), PLACES);
    let (sides, name) = match from_end {
        Some((sides, odd)) if odd == [0] => (sides, "the last"),
        _ => from_start().filter(|(_, odd)| odd == &[0]).map(|(sides, _)| (sides, "the first"))?,
    };
    Some((sides, places.name(name)))
}

/// The kind that recurs every N steps.
pub(super) fn find_in_rhythm(rows: &[StepRow<'_>], all: &[usize], times: &[f64]) -> Option<Repeat> {
    let first = all.len().saturating_sub(GUESSED_FROM) / 2;
    let some = first..all.len().min(first + GUESSED_FROM);
    let most = LONGEST.min((all.len() / TIMES) as u64);
    (2..=most).find_map(|every| {
        let place = |row: usize| Some((rows[row].ordinal() % every) as usize);
        split(&all[some.clone()], &times[some.clone()], place, every as usize)?;
        let (sides, odd) = split(all, times, place, every as usize)?;
        Some((sides, rhythm(every, odd.len())))
    })
}

fn rhythm(every: u64, places: usize) -> String {
    match places {
        1 => format!("every {every}{} step takes", ordinal_ending(every)),
        _ => format!("{places} of every {every} steps take"),
    }
}

fn ordinal_ending(n: u64) -> &'static str {
    match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

/// Steps by place, split into two sides where the medians of the places are furthest apart; with the places of the
/// smaller side.
fn split(
    all: &[usize],
    times: &[f64],
    place: impl Fn(usize) -> Option<usize>,
    places: usize,
) -> Option<(KindSides, Vec<usize>)> {
    let mut by_place = vec![Vec::new(); places];
    for (row, time) in all.iter().zip(times) {
        if let Some(times) = place(*row).and_then(|place| by_place.get_mut(place)) {
            times.push(*time);
        }
    }
    let mut medians: Vec<(f64, usize)> =
        by_place.iter_mut().enumerate().filter_map(|(place, times)| Some((median(times)?, place))).collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    let step = |at: &usize| medians[*at].0 / medians[*at - 1].0.max(f64::MIN_POSITIVE);
    let cut = (1..medians.len()).max_by(|a, b| step(a).total_cmp(&step(b)))?;
    let (shorter, longer) = medians.split_at(cut);
    let odd = if shorter.len() <= longer.len() { shorter } else { longer };
    let mut odd: Vec<usize> = odd.iter().map(|(_, place)| *place).collect();
    odd.sort_unstable();
    let is_odd = all.iter().map(|row| place(*row).is_some_and(|place| odd.contains(&place))).collect();
    Some((KindSides::from_times(times, is_odd)?, odd))
}

/// The positions of steps in their epochs.
struct EpochPositions {
    /// For each row: how many rows of its epoch come before it and after it.
    around: Vec<(usize, usize)>,
    /// Steps of every whole epoch, if these are equally long.
    length: Option<usize>,
}

impl EpochPositions {
    /// `None` if there are too few epochs, or epochs of one step.
    fn new(rows: &[StepRow<'_>]) -> Option<Self> {
        let epochs: Vec<usize> = rows.chunk_by(|a, b| a.epoch() == b.epoch()).map(<[_]>::len).collect();
        // The first and the last epoch may be incomplete.
        let whole = epochs.get(1..epochs.len().checked_sub(1)?)?;
        let longest = *whole.iter().max()?;
        if whole.len() < TIMES || longest < 2 {
            return None;
        }
        let length = whole.iter().all(|len| *len == longest).then_some(longest);
        let mut around = Vec::with_capacity(rows.len());
        for (n, len) in epochs.iter().enumerate() {
            // The first epoch lacks steps at its beginning, the last at its end.
            let before = if n == 0 { longest.saturating_sub(*len) } else { 0 };
            let after = if n + 1 == epochs.len() { longest.saturating_sub(*len) } else { 0 };
            around.extend((0..*len).map(|at| (before + at, len - 1 - at + after)));
        }
        Some(Self { around, length })
    }

    fn after_start(&self, row: usize) -> Option<usize> {
        Some(self.around[row].0)
    }

    fn before_end(&self, row: usize) -> Option<usize> {
        Some(self.around[row].1)
    }

    fn name(&self, place: &str) -> String {
        match self.length {
            Some(length) => format!("every {length}{} step, {place} of an epoch, takes", ordinal_ending(length as u64)),
            None => format!("{place} step of an epoch takes"),
        }
    }
}
