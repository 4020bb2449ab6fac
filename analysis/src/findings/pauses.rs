//! Pauses: time between steps that is far longer than usual and recurs at equal intervals.

use super::evidence::StepEvidence;
use super::number::Number;
use super::stated_numbers::StatedNumbers;

/// A pause exceeds the usual time between steps by this share of a step...
const LONG: f64 = 0.1;
/// ...and by this many of its standard deviations.
const SIGMAS: f64 = 6.0;
/// With fewer pauses, equal intervals are chance.
const ENOUGH: usize = 4;
/// Share of the pauses that must be where expected, and of the places that must have one.
const MOSTLY: f64 = 0.75;

/// Pauses that recur at equal intervals, or wherever an epoch ends.
pub(super) struct RegularPauses {
    /// The rows that follow them.
    pub rows: Vec<usize>,
    /// Steps from one to the next; `None` if epochs are not equally long.
    pub every: Option<u64>,
    /// Whether they are where epochs end.
    pub are_at_epoch_ends: bool,
}

impl RegularPauses {
    /// Those of some steps; `None` without a rhythm.
    pub(super) fn find(evidence: &StepEvidence<'_>) -> Option<Self> {
        let rows: Vec<usize> = (0..evidence.rows.len()).filter(|row| is_pause(evidence, *row)).collect();
        if rows.len() < ENOUGH {
            return None;
        }
        let is_epoch = |row: &usize| evidence.begins_epoch(*row);
        let at_epochs: Vec<usize> = rows.iter().copied().filter(is_epoch).collect();
        let epochs = (0..evidence.rows.len()).filter(is_epoch).count();
        let are_at_epoch_ends = is_most(at_epochs.len(), rows.len()) && is_most(at_epochs.len(), epochs);
        match find_rhythm(evidence, &rows) {
            Some((every, rows)) => Some(Self { rows, every: Some(every), are_at_epoch_ends }),
            None => are_at_epoch_ends.then_some(Self { rows: at_epochs, every: None, are_at_epoch_ends }),
        }
    }

    /// When they come: `every 20 steps, 14 times, at epoch ends`.
    pub(super) fn when(&self, facts: &mut StatedNumbers) -> String {
        let rhythm = self.every.map(|every| format!("every {} steps", facts.count(Number::EverySteps, every)));
        let times = Some(format!("{} times", facts.count(Number::Times, self.rows.len() as u64)));
        let epochs = self.are_at_epoch_ends.then(|| "at epoch ends".to_owned());
        [rhythm, times, epochs].into_iter().flatten().collect::<Vec<String>>().join(", ")
    }

    /// Their mean length, in nanoseconds.
    pub(super) fn mean_ns(&self, evidence: &StepEvidence<'_>) -> f64 {
        self.rows.iter().map(|row| evidence.between_ns[*row]).sum::<f64>() / self.rows.len().max(1) as f64
    }
}

fn is_pause(evidence: &StepEvidence<'_>, row: usize) -> bool {
    let excess = evidence.between_ns[row] - evidence.usual_between_ns;
    excess > LONG * (evidence.expected_ns[row] + evidence.usual_between_ns)
        && excess > SIGMAS * evidence.between_noise_ns
}

fn is_most(part: usize, of: usize) -> bool {
    part as f64 >= MOSTLY * of as f64
}

/// The distance at which most of these rows follow each other, and the rows that do.
fn find_rhythm(evidence: &StepEvidence<'_>, rows: &[usize]) -> Option<(u64, Vec<usize>)> {
    let ordinal = |row: usize| evidence.rows[row].ordinal();
    let every = commonest(rows.windows(2).map(|pair| ordinal(pair[1]) - ordinal(pair[0])))?;
    let place = commonest(rows.iter().map(|row| ordinal(*row) % every))?;
    let at_place = |row: &usize| ordinal(*row) % every == place;
    let there: Vec<usize> = rows.iter().copied().filter(at_place).collect();
    let expected = (0..evidence.rows.len()).filter(at_place).count();
    let is_rhythm =
        every > 1 && there.len() >= ENOUGH && is_most(there.len(), rows.len()) && is_most(there.len(), expected);
    is_rhythm.then_some((every, there))
}

/// The most common number, the smallest of several.
fn commonest(numbers: impl Iterator<Item = u64>) -> Option<u64> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    let equal = numbers.chunk_by(|a, b| a == b);
    equal.rev().max_by_key(|equal| equal.len()).map(|equal| equal[0])
}
