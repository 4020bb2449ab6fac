//! A series as one row of small bars, 1 second a column, the newest at the right. Where there was no reading there is no
//! bar, which is not the lowest bar.

use gnntop_wire::SignalKind;

use crate::ui::sheet::Sheet;
use crate::ui::theme::Theme;
use gnntop_analysis::store::{CounterSeries, Signal};

/// Time in a column.
const COLUMN_NS: u64 = 1_000_000_000;
/// Bars from nothing to full.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII.
const ASCII_BARS: [char; 8] = ['_', '_', '.', '-', '=', '+', '*', '#'];

/// Mean values of the last columns, oldest first.
pub type Columns = Vec<Option<f64>>;

/// A signal's mean values: a gauge's raw values, a counter's increase per second.
pub fn signal_columns(signal: &Signal, now_ns: u64, columns: u16) -> Columns {
    match signal.kind() {
        SignalKind::Counter => means(signal.series.rates_per_s().rev(), now_ns, columns, false),
        SignalKind::Gauge => {
            let values = signal.series.points().rev().map(|point| (point.t_ns(), point.value().map(|v| v as f64)));
            means(values, now_ns, columns, true)
        }
    }
}

/// A program counter's mean values.
pub fn counter_columns(counter: &CounterSeries, now_ns: u64, columns: u16) -> Columns {
    means(counter.series.points().rev().map(|point| (point.t_ns(), point.value())), now_ns, columns, true)
}

/// Mean values of anything that was reported at some times, newest first.
pub fn value_columns(values: impl Iterator<Item = (u64, f64)>, now_ns: u64, columns: u16) -> Columns {
    means(values.map(|(t_ns, value)| (t_ns, Some(value))), now_ns, columns, true)
}

/// What was read in one column.
#[derive(Clone, Copy, Default)]
struct Bin {
    sum: f64,
    count: u32,
    /// The newest reading: `Some(None)` is a break.
    newest: Option<Option<f64>>,
}

/// Means by column of values that come newest first. With `holds`, a value holds until the next one or a break, as that
/// of a gauge that is read from time to time.
fn means(values: impl Iterator<Item = (u64, Option<f64>)>, now_ns: u64, columns: u16, holds: bool) -> Columns {
    let newest = now_ns / COLUMN_NS;
    let mut bins = vec![Bin::default(); usize::from(columns)];
    let mut held = None;
    for (t_ns, value) in values {
        let value = value.filter(|value| value.is_finite());
        // A time beyond the newest comes from a clock that went back.
        let age = newest.saturating_sub(t_ns / COLUMN_NS);
        let Some(at) = (bins.len() as u64).checked_sub(age + 1) else {
            held = value;
            break;
        };
        let bin = &mut bins[at as usize];
        bin.newest.get_or_insert(value);
        bin.sum += value.unwrap_or(0.0);
        bin.count += u32::from(value.is_some());
    }
    let column = |bin: &Bin| {
        let mean = (bin.count > 0).then(|| bin.sum / f64::from(bin.count)).or(held.filter(|_| holds));
        held = bin.newest.unwrap_or(held);
        mean
    };
    bins.iter().map(column).collect()
}

/// Draws columns from `x` on into row `y`, where `full` fills a cell; the largest value does where `full` is `None`.
pub fn draw(sheet: &mut Sheet<'_>, (x, y): (u16, u16), columns: &[Option<f64>], full: Option<f64>, theme: &Theme) {
    let largest = || columns.iter().flatten().copied().fold(0.0, f64::max);
    let full = full.filter(|full| *full > 0.0).unwrap_or_else(largest);
    let bars = if theme.ascii() { &ASCII_BARS } else { &BARS };
    for (x, value) in (x..).zip(columns) {
        let Some(value) = value else { continue };
        let share = if full > 0.0 { (value / full).clamp(0.0, 1.0) } else { 0.0 };
        sheet.cell(x, y, bars[(share * 7.0).round() as usize], theme.series());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = COLUMN_NS;

    #[test]
    fn columns_hold_means_and_gaps() {
        let values =
            [(9 * S + 2, Some(3.0)), (9 * S + 1, Some(1.0)), (8 * S, None), (6 * S, Some(7.0)), (S, Some(9.0))];
        let columns = |holds| means(values.into_iter(), 9 * S + 5, 4, holds);
        assert_eq!(columns(false), [Some(7.0), None, None, Some(2.0)]);
        assert_eq!(columns(true), [Some(7.0), Some(7.0), Some(7.0), Some(2.0)], "held until the break is over");
    }

    #[test]
    fn sparse_gauge_readings_are_held() {
        let values = [(7 * S, Some(2.0)), (2 * S, Some(5.0))];
        let held = means(values.into_iter(), 9 * S, 5, true);
        assert_eq!(held, [Some(5.0), Some(5.0), Some(2.0), Some(2.0), Some(2.0)]);
        let broken = [(8 * S, None), (7 * S, Some(2.0))];
        assert_eq!(means(broken.into_iter(), 9 * S, 3, true), [Some(2.0), Some(2.0), None]);
    }

    #[test]
    fn invalid_values_are_ignored() {
        assert!(means(std::iter::empty(), 5, 3, true).iter().all(Option::is_none));
        let wild = [(u64::MAX, Some(f64::NAN)), (u64::MAX, Some(1.0)), (0, Some(f64::INFINITY))];
        assert_eq!(means(wild.into_iter(), 0, 2, false), [None, Some(1.0)]);
        assert!(means(wild.into_iter(), 0, 0, true).is_empty());
    }
}
