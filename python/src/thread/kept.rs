//! What a thread keeps back: events before it has a track, what has ended before something that is recorded later, and steps
//! that may be none.

use super::deferred::{Deferred, DeferredStep};
use super::{Destination, Thread, count_lost};
use crate::early::{EarlyEvent, EarlyEvents};
use crate::session::{self, LostEvent};

/// Most events that are kept back.
const MAX_HELD: usize = 64;
/// Most events that are kept back while it is not sure where steps end. If there are more, these are of one step.
const MAX_DEFERRED: usize = 512;

impl Thread {
    /// From now on, keeps back what is recorded, as far as there is room: what will be recorded next has ended before it.
    pub(crate) fn hold(&mut self) {
        self.held.reserve_exact(MAX_HELD.saturating_sub(self.held.len()));
        self.is_holding = true;
    }

    /// Records what was kept back and had ended by then; after [`u64::MAX`], keeps no more.
    pub(crate) fn release(&mut self, until: u64) {
        self.is_holding &= until < u64::MAX;
        let ended = self.held.iter().take_while(|event| event.ended() <= until).count();
        for at in 0..ended {
            self.record_now(self.held[at]);
        }
        self.held.drain(..ended);
    }

    /// Records an event, or keeps it back.
    pub(crate) fn record(&mut self, event: EarlyEvent) {
        if self.is_holding {
            if self.held.len() < MAX_HELD {
                return self.held.push(event);
            }
            self.release(u64::MAX);
        }
        self.record_now(event);
    }

    /// Records an event before those that are kept back.
    pub(crate) fn record_now(&mut self, event: EarlyEvent) {
        if let Some(deferred) = &mut self.deferred {
            if deferred.events.len() < MAX_DEFERRED {
                return deferred.events.push(event);
            }
            self.publish(false);
        }
        match self.destination() {
            Destination::Track => event.record(),
            Destination::Ring => {
                if let Some(ring) = &mut self.ring {
                    ring.record(event);
                }
            }
            Destination::Early => self.keep(event),
            Destination::Nowhere => count_lost(),
        }
    }

    fn keep(&mut self, event: EarlyEvent) {
        if self.early.is_none() && self.has_room {
            self.early = EarlyEvents::new();
            self.has_room = self.early.is_some();
        }
        if let Some(early) = &mut self.early {
            // What a loop that may never train keeps is not missing if it does not.
            early.push(event, !self.is_candidate);
        } else if !self.is_candidate {
            session::count_lost(LostEvent::Thread);
        }
    }

    /// From now on keeps everything back, and steps: it is not sure that they are some.
    pub(crate) fn defer(&mut self) {
        let new = || Box::new(Deferred { events: Vec::with_capacity(MAX_DEFERRED), steps: Vec::new() });
        self.deferred.get_or_insert_with(new);
    }

    /// Keeps a step back that ends now; returns whether steps are kept back.
    pub(super) fn defer_step(&mut self, end: u64) -> bool {
        let (epoch, batch, samples, tokens) = (self.epoch, self.batch, self.samples, self.tokens);
        let Some(deferred) = &mut self.deferred else { return false };
        deferred.steps.push(DeferredStep { events: deferred.events.len(), end, epoch, batch, samples, tokens });
        true
    }

    /// Of the steps that are kept back, the last ones are part of one that has not ended.
    pub(crate) fn merge(&mut self, steps: usize) {
        if let Some(deferred) = &mut self.deferred {
            deferred.steps.truncate(deferred.steps.len().saturating_sub(steps));
        }
    }

    /// Records an event among what is kept back, in the order of the ends. Steps that are kept back are not to be recorded.
    pub(crate) fn insert(&mut self, event: EarlyEvent) {
        match &mut self.deferred {
            Some(deferred) => {
                let place = deferred.events.partition_point(|other| other.ended() <= event.ended());
                deferred.events.insert(place, event);
            }
            None => self.record_now(event),
        }
    }

    /// Records what was kept back, with the steps if they are some.
    pub(crate) fn publish(&mut self, are_steps: bool) {
        let Some(deferred) = self.deferred.take() else { return };
        let Deferred { events, steps } = *deferred;
        let (batch, rows, epoch) = (self.batch, (self.samples, self.tokens), self.epoch);
        let mut recorded = 0;
        for step in steps.iter().filter(|_| are_steps) {
            events[recorded..step.events].iter().for_each(|event| self.record_now(*event));
            recorded = step.events;
            (self.batch, self.epoch) = (step.batch, step.epoch);
            (self.samples, self.tokens) = (step.samples, step.tokens);
            self.end_step_at(None, step.end);
        }
        events[recorded..].iter().for_each(|event| self.record_now(*event));
        (self.batch, (self.samples, self.tokens), self.epoch) = (batch, rows, epoch);
    }
}
