//! Power by phase, fitted to a counter that is slower than the phases.
//!
//! Each piece of the line between two knots gives `dE = sum over phases of power x time of the phase in it`. Over hundreds
//! of pieces the phases are distributed differently, so that non-negative least squares finds the power of each. For a
//! sensor that sees only part of each period (A100 and H100 see 25 of 100 ms: arXiv 2312.02741), windows of that length at
//! the end of each period are tried: the wrong window fits badly, which shows in R2.

use super::line::EnergyLine;
use super::profile::Profile;

/// Windows tried besides the full period, in nanoseconds.
const WINDOWS_NS: [u64; 3] = [50_000_000, 25_000_000, 12_500_000];
/// Nothing is published below this share of explained variance.
const LEAST_R2: f64 = 0.9;
/// Most pieces used, the newest.
const MAX_PIECES: usize = 4000;
/// Fewest pieces for each phase.
const PIECES_PER_PHASE: usize = 10;
/// Phases shorter than this, or than two polls, are fitted together.
const SHORTEST_NS: f64 = 20_000_000.0;
/// Most sweeps over the unknowns; with up to 33 of them a sweep is 1,089 products.
const MAX_SWEEPS: usize = 20_000;

/// Power by phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Watts of each phase, the gap last. Short phases share one value.
    pub watts: Vec<f64>,
    /// Whether a phase is long enough to be shown by itself.
    pub is_own: Vec<bool>,
    /// Share of the variance that it explains, at most 1.
    pub r2: f64,
    /// How much of each period the sensor sees; `None` for all of it.
    pub window_ns: Option<u64>,
    /// Number of pieces between knots that were used.
    pub pieces: usize,
}

/// Why there is no fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FitRefusal {
    /// Too few knots for the number of phases.
    TooFew,
    /// It explains too little of the counter: this share of the variance.
    Unexplained(f64),
    /// Steps have the same length and are locked to the counter's period, so that phases are distributed alike in all pieces.
    Locked,
}

/// One equation for each piece: times of the groups in seconds, and joules.
struct System {
    columns: usize,
    times: Vec<f64>,
    joules: Vec<f64>,
}

impl Fit {
    /// Fits power by phase to the newest pieces of a line.
    ///
    /// It may explain little: see [`Fit::explains`].
    ///
    /// # Errors
    /// If too few pieces are inside the profile.
    pub fn new(line: &EnergyLine, profile: &Profile) -> Result<Self, FitRefusal> {
        let groups = Groups::new(line, profile);
        let period_ns = line.period_ns().ok_or(FitRefusal::TooFew)?;
        let windows = WINDOWS_NS.into_iter().filter(|window_ns| *window_ns < period_ns).map(Some);
        let mut best: Option<Self> = None;
        for window_ns in [None].into_iter().chain(windows) {
            let system = System::new(line, profile, &groups, window_ns);
            if system.joules.len() < PIECES_PER_PHASE * groups.count {
                return Err(FitRefusal::TooFew);
            }
            let (watts, r2) = system.solve();
            if best.as_ref().is_none_or(|best| r2 > best.r2) {
                let watts = groups.of_phase.iter().map(|group| watts[*group]).collect();
                best = Some(Self { watts, is_own: groups.is_own.clone(), r2, window_ns, pieces: system.joules.len() });
            }
        }
        best.ok_or(FitRefusal::TooFew)
    }

    /// Whether it explains enough of the counter to be shown as power by phase.
    pub fn explains(&self) -> bool {
        self.r2 >= LEAST_R2
    }
}

/// Which phases are fitted together.
struct Groups {
    of_phase: Vec<usize>,
    is_own: Vec<bool>,
    count: usize,
}

impl Groups {
    fn new(line: &EnergyLine, profile: &Profile) -> Self {
        let newest = line.knots().iter().rev().take(256);
        let poll_ns = newest.map(|knot| 2 * knot.half_gap_ns).max().unwrap_or(0) as f64;
        let shortest_ns = SHORTEST_NS.max(2.0 * poll_ns);
        let mut count = 1;
        let mut of_phase = Vec::new();
        let mut is_own = Vec::new();
        for phase in 0..profile.len() {
            let is_long = profile.mean_ns(phase).is_some_and(|ns| ns >= shortest_ns);
            of_phase.push(if is_long { count } else { 0 });
            is_own.push(is_long);
            count += usize::from(is_long);
        }
        Self { of_phase, is_own, count }
    }
}

impl System {
    fn new(line: &EnergyLine, profile: &Profile, groups: &Groups, window_ns: Option<u64>) -> Self {
        let mut system = Self { columns: groups.count, times: Vec::new(), joules: Vec::new() };
        let knots = line.knots();
        let mut of_phases = vec![0.0; profile.len()];
        for pair in knots[knots.len().saturating_sub(MAX_PIECES + 1)..].windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            let period_ns = b.t_ns - a.t_ns;
            let from_ns = window_ns.map_or(a.t_ns, |window_ns| b.t_ns.saturating_sub(window_ns));
            if !profile.covers(from_ns.min(a.t_ns), b.t_ns) || b.gap_ns > a.gap_ns {
                continue;
            }
            of_phases.fill(0.0);
            profile.add_between(from_ns, b.t_ns, &mut of_phases);
            let scale = period_ns as f64 / (b.t_ns - from_ns).max(1) as f64 / 1e9;
            let row = system.times.len();
            system.times.resize(row + groups.count, 0.0);
            for (group, ns) in groups.of_phase.iter().zip(&of_phases) {
                system.times[row + group] += ns * scale;
            }
            system.joules.push((b.uj - a.uj) as f64 / 1e6);
        }
        system
    }

    /// Watts of each group, and the share of the variance that they explain.
    fn solve(&self) -> (Vec<f64>, f64) {
        let n = self.columns;
        let mut products = vec![0.0; n * n];
        let mut right = vec![0.0; n];
        for (row, joules) in self.times.chunks_exact(n).zip(&self.joules) {
            for i in 0..n {
                right[i] += row[i] * joules;
                (0..n).for_each(|j| products[i * n + j] += row[i] * row[j]);
            }
        }
        let watts = non_negative(&products, &right);
        let mean = self.joules.iter().sum::<f64>() / self.joules.len().max(1) as f64;
        let (mut residual, mut variance) = (0.0, 0.0);
        for (row, joules) in self.times.chunks_exact(n).zip(&self.joules) {
            let fitted: f64 = row.iter().zip(&watts).map(|(seconds, watts)| seconds * watts).sum();
            residual += (joules - fitted).powi(2);
            variance += (joules - mean).powi(2);
        }
        (watts, if variance > 0.0 { 1.0 - residual / variance } else { 0.0 })
    }
}

/// Solves `products x = right` in the least squares sense with non-negative `x`, by coordinate descent (Franc, Hlavac,
/// Navara 2005: it converges to the solution for every positive semidefinite matrix).
fn non_negative(products: &[f64], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let mut x = vec![0.0; n];
    for _ in 0..MAX_SWEEPS {
        let mut moved: f64 = 0.0;
        for i in 0..n {
            let row = &products[i * n..(i + 1) * n];
            if row[i] <= 0.0 {
                continue;
            }
            let slope: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>() - right[i];
            let to = f64::max(0.0, x[i] - slope / row[i]);
            moved = moved.max((to - x[i]).abs());
            x[i] = to;
        }
        if moved < 1e-6 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_negative_least_squares_has_no_negative_power() {
        // Two independent unknowns, one of which would be negative.
        assert_eq!(non_negative(&[2.0, 0.0, 0.0, 4.0], &[6.0, -8.0]), [3.0, 0.0]);
        let x = non_negative(&[2.0, 1.0, 1.0, 2.0], &[4.0, 5.0]);
        assert!((x[0] - 1.0).abs() < 1e-5 && (x[1] - 2.0).abs() < 1e-5, "{x:?}");
        assert_eq!(non_negative(&[0.0], &[1.0]), [0.0], "a phase that never ran");
    }

    #[test]
    fn fit_without_data_is_refused() {
        assert_eq!(Fit::new(&EnergyLine::new(), &Profile::new(0, [])), Err(FitRefusal::TooFew));
    }
}
