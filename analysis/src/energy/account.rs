//! Energy of one component over any time, with its bounds, its label (how it was found) and its measured part; and its phases.

use std::ops::Range;

use serde::{Serialize, Serializer};

use super::fit::{Fit, FitRefusal};
use super::line::{EnergyLine, PowerRange};
use super::profile::Profile;
use super::shape::{EnergyShape, HoldOut};
use super::units::joules;

/// From this many periods of the counter on, at most a tenth is interpolated at the two ends.
const PERIODS_MEASURED: u64 = 10;
/// Knots further apart than this many periods are coarser than a hold-out of the newest ones shows.
const COARSE_PERIODS: u64 = 3;
/// Steps whose times vary by less than this share count as equal.
const LEAST_VARIATION: f64 = 0.02;
/// Energy imputed in gaps may be wrong by this share.
const IMPUTED_BAND: f64 = 0.5;

/// Energy over some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyFigure {
    /// The energy, in joules.
    pub joules: f64,
    /// It is at least this much...
    pub lo: f64,
    /// ...and at most this much: hard bounds, or the band of a model.
    pub hi: f64,
    /// Half the width of the 95 % interval that is shown, in joules.
    pub pm95: f64,
    /// How it was found.
    pub label: Label,
    /// How much of it a counter or sensor measured, in joules.
    pub measured_joules: f64,
    /// Share (0 to 1) of the time for which nothing is known.
    pub unknown_share: f64,
    /// Whether it may still change with the next reading.
    pub is_provisional: bool,
}

impl EnergyFigure {
    /// Share (0 to 1) of the energy that was measured; 0 without energy.
    pub fn coverage(&self) -> f64 {
        if self.joules > 0.0 { (self.measured_joules / self.joules).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The part of it that someone used, by a rule: no counter measured that part, so it is modelled.
    #[must_use]
    pub fn share(&self, share: f64) -> Self {
        let times = |of: f64| of * share;
        Self {
            joules: times(self.joules),
            lo: times(self.lo),
            hi: times(self.hi),
            pm95: times(self.pm95),
            label: Label::Modelled,
            measured_joules: times(self.measured_joules),
            ..*self
        }
    }

    /// The sum of two components. Errors of different sensors are assumed to be independent, bands of models are not.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let is_modelled = self.label == Label::Modelled || other.label == Label::Modelled;
        let pm95 = if is_modelled { self.pm95 + other.pm95 } else { self.pm95.hypot(other.pm95) };
        Self {
            joules: self.joules + other.joules,
            lo: self.lo + other.lo,
            hi: self.hi + other.hi,
            pm95,
            label: self.label.max(other.label),
            measured_joules: self.measured_joules + other.measured_joules,
            unknown_share: self.unknown_share.max(other.unknown_share),
            is_provisional: self.is_provisional || other.is_provisional,
        }
    }
}

/// How a step's energy is divided among its phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseShare {
    /// By fitted power.
    Fitted,
    /// By their time alone, as if power were the same in all of them.
    Duration,
}

/// Energy of one phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseFigure {
    /// The energy, in joules.
    pub joules: f64,
    /// How it was divided.
    pub share: PhaseShare,
    /// Fitted power in watts, if this phase was fitted by itself.
    pub watts: Option<f64>,
}

/// How a component's energy is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergySource {
    /// The best possible label of its numbers: measured for a counter, interpolated for integrated power.
    pub best: Label,
    /// The constant error of its sensor, as factors such as 0.95 and 1.05, or the band of a model.
    pub band: (f64, f64),
    /// The observed range of power.
    pub power: PowerRange,
}

/// One component's energy over time, ready for queries.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    line: EnergyLine,
    /// The usual time between two knots.
    period_ns: Option<u64>,
    profile: Profile,
    source: EnergySource,
    fit: Result<Fit, FitRefusal>,
    /// The fit by which the line is bent.
    bending: Option<Fit>,
    hold_out: Option<HoldOut>,
    steps_vary: bool,
}

impl Account {
    /// The account of a line. `profile` has phases by a clock that suits the component, and none if there is no such clock.
    /// `steps_ns` are lengths of recent steps.
    pub fn new(line: EnergyLine, profile: Profile, source: EnergySource, steps_ns: &[u64]) -> Self {
        let variation = variation(steps_ns);
        let steps_vary = variation.is_some_and(|(_, share)| share >= LEAST_VARIATION);
        let period_ns = line.period_ns();
        let is_locked = !steps_vary && variation.is_none_or(|(mean_ns, _)| locks(mean_ns, period_ns));
        let found = match Fit::new(&line, &profile) {
            Ok(_) if is_locked => Err(FitRefusal::Locked),
            found => found,
        };
        // The counter itself shows whether bending the line helps; for that, a fit need not be good enough to be shown.
        let straight = HoldOut::new(&EnergyShape::straight(&line));
        let bent = found.as_ref().ok().and_then(|fit| HoldOut::new(&EnergyShape::bent(&line, fit, &profile)));
        let is_bent = matches!((straight, bent), (Some(a), Some(b)) if b.miss_uj < a.miss_uj);
        let hold_out = if is_bent { bent } else { straight };
        let bending = found.as_ref().ok().filter(|_| is_bent).cloned();
        let fit = found.and_then(|fit| if fit.explains() { Ok(fit) } else { Err(FitRefusal::Unexplained(fit.r2)) });
        Self { line, period_ns, profile, source, fit, bending, hold_out, steps_vary }
    }

    /// Energy over time.
    pub fn line(&self) -> &EnergyLine {
        &self.line
    }

    /// Power by phase, or why it is unknown.
    pub fn fit(&self) -> Result<&Fit, FitRefusal> {
        self.fit.as_ref().map_err(|refusal| *refusal)
    }

    /// How well the line predicts its own knots.
    pub fn hold_out(&self) -> Option<HoldOut> {
        self.hold_out
    }

    /// The source of the energy.
    pub fn source(&self) -> &EnergySource {
        &self.source
    }

    /// The line with its bending.
    pub fn shape(&self) -> EnergyShape<'_> {
        match &self.bending {
            Some(fit) => EnergyShape::bent(&self.line, fit, &self.profile),
            None => EnergyShape::straight(&self.line),
        }
    }

    /// Energy over a range in whole microjoules: adjacent ranges add up to the whole.
    pub fn between_uj(&self, range: Range<u64>) -> u64 {
        self.shape().between(range)
    }

    /// Energy over a range; `None` if nothing of it is known.
    pub fn figure(&self, range: Range<u64>) -> Option<EnergyFigure> {
        let unknown_share = self.line.unknown_share(range.clone());
        self.line.span().filter(|span| range.start < span.end && range.end > span.start)?;
        let uj = self.between_uj(range.clone());
        let imputed = joules(self.line.imputed_between(range.clone()).min(uj));
        let (lo, hi, edges) = self.bounds(&range);
        let all = joules(uj);
        let (down, up) = self.source.band;
        let gain = f64::max(up - 1.0, 1.0 - down) * all;
        let is_modelled = self.source.best == Label::Modelled;
        Some(EnergyFigure {
            joules: all,
            lo: (lo * down - imputed * IMPUTED_BAND).clamp(0.0, all),
            hi: (hi * up + imputed * IMPUTED_BAND).max(all),
            pm95: edges + gain + imputed * IMPUTED_BAND,
            label: self.label(&range),
            measured_joules: if is_modelled { 0.0 } else { all - imputed },
            unknown_share,
            is_provisional: self.line.is_provisional(range.end),
        })
    }

    /// Hard bounds in joules, and half the width of the interval due to the two ends.
    fn bounds(&self, range: &Range<u64>) -> (f64, f64, f64) {
        if self.source.best == Label::Modelled {
            // Its line is exact; its error is the band.
            let all = joules(self.between_uj(range.clone()));
            return (all, all, 0.0);
        }
        let (lo, hi) = self.source.power.between(&self.line, range.start, range.end);
        let (lo, hi) = (lo / 1e6, hi / 1e6);
        let is_trusted = self.bending.is_some() || self.steps_vary;
        let is_fine = self.is_fine(range.start) && self.is_fine(range.end);
        let edges = match self.hold_out.filter(|_| is_trusted && is_fine) {
            Some(held_out) => held_out.half_width_uj() / 1e6,
            // Equal steps on a straight line repeat the same error, which leaving out knots does not reveal.
            None => (hi - lo) / 2.0,
        };
        (lo, hi, edges)
    }

    /// Whether knots there are as dense as usual: not in a gap, nor in the thinned part of a long run.
    fn is_fine(&self, t_ns: u64) -> bool {
        let (Some(piece), Some(period_ns)) = (self.line.piece(t_ns), self.period_ns) else { return false };
        let knots = self.line.knots();
        knots[piece + 1].t_ns - knots[piece].t_ns <= period_ns.saturating_mul(COARSE_PERIODS)
    }

    fn label(&self, range: &Range<u64>) -> Label {
        let needed_ns = self.period_ns.unwrap_or(u64::MAX).saturating_mul(PERIODS_MEASURED);
        let is_short = range.end.saturating_sub(range.start) < needed_ns;
        if is_short { self.source.best.max(Label::Interpolated) } else { self.source.best }
    }

    /// Divides energy among phases and gap by their time, in whole microjoules that add up to `uj`.
    ///
    /// `phase_ns` is in the order of the profile's phases, the gap last.
    pub fn split_uj(&self, uj: u64, phase_ns: &[u64]) -> Vec<u64> {
        let watts = |phase: usize| self.fit.as_ref().ok().and_then(|fit| fit.watts.get(phase).copied()).unwrap_or(1.0);
        let mut weights: Vec<f64> = phase_ns.iter().enumerate().map(|(phase, ns)| *ns as f64 * watts(phase)).collect();
        if weights.iter().sum::<f64>() <= 0.0 {
            weights = phase_ns.iter().map(|ns| *ns as f64).collect();
        }
        let all: f64 = weights.iter().sum();
        let (mut passed, mut given) = (0.0, 0);
        let last = weights.iter().rposition(|weight| *weight > 0.0);
        let part = |(phase, weight): (usize, &f64)| {
            passed += weight;
            // Rounding the running sum, not the parts, preserves the total.
            let until = if Some(phase) == last { uj } else { ((uj as f64 * (passed / all)).round() as u64).min(uj) };
            let part = if all > 0.0 { until.saturating_sub(given) } else { 0 };
            given += part;
            part
        };
        weights.iter().enumerate().map(part).collect()
    }

    /// The rule that [`Account::split_uj`] uses.
    pub fn phase_share(&self) -> PhaseShare {
        if self.fit.is_ok() { PhaseShare::Fitted } else { PhaseShare::Duration }
    }

    /// The energy of a phase as a figure.
    pub fn phase_figure(&self, phase: usize, uj: u64) -> PhaseFigure {
        let fit = self.fit.as_ref().ok();
        let watts =
            fit.filter(|fit| fit.is_own.get(phase) == Some(&true)).and_then(|fit| fit.watts.get(phase).copied());
        PhaseFigure { joules: joules(uj), share: self.phase_share(), watts }
    }
}

/// Mean and relative standard deviation of lengths; `None` for fewer than two, or if the mean is 0.
fn variation(lengths_ns: &[u64]) -> Option<(f64, f64)> {
    let n = lengths_ns.len() as f64;
    let mean = lengths_ns.iter().map(|ns| *ns as f64).sum::<f64>() / n;
    let variance = lengths_ns.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (lengths_ns.len() >= 2 && mean > 0.0).then(|| (mean, variance.sqrt() / mean))
}

/// Whether steps of this length are nearly in phase with the counter's period.
fn locks(mean_ns: f64, period_ns: Option<u64>) -> bool {
    let Some(period_ns) = period_ns else { return true };
    let periods = mean_ns / period_ns as f64;
    (periods - periods.round()).abs() < LEAST_VARIATION && periods.round() >= 1.0
}

/// How an energy figure was found. A figure made of several has the worst of their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// The difference of a counter's readings, over a time much longer than the interval between them.
    Measured,
    /// A counter interpolated between its readings, or measured power integrated over time.
    Interpolated,
    /// Power by phase, fitted to a counter.
    Fitted,
    /// Computed from a load and an assumed power: see its band.
    Modelled,
}

impl Label {
    /// The word for screens and reports: `measured`, `measured~`, `fitted` or `modelled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Interpolated => "measured~",
            Self::Fitted => "fitted",
            Self::Modelled => "modelled",
        }
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
