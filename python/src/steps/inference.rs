//! Programs that only run a model: each batch is a step or, where none is fetched between calls, each call of a root.
//!
//! A training may begin with an evaluation, so what is recorded is kept back until it is sure.

use super::record::{Name, Record};
use super::{Loop, State};

/// After this many steps without a backward pass, and without an optimizer that could step, a program does not train.
const SURE_AFTER: u32 = 4;

impl Loop {
    /// Whether nothing shows that this program trains.
    #[inline]
    pub(super) fn may_be_inference(&self) -> bool {
        !self.inference.trains && !self.rule.has_optimizers() && self.is_automatic
    }

    /// A root is called without gradients where nothing trains.
    pub(super) fn inference_begin(&mut self, to: &mut impl Record) -> i32 {
        if self.inference.evaluations == 0 {
            let fetched = Some(self.fetch_began).filter(|began| self.has_batch && *began != 0);
            self.validation_began = fetched.unwrap_or_else(|| to.now()); // that is what it is if the program trains after all
        }
        self.inference.evaluations += 1;
        self.inference_call(to);
        self.enter(State::Inference, Name::Forward, to)
    }

    /// A root is called, with gradients or without, and no backward pass may follow.
    pub(super) fn inference_call(&mut self, to: &mut impl Record) {
        self.inference.calls += 1;
        self.inference.fetches.work();
        if !self.inference.is_deferred && !self.inference.is_published {
            self.inference.is_deferred = true;
            to.defer();
        }
    }

    pub(super) fn inference_end(&mut self, token: i32, to: &mut impl Record) {
        self.leave(token, to);
        self.evaluated = to.now();
    }

    /// A root has been called without gradients: unless batches are fetched in between, that is a step. Returns its number.
    pub(super) fn inference_called(&mut self, to: &mut impl Record) -> Option<i32> {
        if self.inference.fetches.is_between() || self.inference.calls == 0 || !self.may_be_inference() {
            return None;
        }
        self.end_inference_step(to)
    }

    /// A batch is fetched: the one before is over.
    pub(super) fn inference_fetch(&mut self, to: &mut impl Record) {
        self.inference.fetches.fetch();
        if self.inference.calls > 0 && self.may_be_inference() {
            self.ended = self.end_inference_step(to);
        }
    }

    fn end_inference_step(&mut self, to: &mut impl Record) -> Option<i32> {
        self.inference.calls = 0;
        self.inference.steps += 1;
        self.inference.evaluated = self.evaluated;
        self.sum = self.shape;
        self.end_step(to)
    }

    /// The program is over: the last batch was one, too.
    pub(super) fn finish_inference(&mut self, to: &mut impl Record) {
        if self.inference.calls > 0 && self.inference.fetches.is_between() && self.may_be_inference() {
            self.end_inference_step(to);
        }
        if self.is_surely_inference() {
            self.publish_inference(to);
        }
    }

    /// Whether it has just become sure that this program does not train. [`publish_inference`](Self::publish_inference) is to
    /// follow, when there is a session.
    pub(crate) fn is_surely_inference(&self) -> bool {
        self.inference.is_deferred && self.inference.steps >= SURE_AFTER && self.may_be_inference()
    }

    /// Records the steps so far, and says what they are.
    pub(crate) fn publish_inference(&mut self, to: &mut impl Record) {
        (self.inference.is_deferred, self.inference.is_published) = (false, true);
        self.validation_began = 0;
        to.publish(true);
        to.inference(true);
    }

    /// The program trains after all, or may: what was kept back was an evaluation before that.
    pub(super) fn end_inference(&mut self, to: &mut impl Record) {
        if std::mem::take(&mut self.inference.is_deferred) {
            self.inference.calls = 0;
            let (began, ended) = (std::mem::take(&mut self.validation_began), self.inference.evaluated);
            if began != 0 && ended > began {
                to.insert(Name::Validation, began, ended);
            }
            to.publish(false);
        }
    }

    /// There is a backward pass.
    #[inline]
    pub(super) fn trains(&mut self, to: &mut impl Record) {
        if !self.inference.trains {
            self.inference.trains = true;
            self.end_inference(to);
            if self.inference.is_published {
                to.inference(false);
            }
        }
    }
}
