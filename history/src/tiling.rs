//! Tiles the wall clock with the phases of a training track, step by step.
//!
//! A step's period runs from the end of the previous step to its own end. Each instant of it belongs to the outermost phase
//! that covers it, or to the gap. So phases and gap add up to the period exactly, whatever the stream contains: an overlap
//! belongs to the phase that began first, and time outside the period is cut off.

/// Most phases kept apart.
pub const MAX_PHASES: usize = 32;

/// Most phases that wait for their step; beyond this, the older half is added up.
const MAX_PENDING: usize = 1024;

/// A phase not yet claimed by a step.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start_ns: u64,
    end_ns: u64,
    slot: u8,
}

/// The phases of one track since its last step.
#[derive(Clone, Debug)]
pub struct Tiling {
    /// The outermost phases so far.
    pending: Vec<Interval>,
    /// Whether `pending` is ordered by start.
    is_sorted: bool,
    last_end_ns: Option<u64>,
    last_step: u64,
    /// Time of phases that were too many to wait for their step.
    folded: Option<AssignedTime>,
    /// Time of the phases in the last period.
    assigned: AssignedTime,
    /// Whether events were lost since the last step.
    lost_events: bool,
}

/// Time given to phases so far in one period.
#[derive(Clone, Copy, Debug)]
struct AssignedTime {
    phase_ns: [u64; MAX_PHASES],
    /// All time up to here is assigned.
    cursor_ns: u64,
}

/// The phases that wait for the end of their step, and the end of the previous step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingPhases {
    /// End of the previous step.
    pub last_end_ns: u64,
    /// Its number.
    pub last_step: u64,
    /// Slot, start and end of each phase.
    pub phases: Vec<(u8, u64, u64)>,
}

/// A period as found by [`Tiling::step`]; [`Tiling::phase_ns`] has the time of its phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiled {
    /// Its start: the end of the previous step.
    pub start_ns: u64,
    /// Its length.
    pub period_ns: u64,
    /// Its time in no phase.
    pub gap_ns: u64,
    /// Steps lost since the previous step; 0 unless events were lost.
    pub missing_steps: u64,
    /// Time since the end of the previous step that is not in the period.
    pub untiled_ns: u64,
}

impl Default for Tiling {
    fn default() -> Self {
        Self::new()
    }
}

impl Tiling {
    /// A tiling before the first phase.
    pub fn new() -> Self {
        Self {
            pending: Vec::new(),
            is_sorted: true,
            last_end_ns: None,
            last_step: 0,
            folded: None,
            assigned: AssignedTime::new(0),
            lost_events: false,
        }
    }

    /// Notes that events of the track were lost.
    pub fn note_loss(&mut self) {
        self.lost_events = true;
    }

    /// The phases that wait for the end of the current step; `None` before the first step.
    pub fn waiting(&self) -> Option<WaitingPhases> {
        let phases = self.pending.iter().map(|phase| (phase.slot, phase.start_ns, phase.end_ns)).collect();
        Some(WaitingPhases { last_end_ns: self.last_end_ns?, last_step: self.last_step, phases })
    }

    /// Continues from where another tiling stopped.
    pub fn resume(&mut self, waiting: &WaitingPhases) {
        self.last_end_ns = Some(waiting.last_end_ns);
        self.last_step = waiting.last_step;
        waiting.phases.iter().for_each(|(slot, start_ns, end_ns)| self.phase(*slot, *start_ns, *end_ns));
    }

    /// Time by slot in the last period of [`Tiling::step`].
    pub fn phase_ns(&self) -> &[u64; MAX_PHASES] {
        &self.assigned.phase_ns
    }

    /// Takes a phase by its slot, below [`MAX_PHASES`]. Inner phases come before the outer one, which replaces them.
    #[inline]
    pub fn phase(&mut self, slot: u8, start_ns: u64, end_ns: u64) {
        while let Some(top) = self.pending.last()
            && top.start_ns >= start_ns
        {
            if top.end_ns > end_ns {
                self.is_sorted = false; // not nested: the clock went backwards, or threads share the track
                break;
            }
            self.pending.pop();
        }
        if self.pending.len() >= MAX_PENDING {
            self.fold();
        }
        self.pending.push(Interval { start_ns, end_ns, slot });
    }

    /// Adds up the older half of the waiting phases. Before the first step, whose period is unknown, they are discarded.
    #[cold]
    fn fold(&mut self) {
        self.sort();
        let older = self.pending.drain(..MAX_PENDING / 2);
        if let Some(start_ns) = self.last_end_ns {
            let folded = self.folded.get_or_insert(AssignedTime::new(start_ns));
            older.for_each(|phase| folded.assign(&phase, u64::MAX));
        }
    }

    fn sort(&mut self) {
        if !self.is_sorted {
            self.pending.sort_unstable_by_key(|phase| (phase.start_ns, std::cmp::Reverse(phase.end_ns)));
            self.is_sorted = true;
        }
    }

    /// Takes the end of a step and starts the next period.
    pub fn step(&mut self, step: u64, start_ns: u64, end_ns: u64) -> Tiled {
        let (period_start, missing_steps) = self.period_start(step, start_ns.min(end_ns), end_ns);
        let untiled_ns = self.last_end_ns.map_or(0, |last| period_start.saturating_sub(last));
        // Folded time counts for this period only if it began where expected and ends before its end.
        let folded = self.folded.take().filter(|f| untiled_ns == 0 && f.cursor_ns <= end_ns);
        let mut given = folded.unwrap_or(AssignedTime::new(period_start));
        self.sort();
        self.pending.iter().for_each(|phase| given.assign(phase, end_ns));
        self.pending.retain(|phase| phase.end_ns > end_ns);
        let period_ns = end_ns - period_start;
        let gap_ns = period_ns.saturating_sub(given.phase_ns.iter().sum());
        self.assigned = given;
        self.last_end_ns = Some(end_ns);
        self.last_step = step;
        self.lost_events = false;
        Tiled { start_ns: period_start, period_ns, gap_ns, missing_steps, untiled_ns }
    }

    /// Where a step's period begins, at most at its end, and how many steps were lost before it.
    fn period_start(&self, step: u64, start_ns: u64, end_ns: u64) -> (u64, u64) {
        let Some(last_end) = self.last_end_ns.filter(|last| *last <= end_ns) else {
            return (start_ns, 0); // the first step, or one from before the last: the clock went backwards
        };
        let missing = step.saturating_sub(self.last_step.saturating_add(1));
        if self.lost_events && missing > 0 { (start_ns.max(last_end), missing) } else { (last_end, 0) }
    }
}

impl AssignedTime {
    fn new(cursor_ns: u64) -> Self {
        Self { phase_ns: [0; MAX_PHASES], cursor_ns }
    }

    /// Assigns a phase the time that it covers up to `until_ns` and that is still free.
    #[inline]
    fn assign(&mut self, phase: &Interval, until_ns: u64) {
        let end_ns = phase.end_ns.min(until_ns);
        let start_ns = phase.start_ns.max(self.cursor_ns);
        if end_ns > start_ns {
            self.phase_ns[usize::from(phase.slot) % MAX_PHASES] += end_ns - start_ns;
            self.cursor_ns = end_ns;
        }
    }
}
