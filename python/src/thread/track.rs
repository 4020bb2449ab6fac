//! A thread's track, and the steps on it.

use std::sync::atomic::{AtomicUsize, Ordering};

use gnntop_probe::after::{self, EndedStep};
use gnntop_probe::{Fact, Name, Reported, Track, TrackRole};

use super::{Destination, MAX_OPEN, Thread, ThreadSpan, count_lost, name};
use crate::early::EarlyEvent;
use crate::session::{self, LostEvent, Status};
use crate::slots::Slot;

/// Most threads that get a track automatically.
const MAX_UNASKED: usize = 8;

static UNASKED: AtomicUsize = AtomicUsize::new(0);

/// Rows of a step's batch, if it is not a graph.
static SAMPLES: Name = Name::reported(Reported::Samples);
static TOKENS: Name = Name::reported(Reported::Tokens);
/// How often a step waits for a device, and how long altogether.
static WAITS: Name = Name::reported(Reported::DeviceWaits);
static WAIT_TIME: Name = Name::reported(Reported::DeviceWaitTime);

impl Thread {
    /// Opens a track for the calling thread; returns whether it records. Of several threads that train, each has its own.
    pub(crate) fn track(&mut self, name: &str, role: TrackRole) -> bool {
        if self.ring.is_some() {
            return true;
        }
        let (status, number) = session::state();
        if status != Status::Publishing {
            return false;
        }
        let is_training = role == TrackRole::Training;
        if self.session != number || self.track.is_none() || is_training && self.slot.is_none() {
            // What is kept back before the first track will be on it.
            let held = if self.track.is_none() { std::mem::take(&mut self.held) } else { Vec::new() };
            let is_holding = self.is_holding && self.track.is_none();
            self.track_end();
            (self.held, self.is_holding) = (held, is_holding);
            self.session = number;
            self.slot = if is_training { Slot::take(number) } else { None };
            if is_training && self.slot.is_none() {
                count_lost();
                return false;
            }
            self.open.reserve_exact(MAX_OPEN);
            name.clone_into(&mut self.loop_name);
            let name = self.slot.as_ref().map_or_else(|| name.to_owned(), |slot| slot.name(name));
            self.track = session::with_session(|session| session.track(&name, role));
            self.step_began = 0;
            if let Some(slot) = &self.slot {
                after::continue_steps(slot.steps());
                if self.is_busy {
                    slot.keep();
                }
            }
            self.write_early();
        }
        if is_training {
            after::begin_steps();
        }
        self.track.as_ref().is_some_and(Track::is_recording)
    }

    /// The number of this thread's place among those that train, from 1; 0 if it has none in the current session.
    pub(crate) fn trains(&self) -> usize {
        let is_current = (Status::Publishing, self.session) == session::state();
        self.slot.as_ref().filter(|_| is_current && self.track.is_some()).map_or(0, Slot::number)
    }

    /// Steps of its loop so far, in the session.
    pub(crate) fn steps_done(&self) -> u64 {
        self.slot.as_ref().map_or(0, Slot::steps)
    }

    /// The thread trains: nobody else gets its place, if it has one, or once it has.
    pub(crate) fn keep_slot(&mut self) {
        self.is_busy = true;
        if let Some(slot) = &self.slot {
            slot.keep();
        }
    }

    /// While this thread was idle, another one may have taken its place: then it needs a new one.
    #[cold]
    fn replace_slot(&mut self) {
        let name = std::mem::take(&mut self.loop_name);
        self.slot = None;
        self.track(&name, TrackRole::Training);
    }

    /// This thread's stacks may be taken from now on.
    pub(crate) fn set_watched(&mut self) {
        self.is_watched = true;
    }

    /// Writes the events kept while there was no session.
    fn write_early(&mut self) {
        let Some(mut early) = self.early.take() else { return };
        let begin = |event| if let EarlyEvent::Span { begin, .. } = event { Some(begin) } else { None };
        let events: Vec<EarlyEvent> = early.in_order().collect();
        self.step_began = events.iter().copied().filter_map(begin).min().unwrap_or(0);
        events.into_iter().for_each(EarlyEvent::record);
        session::add_lost(LostEvent::Early, early.lost());
    }

    pub(crate) fn track_end(&mut self) {
        self.release(u64::MAX);
        self.open.clear();
        self.depth = 0;
        self.track = None;
        self.slot = None;
    }

    /// Opens a track for a thread that begins a span while a session is open, unless too many threads have one.
    #[cold]
    pub(super) fn ask_for_track(&mut self) -> Destination {
        if session::state().0 == Status::Publishing {
            self.has_asked = true;
            if UNASKED.fetch_add(1, Ordering::Relaxed) < MAX_UNASKED {
                // A new track ends all spans; those that are on none stay open.
                let (depth, mut open) = (self.depth, std::mem::take(&mut self.open));
                open.retain(|span| matches!(span, ThreadSpan::Kept { .. }));
                self.track(&name(), TrackRole::Other);
                self.open.extend(open);
                self.depth = depth;
            }
        }
        self.destination()
    }

    /// Ends a step that began at `begin` or, without that, at the end of the previous one.
    pub(crate) fn end_step(&mut self, begin: Option<u64>, end: u64) -> i32 {
        self.publish(false);
        self.release(u64::MAX);
        self.end_step_at(begin, end)
    }

    /// Ends a step of the training loop now, or keeps it back with what came before it: then the result is 0.
    pub(crate) fn end_loop_step(&mut self) -> i32 {
        self.release(u64::MAX);
        let end = after::ticks();
        if self.defer_step(end) { 0 } else { self.end_step_at(None, end) }
    }

    /// Ends a step. Nothing is kept back.
    pub(super) fn end_step_at(&mut self, begin: Option<u64>, end: u64) -> i32 {
        let (batch, rows) = (self.batch, [(&SAMPLES, self.samples), (&TOKENS, self.tokens)]);
        if self.destination() != Destination::Track {
            return 0;
        }
        for (name, size) in rows {
            size.into_iter().for_each(|size| after::counter(name, end, size as f64));
        }
        self.end_waits(end);
        let known = Some(self.step_began).filter(|began| *began != 0);
        let begin = begin.or(known).unwrap_or(end);
        self.step_began = end;
        let is_traced = std::mem::take(&mut self.is_traced);
        let number = after::end_step(&EndedStep { epoch: self.epoch, batch, begin, end, is_traced });
        match &self.slot {
            Some(slot) if slot.is_own() => slot.stepped(number, end),
            Some(_) => self.replace_slot(),
            None => {}
        }
        i32::try_from(number).unwrap_or(i32::MAX)
    }

    /// Records what the step has waited for devices, and once how many values a step reads on the CPU, where nothing waits.
    fn end_waits(&mut self, end: u64) {
        let (waits, reads) = self.waits.end_step();
        if let Some((times, ns)) = waits {
            after::counter(&WAITS, end, times as f64);
            after::counter(&WAIT_TIME, end, ns as f64);
        }
        if let Some(reads) = reads {
            let key = "values of tensors read".to_owned();
            session::fact_at_once(Fact::Note { key, text: format!("{reads:.1} a step, on the CPU") });
        }
    }
}
