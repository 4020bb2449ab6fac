//! Two sides of some steps, by any rule, and whether they differ clearly.

use crate::findings::robust::median;

/// Steps needed on each side.
const ENOUGH: usize = 5;
/// The longer side takes at least this many times the shorter one.
const RATIO: f64 = 1.15;
/// Share of a side that must be on its side of the middle.
const CONSISTENT: f64 = 0.9;
/// Fewer longer steps are spikes, which are reported individually.
const LONGER_SHARE: f64 = 0.05;

/// Steps, each either of a kind or one of the others.
#[derive(Clone, Debug)]
pub(super) struct KindSides {
    /// For each step, whether it is of the kind.
    pub is_odd: Vec<bool>,
    /// Median of these.
    pub odd: f64,
    /// Median of the others.
    pub rest: f64,
}

impl KindSides {
    /// The sides of steps with these times; `None` if they do not differ clearly.
    pub(super) fn from_times(times: &[f64], is_odd: Vec<bool>) -> Option<Self> {
        let side = |odd: bool| times.iter().zip(&is_odd).filter(move |(_, is)| **is == odd).map(|(time, _)| *time);
        let (mut odd, mut rest): (Vec<f64>, Vec<f64>) = (side(true).collect(), side(false).collect());
        if odd.len().min(rest.len()) < ENOUGH {
            return None;
        }
        let medians = (median(&mut odd)?, median(&mut rest)?);
        let (short, long) = (medians.0.min(medians.1), medians.0.max(medians.1));
        let is_longer = medians.0 > medians.1;
        let are_spikes = is_longer && (odd.len() as f64) < LONGER_SHARE * times.len() as f64;
        if short <= 0.0 || long < RATIO * short || are_spikes {
            return None;
        }
        let middle = (short * long).sqrt();
        let keep = |times: &[f64], is_longer: bool| {
            let own = times.iter().filter(|time| (**time > middle) == is_longer).count();
            own as f64 >= CONSISTENT * times.len() as f64
        };
        (keep(&odd, is_longer) && keep(&rest, !is_longer)).then_some(Self { is_odd, odd: medians.0, rest: medians.1 })
    }

    /// Whether the kind takes longer than the others.
    pub(super) fn is_longer(&self) -> bool {
        self.odd > self.rest
    }
}
