//! Kinds in no order: times with two clear modes.

use super::sides::KindSides;
use crate::figures::percent;
use crate::findings::robust::{median, sigma, spread_indices};

/// Share of the steps needed on each side.
const SHARE: f64 = 0.1;
/// Distance of the modes in their standard deviations.
const APART: f64 = 4.0;
/// Steps that may be between the modes, as a share of the smaller side.
const BETWEEN: f64 = 0.05;
/// Changes from one side to the other, as a share of the number expected by chance. With fewer, the sides are stretches
/// of time, such as another program that comes and goes, and not kinds of work.
const CHANGES: f64 = 0.5;
/// Number of steps from which the modes are determined.
const SAMPLED: usize = 2048;

/// A kind whose steps come in no regular order.
pub(super) fn find_mixture(times: &[f64]) -> Option<(KindSides, String)> {
    let mut logs: Vec<f64> = spread_indices(times.len(), SAMPLED).into_iter().map(|i| times[i].max(1.0).ln()).collect();
    logs.sort_unstable_by(f64::total_cmp);
    let middle = valley(&logs)?;
    let is_long: Vec<bool> = times.iter().map(|time| time.max(1.0).ln() > middle).collect();
    if !changes_often(&is_long) {
        return None;
    }
    let long = is_long.iter().filter(|is| **is).count();
    let is_rarer_long = 2 * long <= is_long.len();
    let is_odd: Vec<bool> = is_long.into_iter().map(|is| is == is_rarer_long).collect();
    let share = is_odd.iter().filter(|is| **is).count() as f64 / is_odd.len() as f64;
    Some((KindSides::from_times(times, is_odd)?, format!("{} of the steps, in no regular order, take", percent(share))))
}

/// The place at which sorted values separate into two modes with almost nothing between; `None` if they do not.
fn valley(logs: &[f64]) -> Option<f64> {
    let least = (SHARE * logs.len() as f64).ceil().max(1.0) as usize;
    if logs.len() < 2 * least {
        return None;
    }
    let cut = best_cut(logs, least)?;
    let (short, long) = logs.split_at(cut);
    let mode = |side: &[f64]| {
        let center = median(&mut side.to_vec())?;
        Some((center, sigma(side.iter().copied(), center)))
    };
    let ((low, low_sigma), (high, high_sigma)) = (mode(short)?, mode(long)?);
    let apart = high - low;
    let between = logs.iter().filter(|log| (low + 0.25 * apart..high - 0.25 * apart).contains(*log)).count();
    let is_clear =
        apart > APART * (low_sigma + high_sigma) && between as f64 <= BETWEEN * short.len().min(long.len()) as f64;
    is_clear.then_some(f64::midpoint(low, high))
}

/// The cut of sorted values with the least variance within both sides (Otsu 1979).
fn best_cut(logs: &[f64], least: usize) -> Option<usize> {
    let all: f64 = logs.iter().sum();
    let (mut below, mut best) = (0.0, None);
    for (n, log) in logs.iter().enumerate() {
        let (left, right) = (n as f64, (logs.len() - n) as f64);
        if (least..=logs.len() - least).contains(&n) {
            let between = left * right * (below / left - (all - below) / right).powi(2);
            if best.is_none_or(|(most, _)| between > most) {
                best = Some((between, n));
            }
        }
        below += log;
    }
    best.map(|(_, n)| n)
}

/// Whether the sides alternate about as often as by chance (Wald and Wolfowitz 1940).
fn changes_often(is_long: &[bool]) -> bool {
    let long = is_long.iter().filter(|is| **is).count() as f64;
    let n = is_long.len() as f64;
    let changes = is_long.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    changes >= CHANGES * 2.0 * long * (n - long) / n
}
