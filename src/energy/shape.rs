//! Energy at any time: the line, bent between its knots to where the phases use power.
//!
//! Inside a piece energy moves in proportion to the fitted power of the phases that ran, scaled so that the piece keeps its
//! energy. Where there is no fit, or the phases are not known, the piece stays straight.

use std::ops::Range;

use super::fit::Fit;
use super::line::Line;
use super::profile::Profile;

/// A line with what is known of its inside.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    line: &'a Line,
    bent: Option<(&'a Fit, &'a Profile)>,
}

impl<'a> Shape<'a> {
    /// Straight between knots.
    pub fn straight(line: &'a Line) -> Self {
        Self { line, bent: None }
    }

    /// Bent by fitted power.
    pub fn bent(line: &'a Line, fit: &'a Fit, profile: &'a Profile) -> Self {
        Self { line, bent: Some((fit, profile)) }
    }

    /// The line below.
    pub fn line(&self) -> &'a Line {
        self.line
    }

    /// Whether it is bent.
    pub fn is_bent(&self) -> bool {
        self.bent.is_some()
    }

    /// Energy up to `t_ns` in microjoules, as [`Line::at`].
    pub fn at(&self, t_ns: u64) -> u64 {
        let Some(piece) = self.line.piece(t_ns) else { return self.line.at(t_ns) };
        let (a, b) = (&self.line.knots()[piece], &self.line.knots()[piece + 1]);
        if t_ns <= a.t_ns || t_ns >= b.t_ns {
            return self.line.at(t_ns);
        }
        match self.passed(a.t_ns..b.t_ns, t_ns) {
            // At most the piece's rise: the share is at most 1.
            Some(share) => a.uj + ((b.uj - a.uj) as f64 * share).round() as u64,
            None => self.line.at(t_ns),
        }
    }

    /// Energy of a time, in microjoules.
    pub fn between(&self, range: Range<u64>) -> u64 {
        self.at(range.end).saturating_sub(self.at(range.start))
    }

    /// Which share of a piece's energy was used by `t_ns`; `None` where that is straight.
    fn passed(&self, piece: Range<u64>, t_ns: u64) -> Option<f64> {
        let (fit, profile) = self.bent.filter(|(_, profile)| profile.covers(piece.start, piece.end))?;
        let whole = fitted(fit, profile, piece.clone());
        let share = fitted(fit, profile, piece.start..t_ns) / whole;
        (whole > 0.0).then_some(share.clamp(0.0, 1.0))
    }

    /// The energy that knots `a` and `b`, by number, predict for the time of a knot between them, in microjoules.
    pub(super) fn predicted(&self, a: usize, b: usize, t_ns: u64) -> f64 {
        let (a, b) = (&self.line.knots()[a], &self.line.knots()[b]);
        let straight = || (t_ns - a.t_ns) as f64 / (b.t_ns - a.t_ns) as f64;
        let share = self.passed(a.t_ns..b.t_ns, t_ns).unwrap_or_else(straight);
        a.uj as f64 + (b.uj - a.uj) as f64 * share
    }
}

/// Energy of a time by fitted power, in watts times nanoseconds.
fn fitted(fit: &Fit, profile: &Profile, range: Range<u64>) -> f64 {
    // As many as phases can be told apart, and the gap.
    let mut times = [0.0; 64];
    let len = profile.len().min(times.len());
    profile.add_between(range.start, range.end, &mut times[..len]);
    times.iter().zip(&fit.watts).map(|(ns, watts)| ns * watts).sum()
}
