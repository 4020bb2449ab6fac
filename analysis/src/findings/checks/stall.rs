//! Stalls at marks: steps, or the time between them, that are long where the program says that something happened:
//! a garbage collection, a checkpoint, an evaluation, an epoch.

use std::collections::{BTreeMap, BTreeSet};

use gnntop_wire::NameId;

use super::check::{Check, too_few_steps};
use crate::figures::{count, duration, percent};
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind, Outcome, PLACES_LISTED};
use crate::findings::robust::median;
use crate::store::Instant;

/// Time that a mark must cost, as a share of a usual step...
const WORTH_SAYING: f64 = 0.2;
/// ...and in standard deviations of the usual noise.
const SIGMAS: f64 = 5.0;
/// A mark that comes at more than one in so many steps is part of the step.
const OFTEN: usize = 4;
/// Share of a mark's places that must be long.
const MOSTLY: f64 = 0.34;
/// By how much more often than elsewhere that must be.
const MORE_OFTEN: f64 = 5.0;

/// The check.
pub(super) struct Stalls;

/// What a mark did to its step.
#[derive(Clone, Copy)]
struct Effect {
    row: usize,
    is_inside: bool,
    cost_ns: f64,
    is_long: bool,
}

/// The marks of one name.
#[derive(Default)]
struct Marked {
    effects: Vec<Effect>,
    /// Marks inside steps, those of the warm-up among them.
    inside: u64,
    /// Marks between steps.
    outside: u64,
}

impl Check for Stalls {
    fn kind(&self) -> Kind {
        Kind::Stall
    }

    fn look(&self, evidence: &Evidence<'_>) -> Outcome {
        if !evidence.has_steps() {
            return too_few_steps(evidence);
        }
        let mut by_name: BTreeMap<NameId, Marked> = BTreeMap::new();
        for mark in evidence.store.marks().iter() {
            let Some(is_inside) = is_inside(evidence, mark) else { continue };
            let marked = by_name.entry(mark.name).or_default();
            marked.inside += u64::from(is_inside);
            marked.outside += u64::from(!is_inside);
            marked.effects.extend(effect(evidence, mark, is_inside));
        }
        if by_name.is_empty() {
            return Outcome::NotEnough("the program sets no marks during its steps".to_owned());
        }
        let found = |(name, marked): (&NameId, &Marked)| finding(evidence, *name, marked);
        by_name.iter().filter_map(found).collect::<Vec<Finding>>().into()
    }
}

fn between_excess(evidence: &Evidence<'_>, row: usize) -> f64 {
    evidence.between_ns[row] - evidence.usual_between_ns
}

fn long(evidence: &Evidence<'_>, row: usize, excess_ns: f64, noise_ns: f64) -> bool {
    excess_ns > WORTH_SAYING * (evidence.expected_ns[row] + evidence.usual_between_ns) && excess_ns > SIGMAS * noise_ns
}

/// Whether a mark lies inside a step, by its own timer, or before one; `None` for one outside of all that is looked
/// at.
fn is_inside(evidence: &Evidence<'_>, mark: &Instant) -> Option<bool> {
    let row = match evidence.row_at(mark.t_ns) {
        Some(row) => &evidence.rows[row],
        None => evidence.warm_up.iter().find(|row| mark.t_ns > row.period_start_ns() && mark.t_ns <= row.end_ns())?,
    };
    Some(mark.t_ns >= row.start_ns())
}

/// Joins a mark with the step that was running, by time.
fn effect(evidence: &Evidence<'_>, mark: &Instant, is_inside: bool) -> Option<Effect> {
    let row = evidence.row_at(mark.t_ns)?;
    let (cost_ns, noise_ns) = if is_inside {
        (evidence.excess_ns(row), evidence.noise_ns)
    } else {
        (between_excess(evidence, row), evidence.between_noise_ns)
    };
    Some(Effect { row, is_inside, cost_ns, is_long: long(evidence, row, cost_ns, noise_ns) })
}

/// The share of steps that are about as long as these stalls, or have as much before them, without being one of them. On
/// a busy machine many steps are a little late: that is no reason to overlook what costs far more.
fn share_elsewhere(evidence: &Evidence<'_>, stalls: &[&Effect]) -> f64 {
    let at_stalls: BTreeSet<usize> = stalls.iter().map(|stall| stall.row).collect();
    let mut costs: Vec<f64> = stalls.iter().map(|stall| stall.cost_ns).collect();
    let as_long = median(&mut costs).unwrap_or(0.0) / 2.0;
    let is_as_long = |row: usize| {
        let (inside, between) = (evidence.excess_ns(row), between_excess(evidence, row));
        let inside = inside > as_long && long(evidence, row, inside, evidence.noise_ns);
        inside || between > as_long && long(evidence, row, between, evidence.between_noise_ns)
    };
    let elsewhere = (0..evidence.rows.len()).filter(|row| is_as_long(*row) && !at_stalls.contains(row)).count();
    elsewhere as f64 / evidence.rows.len() as f64
}

fn finding(evidence: &Evidence<'_>, name: NameId, marked: &Marked) -> Option<Finding> {
    let Marked { effects, inside, outside } = marked;
    let text = evidence.store.name(name);
    let stalls: Vec<&Effect> = effects.iter().filter(|effect| effect.is_long).collect();
    let hit = stalls.len() as f64 / effects.len() as f64;
    if stalls.is_empty() || effects.len() * OFTEN > evidence.rows.len() {
        return None;
    }
    let elsewhere = share_elsewhere(evidence, &stalls);
    if hit < MOSTLY.max(MORE_OFTEN * elsewhere) {
        return None;
    }
    let sentence = |effect: &&&Effect| {
        let step = evidence.rows[effect.row].step().0;
        let place = if effect.is_inside { "in" } else { "before" };
        evidence.place(effect.row, format!("\"{text}\" {place} step {step} costs {}", duration(effect.cost_ns as u64)))
    };
    let cost: f64 = stalls.iter().map(|effect| effect.cost_ns).sum();
    let share = evidence.share(cost);
    let summary = format!(
        "\"{text}\" costs {} each time, {} of the time in all: {} in steps, {} between them",
        duration((cost / stalls.len() as f64) as u64),
        percent(share),
        count(*inside),
        count(*outside)
    );
    let confidence = if stalls.len() >= 3 { Confidence::High } else { Confidence::Medium };
    let mut finding = Finding::of_run(Kind::Stall, confidence, Some(share), summary)
        .at(stalls.iter().take(PLACES_LISTED).map(|e| sentence(&e)).collect(), stalls.len() as u64)
        .because(format!("{} of {} such marks lie where time is lost", stalls.len(), effects.len()))
        .because(format!("elsewhere {} of the steps are as long", percent(elsewhere)));
    if *outside > 0 {
        finding = finding.because(format!("{outside} of them lie between steps, where timers around steps miss them"));
    }
    Some(finding.advise(advice(text)))
}

fn advice(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let speaks_of = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if speaks_of(&["gc", "garbage"]) {
        "collect garbage between epochs instead of at any time, or freeze what lives long"
    } else if speaks_of(&["checkpoint", "save"]) {
        "write checkpoints from another thread, or less often"
    } else if speaks_of(&["eval", "valid", "test"]) {
        "evaluation is work of its own: keep it out of a training step's time"
    } else if speaks_of(&["epoch"]) {
        "see what is set up again for every epoch, such as the loader's workers"
    } else {
        "see what the program does at these marks"
    }
}
