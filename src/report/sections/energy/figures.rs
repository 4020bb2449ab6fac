//! Energy and carbon of a session: by component and scope, of the run, its steps, epochs and phases, each with its bounds, its
//! label, its source and how much of it was measured.

use std::ops::Range;

use serde::Serialize;

use crate::report::options::Options;
use gnntop_analysis::energy::{
    Assumptions, Basis, ComponentEnergy, CrossCheck, EnergyBook, EnergyFigure, EnergyScope, Intensity, IntensityError,
    Label, PhaseFigure, PhaseShare, watt_hours,
};
use gnntop_analysis::store::Store;

/// What nothing here counts.
const NOT_COUNTED: [&str; 4] = ["disks", "network", "fans", "power supply"];

/// Energy of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Energy {
    /// GPUs, processors, memory.
    pub components: Vec<Component>,
    /// All components that are known, of the whole session.
    pub total: Total,
    /// The mean step.
    pub step: Option<Joules>,
    /// Which scope the total, the step and the epochs are of.
    pub scope: EnergyScope,
    /// The newest epochs, oldest first.
    pub epochs: Vec<Epoch>,
    /// Carbon of the total.
    pub carbon: Carbon,
    /// What is not counted at all.
    pub not_counted: [&'static str; 4],
}

/// Energy with its bounds and origin.
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
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// Where its counter and its power disagree.
    pub doubt: Option<Doubt>,
    /// Energy of the device in the steps by phase, if there is a counter.
    pub phases: Vec<PhaseEnergy>,
}

/// A counter and the power beside it that are more than a quarter apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Doubt {
    /// Half minutes that were compared.
    pub compared: u64,
    /// How many of them disagree.
    pub apart: u64,
    /// In the worst of them by the counter...
    pub counted_joules: f64,
    /// ...and by the power, added up over time.
    pub integrated_joules: f64,
}

impl Doubt {
    fn from_check(check: &CrossCheck) -> Option<Self> {
        let (counted_joules, integrated_joules) = check.worst.filter(|_| check.is_doubtful())?;
        Some(Self { compared: check.windows, apart: check.apart, counted_joules, integrated_joules })
    }
}

/// Breaks of a counter for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gap {
    /// Why.
    pub reason: &'static str,
    /// How often.
    pub count: u64,
}

/// Energy of one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseEnergy {
    /// The phase.
    pub name: String,
    /// Its energy.
    pub joules: f64,
    /// Its fitted power, if it has its own.
    pub watts: Option<f64>,
    /// `fitted`, or `duration` where energy is shared by time alone.
    pub by: &'static str,
}

/// The sum of the components.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Epoch {
    /// Its number.
    pub epoch: u64,
    /// Whether all of its steps are in it: it has begun in what is kept, and is over.
    pub is_whole: bool,
    /// Its energy.
    pub energy: Joules,
}

/// Carbon of the total.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Carbon {
    /// Kilograms of CO2-equivalent: value, lower and upper bound.
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

impl From<EnergyFigure> for Joules {
    fn from(figure: EnergyFigure) -> Self {
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
    pub fn new(store: &Store, options: &Options) -> Self {
        let book = store.energy(&options.assumptions);
        Self::from_book(&book, store, &options.assumptions, options.skip_steps)
    }

    /// What a book says of the session in `store`; the mean step is one without the first `skip_steps`.
    pub fn from_book(book: &EnergyBook, store: &Store, assumptions: &Assumptions, skip_steps: u64) -> Self {
        let session = store.first_ns().unwrap_or(0)..store.now_ns();
        let total = Total::new(book, &session);
        let scope = book.shown_scope(session.clone());
        let of_scope = if scope == EnergyScope::Job { total.job } else { total.device };
        Self {
            components: book.components.iter().map(|part| Component::new(book, part, store, &session)).collect(),
            step: store.mean_step_energy(book, scope, skip_steps).map(Joules::from),
            scope,
            epochs: epochs(store, book, scope),
            carbon: Carbon::new(
                of_scope.as_ref(),
                assumptions,
                store.carbon_intensity(book, assumptions, scope, session),
            ),
            total,
            not_counted: NOT_COUNTED,
        }
    }

    /// Energy of the session in the scope that is shown.
    pub fn in_scope(&self) -> Option<&Joules> {
        match self.scope {
            EnergyScope::Job => self.total.job.as_ref(),
            EnergyScope::Device => self.total.device.as_ref(),
        }
    }
}

impl Component {
    fn new(book: &EnergyBook, component: &ComponentEnergy, store: &Store, session: &Range<u64>) -> Self {
        let figure = |scope| book.figure(component, scope, session.clone()).map(Joules::from);
        let account = component.device.as_ref().ok();
        let gaps = account.map(|account| account.line().gaps()).unwrap_or_default();
        Self {
            name: component.name.clone(),
            source: component.source.clone().unwrap_or_else(|| "none".to_owned()),
            reason: component.reason.clone(),
            device: figure(EnergyScope::Device),
            job: figure(EnergyScope::Job),
            no_job_reason: book.job_absence(component).map(str::to_owned),
            idle: book.idle(component, session.clone()).map(Joules::from),
            period_ns: account.and_then(|account| account.line().period_ns()),
            window_ns: account.and_then(|account| account.fit().ok()?.window_ns),
            gaps: gaps.iter().map(|(reason, count)| Gap { reason: reason.as_str(), count: *count }).collect(),
            doubt: Doubt::from_check(&component.check),
            phases: store.energy_by_phase(component).into_iter().map(PhaseEnergy::new).collect(),
        }
    }
}

impl PhaseEnergy {
    /// A phase by its name.
    pub fn new((name, figure): (&str, PhaseFigure)) -> Self {
        let by = if figure.share == PhaseShare::Fitted { "fitted" } else { "duration" };
        Self { name: name.to_owned(), joules: figure.joules, watts: figure.watts, by }
    }
}

impl Total {
    fn new(book: &EnergyBook, session: &Range<u64>) -> Self {
        let all: Vec<String> = book.components.iter().map(|component| component.name.clone()).collect();
        let of = |scope| match book.total(scope, session.clone()) {
            Some((figure, missing)) => (Some(figure.into()), missing.into_iter().map(str::to_owned).collect()),
            None => (None, all.clone()),
        };
        let ((device, without_device), (job, without_job)) = (of(EnergyScope::Device), of(EnergyScope::Job));
        Self { device, job, without_device, without_job }
    }
}

/// The newest epochs whose steps are kept.
fn epochs(store: &Store, book: &EnergyBook, scope: EnergyScope) -> Vec<Epoch> {
    let epoch = |(epoch, is_whole, figure): (u64, bool, EnergyFigure)| Epoch { epoch, is_whole, energy: figure.into() };
    store.epochs_energy(book, scope, 0).into_iter().map(epoch).collect()
}

impl Carbon {
    fn new(total: Option<&Joules>, assumptions: &Assumptions, intensity: Result<Intensity, IntensityError>) -> Self {
        let pue = assumptions.pue_or_one();
        let (intensity, reason) = match (total, intensity) {
            (None, _) => (None, Some("no energy is known".to_owned())),
            (_, Ok(intensity)) => (Some(intensity), None),
            (_, Err(reason)) => (None, Some(reason.to_string())),
        };
        let kilograms = intensity.as_ref().zip(total).map(|(intensity, total)| {
            [total.joules, total.lo_joules, total.hi_joules].map(|joules| intensity.kilograms(joules, pue))
        });
        let is_pue_given = assumptions.pue.is_some();
        Self { kilograms, intensity, reason, basis: assumptions.basis, pue, is_pue_given }
    }
}
