//! The axis of the step bars: how high it goes and where its ticks are.
//!
//! The axis follows the ordinary steps, not the worst one: a spike is cut off and its value written above it, so that
//! one long step does not press all others flat.

/// The quantile of the steps in view that the axis follows...
const QUANTILE: f64 = 0.95;
/// ...and the room left above it.
const HEADROOM: f64 = 1.3;
/// Below this many steps all of them are ordinary.
const FEW: usize = 5;
/// Where an axis may end, within a power of ten. Few choices keep it from moving with every step.
const STOPS: [f64; 8] = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];

/// Where the axis ends, in nanoseconds, for steps of these lengths; reorders them. At least 1.
pub fn top_ns(lengths_ns: &mut [u64]) -> u64 {
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

/// Rows with a tick, counted from the bottom, and the time that each tick stands for: it lies within the row, or at its
/// upper edge.
pub fn ticks(top_ns: u64, rows: u16) -> impl Iterator<Item = (u16, u64)> {
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
    fn ticks_lie_on_the_axis() {
        for rows in 1..100 {
            let all: Vec<_> = ticks(60_000_000, rows).collect();
            assert_eq!(all.last(), Some(&(rows - 1, 60_000_000)), "the top has one");
            assert!(all.iter().all(|(row, _)| *row < rows));
        }
        assert_eq!(ticks(1, 0).count(), 0);
    }
}
