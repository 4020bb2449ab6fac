//! Forward passes, the loss after them, and validation.

use super::record::{Name, Record, Ticks};
use super::{Loop, State};

impl Loop {
    pub(super) fn forward_begin(&mut self, has_gradients: bool, to: &mut impl Record) -> i32 {
        if has_gradients {
            self.end_validation(to);
        }
        self.record_optimizer_in_closure(to);
        // The loss of an earlier forward pass, or the work between one network and the next.
        self.record_loss(to);
        self.has_forward |= has_gradients;
        self.may_infer = false;
        self.forget_guess(to);
        self.enter(State::Forward, Name::Forward, to)
    }

    pub(super) fn record_loss(&mut self, to: &mut impl Record) {
        if self.has_forward {
            let now = to.now();
            to.span(Name::Loss, self.computed, now);
        }
    }

    pub(super) fn evaluation_begin(&mut self, to: &mut impl Record) -> i32 {
        if self.validation_began == 0 {
            // The fetch before belongs to it, unless a backward pass followed that.
            self.forget_guess(to);
            let fetched = Some(self.fetch_began).filter(|began| self.has_batch && *began != 0);
            self.validation_began = fetched.unwrap_or_else(|| to.now());
        } else {
            to.release(Ticks::MAX); // what came since the last one belongs to the same validation
        }
        self.enter(State::Evaluation, Name::Validation, to)
    }

    pub(super) fn forward_end(&mut self, token: i32, to: &mut impl Record) {
        let was_evaluation = self.state == State::Evaluation;
        self.leave(token, to);
        if was_evaluation {
            self.evaluated = to.now();
            self.fetch_began = 0;
            self.rest(to);
            to.hold();
        } else {
            self.computed = to.now();
        }
    }

    /// The loop trains again: a validation lasted until the fetch of this batch, or until its last forward pass.
    pub(super) fn end_validation(&mut self, to: &mut impl Record) {
        if self.validation_began == 0 {
            return;
        }
        let (begin, end) =
            (self.validation_began, if self.fetch_began == 0 { self.evaluated } else { self.fetch_began });
        to.release(end);
        to.span(Name::Validation, begin, end);
        to.timed_mark(Name::Validated, begin, end);
        to.release(Ticks::MAX);
        self.validation_began = 0;
    }
}
