//! Energy and carbon of a session: by component and scope, of the run, its steps, epochs and phases, each with its bounds, its
//! label, its source and how much of it was measured.

use serde::Serialize;

use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::energy::{
    Basis, ComponentEnergy, CrossCheck, EnergyFigure, EnergyScope, Intensity, Label, PhaseFigure, PhaseShare,
    watt_hours,
};

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
    /// Energy of the session that the figures are of.
    pub fn new(figures: &Catalogue<'_>) -> Self {
        let parts = figures.energy().components.iter().zip(figures.phases_energy());
        let epoch = |(epoch, is_whole, energy): &(u64, bool, EnergyFigure)| Epoch {
            epoch: *epoch,
            is_whole: *is_whole,
            energy: (*energy).into(),
        };
        Self {
            components: parts.map(|(part, phases)| Component::new(figures, part, phases)).collect(),
            step: figures.step_energy().map(Joules::from),
            scope: figures.energy_scope(),
            epochs: figures.epochs_energy().iter().map(epoch).collect(),
            carbon: Carbon::new(figures),
            total: Total::new(figures),
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
    fn new(figures: &Catalogue<'_>, component: &ComponentEnergy, phases: &[(&str, PhaseFigure)]) -> Self {
        let (book, session) = (figures.energy(), figures.store().session_ns());
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
            phases: phases.iter().copied().map(PhaseEnergy::new).collect(),
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
    fn new(figures: &Catalogue<'_>) -> Self {
        let all = || figures.energy().components.iter().map(|component| component.name.clone()).collect();
        let of = |scope| match figures.total_energy(scope) {
            Some((figure, missing)) => (Some(figure.into()), missing.into_iter().map(str::to_owned).collect()),
            None => (None, all()),
        };
        let ((device, without_device), (job, without_job)) = (of(EnergyScope::Device), of(EnergyScope::Job));
        Self { device, job, without_device, without_job }
    }
}

impl Carbon {
    fn new(figures: &Catalogue<'_>) -> Self {
        let (assumptions, total) = (figures.assumptions(), figures.subject("carbon", "").get(Statistic::Total));
        let grams = total.as_ref().ok().and_then(|total| Some((total.value, total.interval?)));
        Self {
            kilograms: grams.map(|(grams, (low, high))| [grams, low, high].map(|grams| grams / 1e3)),
            intensity: grams.and_then(|_| figures.carbon_intensity().ok()),
            reason: total.err().map(|absent| absent.to_string()),
            basis: assumptions.basis,
            pue: assumptions.pue_or_one(),
            is_pue_given: assumptions.pue.is_some(),
        }
    }
}
