//! Where a recording's window begins within a step: what is known of that step is left out, so that the recording's
//! first step is complete.

use std::collections::{HashMap, HashSet};

use gnntop_wire::{Definition, Event, TrackId, TrackRole};

/// Events of a track that are held back until its first step ends.
const MAX_HELD: usize = 1 << 16;
/// A step that begins less than this before the window, in nanoseconds, is complete.
const SLACK_NS: u64 = 1_000;

/// Events of training tracks before their first step in the window has ended.
#[derive(Default)]
pub(super) struct FirstSteps {
    tracks: HashMap<TrackId, Vec<(u64, Event)>>,
    /// Tracks whose first step has ended; segments define them again.
    passed: HashSet<TrackId>,
}

/// What happens to an event.
pub(super) enum Decision {
    /// It is recorded, after the events held back.
    Recorded(Vec<(u64, Event)>),
    /// It is held back.
    Delayed,
    /// It ends a step that began before the window: it is left out, with the events held back.
    Cut(Vec<(u64, Event)>),
}

impl FirstSteps {
    /// Notes which tracks have steps.
    pub(super) fn define(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            if let Definition::Track { id, role: TrackRole::Training, .. } = definition
                && !self.passed.contains(id)
            {
                self.tracks.entry(*id).or_default();
            }
        }
    }

    /// Decides on the next event of a track within the window, which begins at `start_ns`.
    pub(super) fn decide(&mut self, track: TrackId, seq: u64, event: &Event, start_ns: u64) -> Decision {
        let Some(held) = self.tracks.get_mut(&track).filter(|_| start_ns > 0) else {
            return Decision::Recorded(Vec::new());
        };
        match event {
            Event::Step(step) if step.start_ns.saturating_add(SLACK_NS) < start_ns => {
                Decision::Cut(self.end_first_step(track))
            }
            Event::Step(_) => Decision::Recorded(self.end_first_step(track)),
            _ if held.len() >= MAX_HELD => Decision::Recorded(self.end_first_step(track)),
            _ => {
                held.push((seq, *event));
                Decision::Delayed
            }
        }
    }

    /// Stops waiting for steps, and returns what was held back, by track.
    pub(super) fn release(&mut self) -> impl Iterator<Item = (TrackId, Vec<(u64, Event)>)> {
        self.passed.extend(self.tracks.keys());
        std::mem::take(&mut self.tracks).into_iter().filter(|(_, held)| !held.is_empty())
    }

    fn end_first_step(&mut self, track: TrackId) -> Vec<(u64, Event)> {
        self.passed.insert(track);
        self.tracks.remove(&track).unwrap_or_default()
    }
}
