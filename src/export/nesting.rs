//! How the spans of a track nest, for formats in which an end always ends the span that began last.
//!
//! Spans of one thread may overlap by a few hundred nanoseconds, and spans of asynchronous work by anything. Written
//! to one track such a form would exchange their ends, and with them their durations.

/// Lanes of a track; what finds no place in one of these goes to the last.
pub(super) const MAX_LANES: usize = 64;

/// The ends of what is open in each lane of a track, outer ones first.
#[derive(Default)]
pub(super) struct Lanes {
    open_until_ns: Vec<Vec<u64>>,
}

impl Lanes {
    /// The first lane in which a span nests. Spans come in the order of their beginnings, longer ones first.
    pub(super) fn place(&mut self, start_ns: u64, end_ns: u64) -> usize {
        for (lane, open) in self.open_until_ns.iter_mut().enumerate() {
            while open.pop_if(|until_ns| *until_ns <= start_ns).is_some() {}
            if lane + 1 == MAX_LANES || open.last().is_none_or(|until_ns| end_ns <= *until_ns) {
                open.push(end_ns);
                return lane;
            }
        }
        self.open_until_ns.push(vec![end_ns]);
        self.open_until_ns.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_span_gets_next_lane_and_nested_span_stays() {
        let mut lanes = Lanes::default();
        let placed = [(0, 10), (5, 15), (6, 9), (10, 12), (12, 20), (14, 21), (15, 16)];
        assert_eq!(placed.map(|(start, end)| lanes.place(start, end)), [0, 1, 0, 0, 0, 2, 0]);
    }

    #[test]
    fn lanes_are_bounded() {
        let mut lanes = Lanes::default();
        let highest = (0..1000).map(|n| lanes.place(n, 2000 + n)).max();
        assert_eq!(highest, Some(MAX_LANES - 1));
    }
}
