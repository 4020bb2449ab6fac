//! What a loop does between training steps: it evaluates its model, or collects experience in an environment (a rollout).
//!
//! Both are one phase around their own phases, recorded when the loop trains again.

use super::record::{Name, Record, Ticks};
use super::{Loop, State};

impl Loop {
    /// A root is called without gradients, not to train.
    pub(super) fn evaluation_begin(&mut self, to: &mut impl Record) -> i32 {
        self.aside_begin(!self.has_environment, to);
        self.has_evaluated = true;
        let name = if self.has_environment { Name::Forward } else { Name::Validation };
        self.enter(State::Evaluation, name, to)
    }

    /// A policy in training mode is called without gradients between training steps.
    pub(super) fn policy_begin(&mut self, to: &mut impl Record) -> i32 {
        self.aside_begin(false, to);
        self.enter(State::Evaluation, Name::Forward, to)
    }

    /// Whether a call without gradients may be a policy's, for the next action.
    pub(super) fn may_be_policy(&self) -> bool {
        self.has_environment && !self.has_forward && self.micro_batches == 0
    }

    /// `continues`: whether what came since the last work of this kind surely belongs to the same phase.
    fn aside_begin(&mut self, continues: bool, to: &mut impl Record) {
        self.end_update(to);
        if self.validation_began == 0 {
            // The fetch before belongs to it, unless a backward pass followed that.
            self.forget_guess(to);
            let fetched = Some(self.fetch_began).filter(|began| self.has_batch && *began != 0);
            self.validation_began = fetched.unwrap_or_else(|| to.now());
            self.has_evaluated = false;
        } else if continues {
            to.release(Ticks::MAX);
        }
    }

    pub(super) fn evaluation_end(&mut self, token: i32, to: &mut impl Record) {
        self.leave(token, to);
        self.evaluated = to.now();
        self.aside_end(to);
    }

    fn aside_end(&mut self, to: &mut impl Record) {
        self.fetch_began = 0;
        self.rest(to);
        to.hold();
    }

    /// An environment steps or is reset.
    pub(super) fn environment_begin(&mut self, to: &mut impl Record) -> i32 {
        self.has_environment = true;
        // After a policy that is called with gradients, or where nothing trains, it is a phase of its own.
        if self.has_forward || self.may_be_inference() {
            self.end_update(to);
            self.forget_guess(to);
        } else {
            self.aside_begin(true, to);
        }
        self.enter(State::Environment, Name::Environment, to)
    }

    pub(super) fn environment_end(&mut self, token: i32, to: &mut impl Record) {
        self.leave(token, to);
        if self.validation_began != 0 && !self.may_be_inference() {
            self.stepped_environment = to.now();
            self.aside_end(to);
        } else {
            // What follows the policy is no loss, but for what follows its last action.
            self.computed = to.now();
            self.follows_environment = true;
        }
    }

    /// The loop trains again: a rollout lasted until the environment's last step, a validation until the fetch of this batch
    /// or until its last forward pass.
    pub(super) fn end_validation(&mut self, to: &mut impl Record) {
        let began = std::mem::take(&mut self.validation_began);
        if began == 0 {
            return;
        }
        if self.stepped_environment > began {
            to.release(self.stepped_environment);
            to.span(Name::Rollout, began, self.stepped_environment);
        } else if self.has_evaluated {
            let end = if self.fetch_began == 0 { self.evaluated } else { self.fetch_began };
            to.release(end);
            to.span(Name::Validation, began, end);
            to.timed_mark(Name::Validated, began, end);
        }
        to.release(Ticks::MAX);
    }
}
