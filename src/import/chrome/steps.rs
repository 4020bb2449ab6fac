//! The steps of a trace: which annotations they are, and which step a time belongs to.

use gnntop_wire::StepId;

use super::options::{ChromeOptions, StepName};
use super::read::{CompleteKind, Trace};

/// Steps that are kept: 24 MB of memory.
const MAX_STEPS: usize = 1_000_000;

/// One step, in microseconds of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TracedStep {
    pub(super) number: u64,
    pub(super) start_us: f64,
    pub(super) end_us: f64,
}

/// The steps of a trace, by their start.
pub(super) struct TraceSteps {
    /// The thread that has them.
    pub(super) track: Option<u16>,
    pub(super) all: Vec<TracedStep>,
    /// Whether their numbers are one higher than in the file, which counts from 0.
    pub(super) is_shifted: bool,
    /// Steps that found no room.
    pub(super) left_out: u64,
}

impl TraceSteps {
    /// Finds the steps of the thread that has the first one.
    pub(super) fn new(trace: &Trace, said: &ChromeOptions) -> Self {
        let mut found = Self { track: None, all: Vec::new(), is_shifted: false, left_out: 0 };
        let mut named = Vec::new();
        for event in trace.events.iter().filter(|event| event.sort == CompleteKind::Annotation) {
            let Some(name) = said.step(&trace.names[event.name as usize]) else { continue };
            if *found.track.get_or_insert(event.track) != event.track {
                continue;
            }
            if named.len() == MAX_STEPS {
                found.left_out += 1;
                continue;
            }
            named.push((name, event.start_us, event.end_us));
        }
        named.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut last = 0;
        for (name, start_us, end_us) in named {
            last = match name {
                StepName::Number(number) => number,
                StepName::Next => last + 1,
            };
            found.all.push(TracedStep { number: last, start_us, end_us });
        }
        // A step's number is at least 1: 0 is outside every step.
        found.is_shifted = found.all.iter().any(|step| step.number == 0);
        let more = u64::from(found.is_shifted);
        found.all.iter_mut().for_each(|step| step.number = step.number.saturating_add(more));
        found
    }

    /// The step that began last at a time.
    pub(super) fn at(&self, us: f64) -> Option<usize> {
        self.all.partition_point(|step| step.start_us <= us).checked_sub(1)
    }

    /// Its number.
    pub(super) fn id_at(&self, us: f64) -> StepId {
        self.at(us).map_or(StepId::NONE, |at| StepId(self.all[at].number))
    }

    /// The step that an event is, if it is one.
    pub(super) fn find(&self, start_us: f64, end_us: f64) -> Option<&TracedStep> {
        let step = &self.all[self.at(start_us)?];
        (step.start_us == start_us && step.end_us == end_us).then_some(step)
    }
}
