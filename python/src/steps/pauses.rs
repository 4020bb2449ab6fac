//! Work that interrupts whatever the thread does: its phase ends, and continues afterwards.

use super::record::{Name, Record};
use super::{Begun, Loop, Paused, State};

impl Loop {
    /// Begins work with a phase of its own.
    pub(super) fn pause_begin(&mut self, name: Name, to: &mut impl Record) -> i32 {
        if self.state == State::Nothing {
            self.record_loss(to);
            if name == Name::Optimizer && self.penalised != 0 {
                self.record_penalty(to);
            }
            self.record_optimizer_in_closure(to);
            self.end_update(to);
            self.guess_forward(to);
        }
        // Where the program has opened spans of its own in the phase, the work is inside of them.
        let is_innermost = |(_, depth): &Begun| to.depth() == depth + 1;
        let interrupted = self.phase.filter(is_innermost);
        if let Some((_, depth)) = interrupted {
            to.end_to(depth);
        }
        let token = to.begin(name);
        let (state, phase) = (self.state, self.phase);
        self.paused.push(Paused { token, state, phase, is_interrupted: interrupted.is_some() });
        self.state = State::Pause;
        self.phase = Some((name, token));
        token
    }

    pub(super) fn pause_end(&mut self, token: i32, to: &mut impl Record) {
        to.end_to(token);
        let Some(place) = self.paused.iter().rposition(|paused| paused.token == token) else { return };
        self.paused.truncate(place + 1); // others inside have raised
        let Some(Paused { state, phase, is_interrupted, .. }) = self.paused.pop() else { return };
        self.state = state;
        self.phase = phase;
        if state == State::Nothing {
            self.resume(to);
        } else if let Some((name, _)) = phase.filter(|_| is_interrupted) {
            let loading = self.loading.last().filter(|_| state == State::Fetch).map(|(name, _)| *name);
            to.begin(loading.unwrap_or(name));
        }
    }

    /// What was interrupted continues: the loss, the optimizer in a closure, or a forward pass that is not reported.
    pub(super) fn resume(&mut self, to: &mut impl Record) {
        if self.has_forward {
            self.computed = to.now();
        }
        if self.penalised != 0 {
            self.penalised = to.now();
        }
        if self.closures > 0 && self.in_closure > 0 {
            self.differentiated = to.now();
        }
        if !self.has_forward {
            self.rest(to);
        }
    }

    pub(super) fn save_begin(&mut self, to: &mut impl Record) -> i32 {
        if self.state == State::Nothing {
            self.end_validation(to);
        }
        self.saving = to.now();
        self.pause_begin(Name::Checkpoint, to)
    }

    pub(super) fn save_end(&mut self, token: i32, to: &mut impl Record) {
        self.pause_end(token, to);
        if token == 0 {
            let now = to.now();
            to.timed_mark(Name::Saved, self.saving, now);
        }
    }
}
