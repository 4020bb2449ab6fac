//! Estimates the error of interpolation from the counter itself: each knot is left out and predicted from its neighbours.

use super::shape::EnergyShape;

/// Most knots left out in turn, the newest.
const MAX_KNOTS: usize = 4000;
/// The error of an interpolation inside one piece, relative to that of a prediction across two: from simulation.
const TWO_PIECES_SHARE: f64 = 0.7;
/// 95 % of a normal distribution is within this many standard deviations.
const SIGMAS: f64 = 1.96;

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
