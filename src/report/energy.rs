//! Energy and carbon in a report: by component and scope, of the run, its steps, epochs and phases, each with its bounds, its
//! label, its source and how much of it was measured.

use std::ops::Range;

use serde::Serialize;

use super::Options;
use crate::energy::{Basis, Figure, Intensity, Label, PhaseShare, kilowatt_hours, watt_hours};
use crate::figures::{percent, quantity};
use crate::store::{ComponentEnergy, EnergyBook, Scope, Store};

/// Epochs that are listed, the newest ones.
const EPOCHS_LISTED: usize = 32;
/// Columns of a page.
const WIDTH: usize = 80;
/// What nothing here counts.
const NOT_COUNTED: [&str; 4] = ["disks", "network", "fans", "power supply"];

/// Energy of a session.
#[derive(Clone, Debug, Serialize)]
pub struct Energy {
    /// GPUs, processors, memory.
    pub components: Vec<Component>,
    /// All components that are known, of the whole session.
    pub total: Total,
    /// The mean step.
    pub step: Option<Joules>,
    /// Which scope the total, the step and the epochs are of: `device` or `job`.
    pub scope: &'static str,
    /// The newest epochs, oldest first.
    pub epochs: Vec<Epoch>,
    /// Carbon of the total.
    pub carbon: Carbon,
    /// What is not counted at all.
    pub not_counted: [&'static str; 4],
}

/// Energy with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Joules {
    /// The energy.
    pub joules: f64,
    /// The same in watt-hours.
    pub watt_hours: f64,
    /// At least this many joules...
    pub lo_joules: f64,
    /// ...and at most this many.
    pub hi_joules: f64,
    /// Half the width of the 95 % interval.
    pub pm95_joules: f64,
    /// Where it comes from.
    pub label: Label,
    /// Share of it that was measured.
    pub coverage: f64,
    /// Share of the time for which nothing is known.
    pub unknown_share: f64,
    /// Whether the next reading may change it.
    pub is_provisional: bool,
}

/// Energy of one component over the session.
#[derive(Clone, Debug, Serialize)]
pub struct Component {
    /// Its name, such as `gpu 0`.
    pub name: String,
    /// Where its numbers come from.
    pub source: String,
    /// Why it is not measured, or not known.
    pub reason: Option<String>,
    /// The whole device.
    pub device: Option<Joules>,
    /// What the process used of it.
    pub job: Option<Joules>,
    /// Why that is not known.
    pub no_job_reason: Option<String>,
    /// Energy while no thread ran.
    pub idle: Option<Joules>,
    /// The usual time between two moves of its counter, in nanoseconds.
    pub period_ns: Option<u64>,
    /// How much of each period its sensor sees, in nanoseconds; `null` for all of it, or where it is not known.
    pub window_ns: Option<u64>,
    /// How often the counter broke off, by reason.
    pub gaps: Vec<Gap>,
    /// Energy of the device in the steps by phase, where a counter tells.
    pub phases: Vec<PhaseEnergy>,
}

/// Breaks of a counter for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Gap {
    /// Why.
    pub reason: &'static str,
    /// How often.
    pub count: u64,
}

/// Energy of one phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseEnergy {
    /// The phase.
    pub name: String,
    /// Its energy.
    pub joules: f64,
    /// Its fitted power, where it has one of its own.
    pub watts: Option<f64>,
    /// `fitted`, or `duration` where energy is shared by time alone.
    pub by: &'static str,
}

/// The sum of the components.
#[derive(Clone, Debug, Serialize)]
pub struct Total {
    /// Of the whole devices.
    pub device: Option<Joules>,
    /// Of the job.
    pub job: Option<Joules>,
    /// Components that are not in the first.
    pub without_device: Vec<String>,
    /// Components that are not in the second.
    pub without_job: Vec<String>,
}

/// Energy of one epoch.
#[derive(Clone, Debug, Serialize)]
pub struct Epoch {
    /// Its number.
    pub epoch: u64,
    /// Its energy.
    pub energy: Joules,
}

/// Carbon of the total.
#[derive(Clone, Debug, Serialize)]
pub struct Carbon {
    /// Kilograms of CO2-equivalent: value, at least, at most.
    pub kilograms: Option<[f64; 3]>,
    /// The intensity it is computed with.
    pub intensity: Option<Intensity>,
    /// Why there is none.
    pub reason: Option<String>,
    /// What counts.
    pub basis: Basis,
    /// Energy of the building for each joule.
    pub pue: f64,
    /// Whether someone said that PUE.
    pub is_pue_given: bool,
}

impl From<Figure> for Joules {
    fn from(figure: Figure) -> Self {
        Self {
            joules: figure.joules,
            watt_hours: watt_hours(figure.joules),
            lo_joules: figure.lo,
            hi_joules: figure.hi,
            pm95_joules: figure.pm95,
            label: figure.label,
            coverage: figure.coverage(),
            unknown_share: figure.unknown_share,
            is_provisional: figure.is_provisional,
        }
    }
}

impl Energy {
    /// Energy of what the store holds, under the options' assumptions.
    pub fn of(store: &Store, options: &Options) -> Self {
        let book = store.energy(&options.assumptions);
        let session = store.first_ns().unwrap_or(0)..store.now_ns();
        let total = Total::of(&book, &session);
        // A job that is known by all that the devices are known by is what a person asks for; else the devices.
        let is_job = total.job.is_some() && total.without_job.len() <= total.without_device.len();
        let scope = if is_job { Scope::Job } else { Scope::Device };
        let of_scope = if is_job { total.job } else { total.device };
        Self {
            components: book.components.iter().map(|component| Component::of(&book, component, &session)).collect(),
            step: step(store, &book, scope, options.skip_steps),
            scope: if is_job { "job" } else { "device" },
            epochs: epochs(store, &book, scope),
            carbon: Carbon::of(of_scope.as_ref(), options),
            total,
            not_counted: NOT_COUNTED,
        }
    }

    /// Energy of the session in the scope that is shown.
    pub fn in_scope(&self) -> Option<&Joules> {
        if self.scope == "job" { self.total.job.as_ref() } else { self.total.device.as_ref() }
    }
}

impl Component {
    fn of(book: &EnergyBook<'_>, component: &ComponentEnergy, session: &Range<u64>) -> Self {
        let figure = |scope| book.figure(component, scope, session.clone()).map(Joules::from);
        let account = component.device.as_ref().ok();
        let gaps = account.map(|account| account.line().gaps()).unwrap_or_default();
        Self {
            name: component.name.clone(),
            source: component.source.clone(),
            reason: component.reason.clone(),
            device: figure(Scope::Device),
            job: figure(Scope::Job),
            no_job_reason: book.no_job(component).map(str::to_owned),
            idle: book.idle(component, session.clone()).map(Joules::from),
            period_ns: account.and_then(|account| account.line().period_ns()),
            window_ns: account.and_then(|account| account.fit().ok()?.window_ns),
            gaps: gaps.iter().map(|(reason, count)| Gap { reason: reason.as_str(), count: *count }).collect(),
            phases: phases(book, component),
        }
    }
}

fn phases(book: &EnergyBook<'_>, component: &ComponentEnergy) -> Vec<PhaseEnergy> {
    let word = |share| if share == PhaseShare::Fitted { "fitted" } else { "duration" };
    let energy = |(name, figure): (&str, crate::energy::PhaseFigure)| PhaseEnergy {
        name: name.to_owned(),
        joules: figure.joules,
        watts: figure.watts,
        by: word(figure.share),
    };
    book.phases(component).into_iter().map(energy).collect()
}

impl Total {
    fn of(book: &EnergyBook<'_>, session: &Range<u64>) -> Self {
        let all: Vec<String> = book.components.iter().map(|component| component.name.clone()).collect();
        let of = |scope| match book.total(scope, session.clone()) {
            Some((figure, missing)) => (Some(figure.into()), missing.into_iter().map(str::to_owned).collect()),
            None => (None, all.clone()),
        };
        let ((device, without_device), (job, without_job)) = (of(Scope::Device), of(Scope::Job));
        Self { device, job, without_device, without_job }
    }
}

/// The mean step from `skip` on.
fn step(store: &Store, book: &EnergyBook<'_>, scope: Scope, skip: u64) -> Option<Joules> {
    let first = store.steps().known_row(skip)?;
    let range = first.period_start_ns()..store.steps().last()?.end_ns();
    let steps = store.steps().total().checked_sub(skip).filter(|steps| *steps > 0)?;
    let all = book.total(scope, range)?.0;
    let label = all.label;
    Some(Figure { label, ..all.share(1.0 / steps as f64) }.into())
}

/// The newest epochs whose steps are kept.
fn epochs(store: &Store, book: &EnergyBook<'_>, scope: Scope) -> Vec<Epoch> {
    let mut times: Vec<(u64, Range<u64>)> = Vec::new();
    for row in store.steps().all().rev() {
        let is_full = times.len() == EPOCHS_LISTED;
        match times.last_mut() {
            Some((epoch, time)) if *epoch == row.epoch() => time.start = row.period_start_ns(),
            _ if is_full => break,
            _ => times.push((row.epoch(), row.period_start_ns()..row.end_ns())),
        }
    }
    let energy = |(epoch, time)| Some(Epoch { epoch, energy: book.total(scope, time)?.0.into() });
    times.into_iter().rev().filter_map(energy).collect()
}

impl Carbon {
    fn of(total: Option<&Joules>, options: &Options) -> Self {
        let assumptions = &options.assumptions;
        let pue = assumptions.pue_or_one();
        let (intensity, reason) = match (total, assumptions.intensity()) {
            (None, _) => (None, Some("no energy is known".to_owned())),
            (_, Ok(intensity)) => (Some(intensity), None),
            (_, Err(reason)) => (None, Some(reason)),
        };
        let kilograms = intensity.as_ref().zip(total).map(|(intensity, total)| {
            [total.joules, total.lo_joules, total.hi_joules].map(|joules| intensity.kilograms(joules, pue))
        });
        let is_pue_given = assumptions.pue.is_some();
        Self { kilograms, intensity, reason, basis: assumptions.basis, pue, is_pue_given }
    }
}

/// Writes the section for people.
pub(super) fn write(out: &mut String, energy: &Energy) {
    out.push_str(&format!("energy of the {}\n", if energy.scope == "job" { "job" } else { "devices" }));
    for component in &energy.components {
        let shown = if energy.scope == "job" { &component.job } else { &component.device };
        match (shown, &component.no_job_reason) {
            (Some(joules), _) => line(out, &component.name, &format!("{}; {}", in_words(joules), component.source)),
            (None, Some(reason)) if energy.scope == "job" => line(out, &component.name, &format!("- {reason}")),
            _ => line(out, &component.name, &format!("- {}", component.reason.as_deref().unwrap_or("not known"))),
        }
        if let Some(idle) = &component.idle {
            line(out, &format!("{} idle", component.name), &in_words(idle));
        }
        component.phases.iter().for_each(|phase| line(out, &format!("  {}", phase.name), &phase_in_words(phase)));
    }
    let all = energy.in_scope().map_or_else(|| "- nothing is known".to_owned(), total_in_words);
    line(out, "in all", &all);
    if let Some(step) = &energy.step {
        line(out, "a step", &in_words(step));
    }
    line(out, "carbon", &carbon_in_words(&energy.carbon));
    line(out, "not counted", &energy.not_counted.join(", "));
    out.push('\n');
}

/// Writes a line, broken between words and indented where it is longer than the page.
fn line(out: &mut String, about: &str, text: &str) {
    let mut row = format!("  {about:<16}");
    for word in text.split(' ') {
        if row.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&format!("{row}\n"));
            row = format!("  {:<16}", "");
        }
        row.push(' ');
        row.push_str(word);
    }
    out.push_str(&format!("{row}\n"));
}

/// Energy with its interval and label. A model has its band instead of an interval.
fn in_words(joules: &Joules) -> String {
    let energy = energy_in_words(joules.joules);
    let label = joules.label.as_str();
    let provisional = if joules.is_provisional { ", provisional" } else { "" };
    if joules.label == Label::Modelled {
        return format!(
            "{energy} ({} to {}) {label}{provisional}",
            quantity(joules.lo_joules),
            quantity(joules.hi_joules)
        );
    }
    let share = if joules.joules > 0.0 { joules.pm95_joules / joules.joules } else { 0.0 };
    format!("{energy} +-{} {label}{provisional}", percent(share))
}

fn total_in_words(joules: &Joules) -> String {
    let unknown = joules.unknown_share;
    let unknown =
        if unknown >= 0.005 { format!("; {} of the time is not known", percent(unknown)) } else { String::new() };
    format!("{} ({} measured){unknown}", in_words(joules), percent(joules.coverage))
}

/// Joules, and beyond a watt-hour what people pay for.
fn energy_in_words(joules: f64) -> String {
    match watt_hours(joules) {
        wh if wh >= 1000.0 => format!("{} J = {} kWh", quantity(joules), quantity(kilowatt_hours(joules))),
        wh if wh >= 1.0 => format!("{} J = {} Wh", quantity(joules), quantity(wh)),
        _ => format!("{} J", quantity(joules)),
    }
}

fn phase_in_words(phase: &PhaseEnergy) -> String {
    let watts = phase.watts.map(|watts| format!(", {} W", quantity(watts))).unwrap_or_default();
    let by = if phase.by == "fitted" { "fitted" } else { "by duration" };
    format!("{} J{watts}, {by}", quantity(phase.joules))
}

fn carbon_in_words(carbon: &Carbon) -> String {
    let (Some([kg, lo, hi]), Some(intensity)) = (carbon.kilograms, &carbon.intensity) else {
        return format!("- {}", carbon.reason.as_deref().unwrap_or("not known"));
    };
    let set = if carbon.is_pue_given { "" } else { " (not set)" };
    let grams = |kg: f64| quantity(kg * 1e3);
    format!("{} g CO2e ({} to {}); {intensity}; PUE {}{set}", grams(kg), grams(lo), grams(hi), carbon.pue)
}
