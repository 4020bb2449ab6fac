//! Forward passes, and the loss after them.

use super::record::{Name, Record};
use super::{Loop, State};

impl Loop {
    pub(super) fn forward_begin(&mut self, has_gradients: bool, to: &mut impl Record) -> i32 {
        if std::mem::take(&mut self.follows_environment) {
            self.computed = 0;
        }
        if has_gradients && self.may_be_inference() {
            self.inference_call(to);
        } else if has_gradients {
            self.end_inference(to);
            self.end_validation(to);
        }
        self.record_optimizer_in_closure(to);
        self.end_update(to);
        // The loss of an earlier forward pass, or the work between one network and the next.
        self.record_loss(to);
        self.has_forward |= has_gradients;
        self.may_infer = false;
        self.penalised = 0;
        self.forget_guess(to);
        self.enter(State::Forward, Name::Forward, to)
    }

    pub(super) fn record_loss(&mut self, to: &mut impl Record) {
        if self.has_forward {
            let now = to.now();
            to.span(Name::Loss, self.computed, now);
        }
    }

    /// Whether a module that nothing trains is called for a training step, and not to compute the loss or in a validation.
    pub(super) fn may_be_frozen(&self) -> bool {
        self.inference.trains && !self.has_forward && self.validation_began == 0
    }

    pub(super) fn forward_end(&mut self, token: i32, to: &mut impl Record) {
        match self.state {
            State::Evaluation => self.evaluation_end(token, to),
            State::Inference => self.inference_end(token, to),
            _ => {
                self.leave(token, to);
                self.computed = to.now();
            }
        }
    }
}
