//! Energy at any time: the line, bent between its knots according to the power of the phases.
//!
//! Inside a piece, energy follows the fitted power of the phases that ran. The difference between the piece's energy and
//! the fit is divided among them, so the piece keeps its energy. Without a fit, or if the phases are unknown, the piece
//! stays straight. The error of this is estimated from the counter itself: each knot is left out and predicted from its
//! neighbours ([`HoldOut`]).

use std::ops::Range;

use super::fit::Fit;
use super::line::EnergyLine;
use super::profile::Profile;

/// The most phases that are kept apart, and the gap.
const MAX_PHASES: usize = 64;
/// Most knots left out in turn, the newest.
const MAX_KNOTS: usize = 4000;
/// The error of an interpolation inside one piece, relative to that of a prediction across two: from simulation.
const TWO_PIECES_SHARE: f64 = 0.7;
/// 95 % of a normal distribution is within this many standard deviations.
const SIGMAS: f64 = 1.96;

/// A line and, if it is bent, its fit and profile.
#[derive(Clone, Copy, Debug)]
pub struct EnergyShape<'a> {
    line: &'a EnergyLine,
    bent: Option<(&'a Fit, &'a Profile)>,
}

impl<'a> EnergyShape<'a> {
    /// Straight between knots.
    pub fn straight(line: &'a EnergyLine) -> Self {
        Self { line, bent: None }
    }

    /// Bent by fitted power.
    pub fn bent(line: &'a EnergyLine, fit: &'a Fit, profile: &'a Profile) -> Self {
        Self { line, bent: Some((fit, profile)) }
    }

    /// The underlying line.
    pub fn line(&self) -> &'a EnergyLine {
        self.line
    }

    /// Whether it is bent.
    pub fn is_bent(&self) -> bool {
        self.bent.is_some()
    }

    /// Energy up to `t_ns` in microjoules, like [`EnergyLine::at`].
    pub fn at(&self, t_ns: u64) -> u64 {
        let Some(piece) = self.line.piece(t_ns) else { return self.line.at(t_ns) };
        let (a, b) = (&self.line.knots()[piece], &self.line.knots()[piece + 1]);
        if t_ns <= a.t_ns || t_ns >= b.t_ns {
            return self.line.at(t_ns);
        }
        match self.passed(a.t_ns..b.t_ns, b.uj - a.uj, t_ns) {
            // At most the piece's rise, since the share is at most 1.
            Some(share) => a.uj + ((b.uj - a.uj) as f64 * share).round() as u64,
            None => self.line.at(t_ns),
        }
    }

    /// Energy over a range, in microjoules.
    pub fn between(&self, range: Range<u64>) -> u64 {
        self.at(range.end).saturating_sub(self.at(range.start))
    }

    /// The share of a piece's energy, `rise_uj`, used by `t_ns`; `None` if the piece is straight.
    fn passed(&self, piece: Range<u64>, rise_uj: u64, t_ns: u64) -> Option<f64> {
        let (fit, profile) = self.bent.filter(|(_, profile)| profile.covers(piece.start, piece.end))?;
        let whole = Fitted::new(fit, profile, piece.clone());
        let share = whole.share(&Fitted::new(fit, profile, piece.start..t_ns), rise_uj as f64 * 1e3)?;
        Some(share.clamp(0.0, 1.0))
    }

    /// The energy that knots `a` and `b`, by index, predict for a time between them, in microjoules.
    pub(super) fn predicted(&self, a: usize, b: usize, t_ns: u64) -> f64 {
        let (a, b) = (&self.line.knots()[a], &self.line.knots()[b]);
        let straight = || (t_ns - a.t_ns) as f64 / (b.t_ns - a.t_ns) as f64;
        let share = self.passed(a.t_ns..b.t_ns, b.uj - a.uj, t_ns).unwrap_or_else(straight);
        a.uj as f64 + (b.uj - a.uj) as f64 * share
    }
}

/// Energy over a range by fitted power, phase by phase, in nanojoules: watts times nanoseconds.
struct Fitted([f64; MAX_PHASES]);

impl Fitted {
    fn new(fit: &Fit, profile: &Profile, range: Range<u64>) -> Self {
        let mut energies = [0.0; MAX_PHASES];
        let len = profile.len().min(energies.len());
        profile.add_between(range.start, range.end, &mut energies[..len]);
        energies.iter_mut().zip(&fit.watts).for_each(|(of_phase, watts)| *of_phase *= watts);
        energies.iter_mut().skip(fit.watts.len()).for_each(|of_phase| *of_phase = 0.0);
        Self(energies)
    }

    fn sum(&self) -> f64 {
        self.0.iter().sum()
    }

    /// The share of a piece's energy that was used when `part` of its fitted energy was.
    ///
    /// The difference between the piece's energy and the fit is divided in the most likely way if each phase is off by the
    /// same share of its energy on average, independently: in proportion to the square of its fitted energy.
    fn share(&self, part: &Self, rise_nj: f64) -> Option<f64> {
        let whole = self.sum();
        let variance: f64 = self.0.iter().map(|of_phase| of_phase * of_phase).sum();
        let (beside, largest) = (rise_nj - whole, self.0.iter().copied().fold(0.0, f64::max));
        if whole <= 0.0 || rise_nj <= 0.0 {
            return None;
        }
        // If a phase would become negative, all are scaled equally.
        if beside * largest < -variance {
            return Some(part.sum() / whole);
        }
        let covariance: f64 = self.0.iter().zip(&part.0).map(|(of_phase, passed)| of_phase * passed).sum();
        Some((part.sum() + beside * covariance / variance) / rise_nj)
    }
}

/// The result of leaving out knots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldOut {
    /// Root mean square error, in microjoules.
    pub miss_uj: f64,
    /// Number of knots that were left out.
    pub knots: usize,
}

impl HoldOut {
    /// Leaves out the newest knots one by one; `None` if fewer than ten can be left out.
    pub fn new(shape: &EnergyShape<'_>) -> Option<Self> {
        let knots = shape.line().knots();
        let first = knots.len().saturating_sub(MAX_KNOTS);
        let (mut squares, mut count) = (0.0, 0usize);
        for (index, three) in knots[first..].windows(3).enumerate() {
            if three[2].gap_ns > three[0].gap_ns {
                continue;
            }
            let predicted = shape.predicted(first + index, first + index + 2, three[1].t_ns);
            squares += (predicted - three[1].uj as f64).powi(2);
            count += 1;
        }
        (count >= 10).then(|| Self { miss_uj: (squares / count as f64).sqrt(), knots: count })
    }

    /// Half the width of a 95 % interval around energy between two times, in microjoules.
    pub fn half_width_uj(&self) -> f64 {
        SIGMAS * f64::sqrt(2.0) * TWO_PIECES_SHARE * self.miss_uj
    }
}
