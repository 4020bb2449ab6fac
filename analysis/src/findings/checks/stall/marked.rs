//! The marks of one text, the steps that contain or follow them, and advice about them, whatever they cost.

use std::collections::BTreeMap;

use gnntop_wire::Reported;

use crate::figures::duration;
use crate::findings::claim::StepCost;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{Finding, Occurrence};
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::{StepRow, StoredMark, describe_place};

/// The marks of one text among the steps looked at.
#[derive(Default)]
pub(super) struct Marked {
    /// Each with its step, without those of the warm-up.
    pub effects: Vec<Effect>,
    /// Marks inside steps, warm-up included.
    pub inside: u64,
    /// Marks between steps, likewise.
    pub outside: u64,
    /// Total duration of what ended at them, warm-up included; `None` if they have no durations.
    pub own_ns: Option<f64>,
}

/// A mark with its step.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    pub row: usize,
    pub is_inside: bool,
    /// How much longer the step, or the time before it, is than usual.
    pub excess_ns: f64,
    /// Duration of what ended at the mark; `None` if it has none.
    pub own_ns: Option<f64>,
}

impl Effect {
    /// What it costs: its own duration, if known.
    pub(super) fn cost_ns(&self) -> f64 {
        self.own_ns.unwrap_or(self.excess_ns)
    }

    /// The time that it accounts for.
    pub(super) fn claim(&self, evidence: &StepEvidence<'_>) -> StepCost {
        let is_excess = self.own_ns.is_none() && self.is_inside;
        let without_ns = is_excess.then(|| evidence.expected_ns[self.row]);
        StepCost { row: self.row, is_inside: self.is_inside, ns: self.cost_ns(), without_ns }
    }

    /// Its place.
    pub(super) fn place(&self, evidence: &StepEvidence<'_>, text: &str) -> Occurrence {
        let step = evidence.rows[self.row].step().0;
        let place = if self.is_inside { "in" } else { "before" };
        let takes = if self.own_ns.is_some() { "takes" } else { "costs" };
        let sentence = format!("\"{text}\" {place} step {step} {takes} {}", duration(self.cost_ns().max(0.0) as u64));
        evidence.place(self.row, sentence)
    }
}

impl Marked {
    /// All marks by their text, except those of a validation whose phase has its time.
    pub(super) fn by_text<'a>(evidence: &StepEvidence<'a>) -> BTreeMap<&'a str, Self> {
        let mut by_text: BTreeMap<&str, Self> = BTreeMap::new();
        let training = evidence.store.training_track().map(|track| track.id);
        for mark in evidence.store.marks().iter() {
            let text = evidence.store.mark_text(mark);
            if evidence.store.reported(mark.name) == Some(Reported::Validation) && evidence.has_validation() {
                continue;
            }
            let Some(row) = row_of(evidence, mark) else { continue };
            let is_inside = evidence.store.is_mark_inside(mark, row);
            // Work of another thread did not hold up this one, and no step is held up for longer than it takes.
            let own_ns = mark.duration_ns().filter(|_| Some(mark.track) == training);
            let own_ns = own_ns.map(|ns| ns.min(row.period_ns()) as f64);
            let marked = by_text.entry(text).or_default();
            marked.inside += u64::from(is_inside);
            marked.outside += u64::from(!is_inside);
            marked.own_ns = own_ns.map(|ns| ns + marked.own_ns.unwrap_or(0.0)).or(marked.own_ns);
            marked.effects.extend(effect(evidence, mark, is_inside, own_ns));
        }
        by_text
    }

    /// Number of marks.
    pub(super) fn count(&self) -> u64 {
        self.inside + self.outside
    }

    /// Their places, in words.
    pub(super) fn describe_place(&self, facts: &mut StatedNumbers) -> String {
        facts.count(Number::Inside, self.inside);
        facts.count(Number::Outside, self.outside);
        describe_place(self.inside, self.outside)
    }
}

/// How much longer the time between a row and the previous step is than usual.
pub(super) fn between_excess(evidence: &StepEvidence<'_>, row: usize) -> f64 {
    evidence.between_ns[row] - evidence.usual_between_ns
}

/// The row that a mark is in or before; `None` for one outside of all rows looked at.
fn row_of<'e, 's>(evidence: &'e StepEvidence<'s>, mark: &StoredMark) -> Option<&'e StepRow<'s>> {
    let is_there = |row: &&StepRow<'_>| mark.t_ns > row.period_start_ns() && mark.t_ns <= row.end_ns();
    match evidence.row_at(mark.t_ns) {
        Some(row) => Some(&evidence.rows[row]),
        None => evidence.warm_up.iter().find(is_there),
    }
}

/// Finds the step that was running at the time of a mark.
fn effect(evidence: &StepEvidence<'_>, mark: &StoredMark, is_inside: bool, own_ns: Option<f64>) -> Option<Effect> {
    let row = evidence.row_at(mark.t_ns)?;
    let excess_ns = if is_inside { evidence.excess_ns(row) } else { between_excess(evidence, row) };
    Some(Effect { row, is_inside, excess_ns, own_ns })
}

/// What to try, by the text of the marks.
fn advice(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let speaks_of = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if speaks_of(&["gc", "garbage"]) {
        "collect garbage between epochs only (gc.disable(), gc.collect()), and leave out what stays (gc.freeze())"
    } else if speaks_of(&["by another thread"]) {
        "write checkpoints less often: the thread that writes them takes the interpreter and cores from the loop"
    } else if speaks_of(&["checkpoint", "save"]) {
        "write checkpoints from another thread"
    } else if speaks_of(&["eval", "valid", "test"]) {
        "evaluate outside the timed training step"
    } else if speaks_of(&["epoch"]) {
        "look for what every epoch sets up again, such as the loader's workers"
    } else {
        "look at what the program does at these marks"
    }
}

/// Adds whether some of them are where few people look, and what to try.
pub(super) fn advised(finding: Finding, text: &str, outside: u64) -> Finding {
    let finding = match outside {
        0 => finding,
        _ => finding.with_evidence_from(|facts| {
            let marks = facts.count(Number::Outside, outside);
            let verb = if outside == 1 { "is" } else { "are" };
            format!("{marks} of them {verb} between steps, where timers around steps miss them")
        }),
    };
    finding.with_advice(advice(text))
}

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn a_thread_that_saves_is_not_told_to_be_one() {
        assert_eq!(advice("checkpoint"), "write checkpoints from another thread");
        assert!(advice("checkpoint by another thread").starts_with("write checkpoints less often"));
    }
}
