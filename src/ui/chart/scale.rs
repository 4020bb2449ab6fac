//! The axis of the step bars: how high it goes, whether evenly or by factors, and where its ticks are.
//!
//! A linear axis follows the ordinary steps, not the worst one: a spike is cut off and its value written above it, so
//! that one long step does not press all others flat. A logarithmic one has room for all.

/// The quantile of the steps in view that a linear axis follows...
const QUANTILE: f64 = 0.95;
/// ...and the room left above it.
const HEADROOM: f64 = 1.3;
/// Below this many steps all of them are ordinary.
const FEW: usize = 5;
/// Where an axis may end, within a power of ten. Few choices keep it from moving with every step.
const STOPS: [f64; 8] = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];
/// Eighths in a row.
const EIGHTHS: f64 = 8.0;

/// What the rows of a chart represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartScale {
    /// Where the axis ends, in nanoseconds. At least 1.
    top_ns: u64,
    /// Where a logarithmic axis begins, below its end; `None` for a linear one, which begins at 0.
    low_ns: Option<u64>,
}

impl ChartScale {
    /// A linear axis for steps of these lengths; reorders them.
    pub fn linear(lengths_ns: &mut [u64]) -> Self {
        Self { top_ns: top_ns(lengths_ns), low_ns: None }
    }

    /// A logarithmic axis that has room for the longest of these steps.
    pub fn logarithmic(lengths_ns: &[u64]) -> Self {
        let longest = lengths_ns.iter().max().copied().unwrap_or(1_000_000);
        let shortest = lengths_ns.iter().filter(|ns| **ns > 0).min().copied().unwrap_or(1);
        let top_ns = stop_above(longest as f64).max(2);
        Self { top_ns, low_ns: Some(stop_above(shortest as f64 / 4.0).min(top_ns / 2).max(1)) }
    }

    /// Where the axis ends, in nanoseconds.
    pub fn top_ns(&self) -> u64 {
        self.top_ns
    }

    /// The share of the axis below `ns`: 1 or more at the end or beyond.
    fn share(&self, ns: u64) -> f64 {
        match self.low_ns {
            None => ns as f64 / self.top_ns as f64,
            Some(low) => (ns as f64 / low as f64).ln().max(0.0) / (self.top_ns as f64 / low as f64).ln(),
        }
    }

    /// The end of the linear axis on which a whole of `ns` is as high as it is on this one: its parts are then shares
    /// of its height. What is not 0 is at least an eighth of a row high.
    pub fn linear_top_ns(&self, ns: u64, rows: u16) -> u64 {
        if self.low_ns.is_none() || ns == 0 {
            return self.top_ns;
        }
        let least = 1.0 / (EIGHTHS * f64::from(rows.max(1)));
        ((ns as f64 / self.share(ns).max(least)) as u64).max(1)
    }

    /// Rows, of `rows`, that a bar of this length reaches into.
    pub fn bar_rows(&self, ns: u64, rows: u16) -> u16 {
        let reach = (self.share(ns) * f64::from(rows)).ceil().min(f64::from(rows)) as u16;
        if ns > 0 { reach.max(1).min(rows) } else { 0 }
    }

    /// Rows with a tick, counted from the bottom, and the time of each tick: it is within the row, or at
    /// its upper edge.
    pub fn ticks(&self, rows: u16) -> Vec<(u16, u64)> {
        match self.low_ns {
            None => linear_ticks(self.top_ns, rows).collect(),
            Some(low) => self.log_ticks(low, rows),
        }
    }

    /// The end, powers of ten, then five and two times these, as far as there is a row between them.
    fn log_ticks(&self, low: u64, rows: u16) -> Vec<(u16, u64)> {
        let decades = (0..20).map(|power| 10u64.saturating_pow(power));
        let wanted = [1u64, 5, 2].into_iter().flat_map(|n| decades.clone().map(move |decade| decade.saturating_mul(n)));
        let inside = wanted.filter(|ns| (low + 1..self.top_ns).contains(ns));
        let mut ticks: Vec<(u16, u64)> = Vec::new();
        for ns in [self.top_ns].into_iter().chain(inside) {
            let Some(row) = self.bar_rows(ns, rows).checked_sub(1) else { continue };
            if ticks.iter().all(|(taken, _)| taken.abs_diff(row) >= 2) {
                ticks.push((row, ns));
            }
        }
        ticks
    }
}

/// Where the axis ends, in nanoseconds, for steps of these lengths; reorders them. At least 1.
fn top_ns(lengths_ns: &mut [u64]) -> u64 {
    let Some(&longest) = lengths_ns.iter().max() else { return 1_000_000 };
    let rank = ((lengths_ns.len() - 1) as f64 * QUANTILE) as usize;
    let ordinary = match lengths_ns.len() {
        0..FEW => longest,
        _ => *lengths_ns.select_nth_unstable(rank).1,
    };
    let wanted = (ordinary as f64 * HEADROOM).max(1.0);
    // A step barely above the ordinary ones is no spike: the axis reaches up to it.
    let reach = if longest as f64 <= wanted { longest as f64 } else { wanted };
    stop_above(reach)
}

/// The lowest stop at or above `ns`.
fn stop_above(ns: f64) -> u64 {
    let ns = ns.max(1.0);
    let decade = 10f64.powf(ns.log10().floor());
    let stop = STOPS.iter().map(|stop| stop * decade).find(|stop| *stop >= ns * 0.999_999);
    let top = stop.unwrap_or(10.0 * decade);
    // A float beyond the range saturates.
    (top as u64).max(1)
}

fn linear_ticks(top_ns: u64, rows: u16) -> impl Iterator<Item = (u16, u64)> {
    let parts = match rows {
        0..4 => 1,
        4..8 => 2,
        8..24 => 4,
        _ => 8,
    };
    (1..=parts).filter_map(move |part| {
        let row = (u32::from(rows) * part).div_ceil(parts).checked_sub(1)?;
        Some((u16::try_from(row).ok()?, (u128::from(top_ns) * u128::from(part) / u128::from(parts)) as u64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_does_not_move_the_axis() {
        let mut calm = vec![40_000_000; 100];
        assert_eq!(top_ns(&mut calm), 40_000_000);
        let mut spiked = calm.clone();
        spiked[50] = 3_000_000_000;
        assert_eq!(top_ns(&mut spiked), 60_000_000);
    }

    #[test]
    fn the_first_steps_are_all_shown() {
        assert_eq!(top_ns(&mut [10_000_000, 900_000_000]), 1_000_000_000);
        assert_eq!(top_ns(&mut []), 1_000_000);
        assert_eq!(top_ns(&mut [0, 0, 0, 0, 0, 0]), 1);
    }

    #[test]
    fn the_axis_ends_at_round_numbers_at_every_size() {
        let mut ns = 1u64;
        while ns < u64::MAX / 7 {
            let top = top_ns(&mut [ns; 10]);
            assert!(top >= ns - ns / 1000 && top as f64 <= ns as f64 * 1.5 + 1.0, "{ns}: {top}");
            ns = ns * 7 / 3 + 1;
        }
        assert!(top_ns(&mut [u64::MAX; 10]) > u64::MAX / 2);
    }

    #[test]
    fn ticks_are_within_the_axis() {
        for rows in 1..100 {
            let scale = ChartScale { top_ns: 60_000_000, low_ns: None };
            let all = scale.ticks(rows);
            assert_eq!(all.last(), Some(&(rows - 1, 60_000_000)), "the top has one");
            assert!(all.iter().all(|(row, _)| *row < rows));
        }
        assert_eq!(linear_ticks(1, 0).count(), 0);
    }

    #[test]
    fn a_logarithmic_axis_has_room_for_all() {
        let scale = ChartScale::logarithmic(&[40_000_000, 41_000_000, 2_000_000_000]);
        assert_eq!((scale.top_ns, scale.low_ns), (2_000_000_000, Some(10_000_000)));
        assert_eq!(
            (scale.bar_rows(2_000_000_000, 20), scale.bar_rows(10_000_000, 20), scale.bar_rows(0, 20)),
            (20, 1, 0)
        );
        assert!(scale.bar_rows(40_000_000, 20) < scale.bar_rows(80_000_000, 20));
        let ticks: Vec<u64> = scale.ticks(20).iter().map(|tick| tick.1).collect();
        assert_eq!(
            ticks,
            [2_000_000_000, 100_000_000, 1_000_000_000, 50_000_000, 500_000_000, 20_000_000, 200_000_000]
        );
    }

    #[test]
    fn any_axis_takes_any_length() {
        for lengths in [vec![], vec![0], vec![1], vec![u64::MAX, 1], vec![u64::MAX; 9]] {
            for scale in [ChartScale::linear(&mut lengths.clone()), ChartScale::logarithmic(&lengths)] {
                for rows in [0, 1, 2, 9, 100] {
                    for ns in [0, 1, 1000, u64::MAX] {
                        assert!(scale.bar_rows(ns, rows) <= rows && scale.linear_top_ns(ns, rows) > 0);
                    }
                    let ticks = scale.ticks(rows);
                    assert!(ticks.iter().all(|(row, _)| *row < rows));
                    assert!(rows == 0 || !ticks.is_empty());
                }
            }
        }
    }
}
