//! Searches a recording for a step, a little at a time: a long recording must not block the screen.

use std::path::Path;
use std::time::{Duration, Instant};

use gnntop_wire::{Event, Item};

use super::super::recording::{Recording, RecordingAdvance, RecordingError};
use super::outlines::Outlines;
use crate::stream::{Clocks, Sink};

/// A separate reading of the recording being played, up to a step.
pub(super) struct StepSearch {
    recording: Recording,
    begins_ns: u64,
    found: Finder,
}

impl StepSearch {
    /// Begins to search the first of the recordings for the first step with this number or a higher one.
    pub(super) fn begin(path: &Path, outlines: &Outlines, step: u64) -> Result<Self, RecordingError> {
        let (begins_ns, clocks) = (outlines.first_start_ns(), Clocks::default());
        let mut found = Finder { step, highest: 0, first_ns: None, end_ns: None, clocks };
        let near = outlines.chunk_before_step(step).and_then(|(outline, chunks, chunk)| {
            let recording = Recording::open_after(path, chunks, chunk)?;
            found.first_ns = Some(outline.span.first_ns);
            found.clocks = Clocks::with_reference(outline.reference.clone());
            Some(recording)
        });
        let recording = near.map_or_else(|| Recording::open(path), Ok)?;
        Ok(Self { recording, begins_ns, found })
    }

    /// Continues for about `budget`. `None` while the step may still come; else the end of the step, in nanoseconds from
    /// the start of the recording, or the step that was looked for and the highest that there is.
    pub(super) fn advance(&mut self, budget: Duration) -> Option<Result<u64, (u64, u64)>> {
        let began = Instant::now();
        let from_start =
            |(end_ns, first_ns): (u64, u64)| end_ns.saturating_sub(first_ns).saturating_add(self.begins_ns);
        loop {
            if let (Some(end_ns), Some(first_ns)) = (self.found.end_ns, self.found.first_ns) {
                return Some(Ok(from_start((end_ns, first_ns))));
            }
            match self.recording.advance(&mut self.found) {
                RecordingAdvance::Read => (),
                RecordingAdvance::Idle | RecordingAdvance::End => {
                    let Finder { step, highest, end_ns, first_ns, .. } = self.found;
                    return Some(end_ns.zip(first_ns).map(from_start).ok_or((step, highest)));
                }
            }
            if began.elapsed() >= budget {
                return None;
            }
        }
    }
}

/// Receives everything, and notes when the step ended.
struct Finder {
    step: u64,
    /// The highest step so far.
    highest: u64,
    /// The first instant of the recording.
    first_ns: Option<u64>,
    end_ns: Option<u64>,
    clocks: Clocks,
}

impl Sink for Finder {
    fn apply(&mut self, item: Item<'_>) {
        match item {
            Item::Segment(info) => self.clocks.begin(&info),
            Item::Anchor(anchor) => {
                self.first_ns = self.first_ns.or(Some(self.clocks.common_ns(anchor.monotonic_ns)));
            }
            Item::Block(info, events) => {
                self.first_ns = self.first_ns.or(Some(self.clocks.common_ns(info.base_ns)));
                for event in events {
                    let Event::Step(step) = event else { continue };
                    self.highest = self.highest.max(step.step.0);
                    if step.step.0 >= self.step && self.end_ns.is_none() {
                        self.end_ns = Some(self.clocks.common_ns(step.end_ns));
                    }
                }
            }
            _ => (),
        }
    }

    fn reset(&mut self) {
        (self.first_ns, self.end_ns) = (None, None);
    }
}
