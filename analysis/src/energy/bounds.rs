//! The least and the most possible energy up to a time, if power stays within its observed range.
//!
//! Inside a piece from `a` to `b` of energy `dE`, energy up to `t` is in `[max(Pmin (t - a), dE - Pmax (b - t)), min(Pmax
//! (t - a), dE - Pmin (b - t))]`, widened by the possible errors of the knots' times. Such bounds always hold, and are
//! about ten times too wide to be read as an error.

use super::line::{EnergyLine, Knot};

/// An observed range of power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerRange {
    /// Low power, in watts: the first percentile, or the least observed.
    pub least_watts: f64,
    /// High power, in watts: the 99th percentile, or the limit of the device.
    pub most_watts: f64,
}

impl PowerRange {
    /// Least and most energy up to `t_ns`, in microjoules.
    pub(super) fn at(&self, line: &EnergyLine, t_ns: u64) -> (f64, f64) {
        let Some(piece) = line.piece(t_ns) else {
            let uj = line.at(t_ns) as f64;
            return (uj, uj);
        };
        let (a, b) = (&line.knots()[piece], &line.knots()[piece + 1]);
        self.inside(a, b, t_ns.clamp(a.t_ns, b.t_ns))
    }

    fn inside(&self, a: &Knot, b: &Knot, t_ns: u64) -> (f64, f64) {
        // A watt is a microjoule in a microsecond.
        let (after, before) = ((t_ns - a.t_ns) as f64 / 1e3, (b.t_ns - t_ns) as f64 / 1e3);
        let rise = (b.uj - a.uj) as f64;
        let low = (self.least_watts * after).max(rise - self.most_watts * before);
        let high = (self.most_watts * after).min(rise - self.least_watts * before);
        let slack = self.most_watts * a.half_gap_ns.max(b.half_gap_ns) as f64 / 1e3;
        // Errors in the knots' times may have swapped the two.
        let (low, high) = (low.min(high) - slack, low.max(high) + slack);
        (a.uj as f64 + low, a.uj as f64 + high)
    }

    /// Least and most energy between two times, in microjoules.
    pub(super) fn between(&self, line: &EnergyLine, start_ns: u64, end_ns: u64) -> (f64, f64) {
        let (start, end) = (self.at(line, start_ns), self.at(line, end_ns));
        (f64::max(0.0, end.0 - start.1), end.1 - start.0)
    }
}
