//! Which phase ran when: how long each phase lasted within any time.

/// A phase that ran for an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Number of the phase.
    pub phase: usize,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// Phases over time. Time outside every phase counts as one more phase, the last one: the gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// By phase: start, end, and the phase's time before that start. In order and without overlap.
    phases: Vec<Vec<(u64, u64, u64)>>,
    start_ns: u64,
    end_ns: u64,
}

impl Profile {
    /// The profile of spans in order of their starts, with `phases` phases beside the gap. Where spans overlap, the
    /// time belongs to the one that began first. Spans of other phases are left out.
    pub fn new(phases: usize, spans: impl IntoIterator<Item = PhaseSpan>) -> Self {
        let mut all = vec![Vec::new(); phases];
        let (mut first_ns, mut owned_ns) = (None, 0);
        for span in spans {
            let start_ns = span.start_ns.max(owned_ns);
            let Some(of_phase) = all.get_mut(span.phase).filter(|_| start_ns < span.end_ns) else { continue };
            let before_ns = of_phase.last().map_or(0, |&(start, end, before)| before + (end - start));
            of_phase.push((start_ns, span.end_ns, before_ns));
            owned_ns = span.end_ns;
            first_ns.get_or_insert(start_ns);
        }
        Self { phases: all, start_ns: first_ns.unwrap_or(0), end_ns: owned_ns }
    }

    /// Phases, the gap included.
    pub fn len(&self) -> usize {
        self.phases.len() + 1
    }

    /// Whether there is no span.
    pub fn is_empty(&self) -> bool {
        self.start_ns >= self.end_ns
    }

    /// Whether the whole range is known.
    pub fn covers(&self, start_ns: u64, end_ns: u64) -> bool {
        !self.is_empty() && start_ns >= self.start_ns && end_ns <= self.end_ns
    }

    /// Mean length of a phase's spans in nanoseconds; `None` for a phase without spans and for the gap.
    pub fn mean_ns(&self, phase: usize) -> Option<f64> {
        let spans = self.phases.get(phase)?;
        let &(start, end, before) = spans.last()?;
        Some((before + (end - start)) as f64 / spans.len() as f64)
    }

    /// Adds the time of each phase between two times to `out`, in nanoseconds, with the gap's last.
    pub fn add_between(&self, start_ns: u64, end_ns: u64, out: &mut [f64]) {
        let mut in_none = end_ns.saturating_sub(start_ns) as f64;
        for (of_phase, out) in self.phases.iter().zip(out.iter_mut()) {
            let ns = time_before(of_phase, end_ns).saturating_sub(time_before(of_phase, start_ns)) as f64;
            *out += ns;
            in_none -= ns;
        }
        if let Some(gap) = out.get_mut(self.phases.len()) {
            *gap += in_none;
        }
    }
}

/// Time of a phase before `t_ns`.
fn time_before(spans: &[(u64, u64, u64)], t_ns: u64) -> u64 {
    let started = spans.partition_point(|&(start, ..)| start <= t_ns);
    let Some(&(start, end, before)) = started.checked_sub(1).and_then(|last| spans.get(last)) else { return 0 };
    before + (t_ns.min(end) - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_phases_and_gap_add_up() {
        let span = |phase, start_ns, end_ns| PhaseSpan { phase, start_ns, end_ns };
        let profile = Profile::new(2, [span(0, 10, 20), span(1, 15, 30), span(0, 40, 50), span(7, 60, 70)]);
        let mut times = [0.0; 3];
        profile.add_between(0, 100, &mut times);
        assert_eq!(times, [20.0, 10.0, 70.0], "the overlap belongs to the first");
        times = [0.0; 3];
        profile.add_between(18, 45, &mut times);
        assert_eq!(times, [7.0, 10.0, 10.0]);
        assert_eq!((profile.mean_ns(0), profile.mean_ns(2)), (Some(10.0), None));
        assert!(profile.covers(10, 50) && !profile.covers(9, 50) && !Profile::new(1, []).covers(0, 0));
    }
}
