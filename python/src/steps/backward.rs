//! Backward passes, and the micro-batches that they are of.

use super::record::{Name, Record, Ticks, add_shapes};
use super::{Loop, State};

impl Loop {
    pub(super) fn backward_begin(&mut self, to: &mut impl Record) -> i32 {
        self.trains(to);
        self.end_validation(to);
        self.follows_environment = false;
        self.lone.forget_update();
        if self.has_forward {
            self.record_loss(to);
            self.has_forward = false;
            self.sees_forward = true;
        } else if self.penalised != 0 {
            self.record_penalty(to);
        } else {
            self.infer_forward(to);
        }
        self.may_infer = false;
        self.penalised = 0;
        if !self.has_peers {
            return self.enter(State::Backward, Name::Backward, to);
        }
        // Its end and the begin of the wait for others are known only at the end.
        self.state = State::Backward;
        self.reducing = 0;
        self.backward_began = to.now();
        to.begin(Name::BackwardOfRanks)
    }

    /// What follows gradients without an optimizer's step, such as a penalty that is computed of them, is loss.
    pub(super) fn record_penalty(&mut self, to: &mut impl Record) {
        let now = to.now();
        to.span(Name::Loss, self.penalised, now);
    }

    pub(super) fn infer_forward(&mut self, to: &mut impl Record) {
        if self.may_infer {
            to.span(Name::Forward, self.guess.0, self.guess.1);
            self.forget_guess(to);
            let now = to.now();
            to.span(Name::Forward, self.rested, now);
            self.inferred += 1;
            if self.inferred == 2 {
                to.inferred(Name::Forward); // the first step is seen before its modules are known
            }
        } else if self.has_batch {
            self.sees_forward = false; // no root was called for this batch: from the next one on, forward is inferred
        }
    }

    /// Work begins that may be inside of a forward pass that is not reported: it is kept back until that is known.
    pub(super) fn guess_forward(&mut self, to: &mut impl Record) {
        if self.may_infer && self.guess.0 == 0 && self.validation_began == 0 {
            self.guess = (self.rested, to.now());
            to.hold();
        }
    }

    /// Records what was kept back for a forward pass; it was none, or is recorded.
    pub(super) fn forget_guess(&mut self, to: &mut impl Record) {
        if self.guess.0 != 0 {
            self.guess = (0, 0);
            to.release(Ticks::MAX);
        }
    }

    /// The thread sends gradients to other ranks, in its backward pass.
    pub(crate) fn reducing(&mut self, to: &mut impl Record) {
        if self.state == State::Backward {
            self.reducing = to.now();
        }
    }

    pub(super) fn backward_end(&mut self, token: i32, to: &mut impl Record) {
        if self.has_peers {
            let now = to.now();
            let end = if self.reducing == 0 { now } else { self.reducing };
            to.span(Name::Backward, self.backward_began, end);
            to.span(Name::AllReduce, self.reducing, now);
        }
        self.leave(token, to);
    }

    pub(super) fn differentiated(&mut self, is_micro_batch: bool, to: &mut impl Record) -> Option<i32> {
        if is_micro_batch {
            self.add_micro_batch(to);
        }
        if !is_micro_batch && self.rule.has_optimizers() {
            self.penalised = to.now();
        }
        self.has_batch = false;
        if self.accumulates || self.closures > 0 {
            self.differentiated = to.now();
        }
        self.rule.backward(self.lone.is_part(is_micro_batch));
        let number = self.lone_backward(is_micro_batch, to);
        if self.rule.is_lone() && self.closures == 0 {
            self.rest(to);
        }
        number
    }

    pub(super) fn add_micro_batch(&mut self, to: &mut impl Record) {
        self.in_closure += 1;
        if self.closures > 0 && self.in_closure > 1 {
            return; // the same batch again
        }
        self.micro_batches += 1;
        if self.accumulates && self.closures == 0 || self.micro_batches > 1 {
            let begin = if self.micro_batches > 1 { self.differentiated } else { self.stepped };
            let now = to.now();
            to.span(Name::MicroBatch, begin, now);
        }
        self.accumulates |= self.micro_batches > 1;
        if self.has_batch {
            self.sum = add_shapes(self.sum, self.shape);
        }
    }
}
