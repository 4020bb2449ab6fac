//! Loops whose optimizer is not seen: it is none of torch's, or the program updates its parameters by hand.
//!
//! A step then ends where gradients are set to zero, if the program does that with `zero_grad`; else where the next batch is
//! fetched, if batches are fetched in between; else with each backward pass. Until it is sure that no optimizer follows, these ends are kept back with all else.

use super::record::{Name, Record, add_shapes};
use super::{Loop, State};

/// After this many backward passes, gradients are no longer expected to be set to zero by a call that is seen.
const MOST_MICRO_BATCHES: u32 = 50;

impl Loop {
    /// A backward pass has ended. Returns the number of the step that ends with it.
    pub(super) fn lone_backward(&mut self, is_backward: bool, to: &mut impl Record) -> Option<i32> {
        let lone = &mut self.lone;
        if is_backward && !lone.has_backward {
            lone.has_backward = true; // what was before is of the same step, as a penalty's gradients
            (lone.backwards, lone.deferred) = (0, 0);
            self.rule.count_from_here();
            to.merge(std::mem::take(&mut lone.steps));
        }
        if self.closures > 0 || !self.rule.is_lone() || lone.is_part(is_backward) {
            return None;
        }
        lone.backwards += 1;
        lone.deferred += 1;
        lone.zeroes &= lone.backwards <= MOST_MICRO_BATCHES;
        lone.fetches.work();
        let is_sure = self.rule.is_sure();
        if !is_sure && !lone.is_deferred {
            lone.is_deferred = true;
            to.defer();
        }
        let ends = !(lone.zeroes || lone.fetches.is_between());
        let number = if ends { self.end_lone_step(to) } else { None };
        if is_sure && self.lone.is_deferred {
            self.lone.is_deferred = false;
            to.publish(true);
        }
        self.lone.updating = to.now();
        number
    }

    /// A batch is fetched: the step of the batch before is over.
    pub(super) fn lone_fetch(&mut self, to: &mut impl Record) {
        self.end_update(to);
        self.lone.fetches.fetch();
        if self.lone.backwards > 0 && !self.lone.zeroes && self.rule.is_lone() {
            self.ended = self.end_lone_step(to);
        }
    }

    /// Gradients are set to zero: the backward passes since the last time were a step, if they are not one already.
    pub(super) fn lone_zero(&mut self, to: &mut impl Record) {
        if self.state != State::Nothing || self.closures > 0 || !self.rule.is_lone() {
            return;
        }
        let steps = std::mem::take(&mut self.lone.steps);
        if self.lone.backwards == 0 && steps < 2 {
            return;
        }
        self.end_update(to);
        self.lone.zeroes = true;
        if self.lone.is_deferred {
            to.merge(steps);
        }
        if self.lone.backwards > 0 || self.lone.is_deferred {
            self.ended = self.end_lone_step(to);
            self.lone.steps = 0;
        }
    }

    /// What an optimizer does without torch's knowledge is over, as something else begins.
    pub(super) fn end_update(&mut self, to: &mut impl Record) {
        let began = std::mem::take(&mut self.lone.updating);
        if began == 0 || self.lone.is_deferred || !self.rule.is_lone() {
            return;
        }
        let now = to.now();
        to.span(Name::Optimizer, began, now);
        if !self.lone.says_updates {
            self.lone.says_updates = true;
            to.inferred(Name::Optimizer);
        }
        self.rest(to);
    }

    /// An optimizer steps: the backward passes so far were micro-batches of one step.
    pub(super) fn end_lone(&mut self, to: &mut impl Record) {
        let has_more = std::mem::take(&mut self.lone.backwards) > 0;
        self.lone.updating = 0;
        if std::mem::take(&mut self.lone.is_deferred) {
            to.publish(false);
            self.accumulates |= self.lone.deferred > 1;
            let batches = self.lone.batches.take();
            self.sum = if has_more { add_shapes(batches, self.sum) } else { batches };
        }
    }

    /// The loop is over: what has not ended does.
    pub(crate) fn finish(&mut self, to: &mut impl Record) {
        if self.lone.backwards > 0 && self.rule.is_lone() {
            self.end_update(to);
            self.end_lone_step(to);
        }
        if std::mem::take(&mut self.lone.is_deferred) {
            to.publish(true);
        }
        self.end_waiting(to);
        self.finish_inference(to);
    }

    fn end_lone_step(&mut self, to: &mut impl Record) -> Option<i32> {
        self.lone.backwards = 0;
        self.lone.steps += 1;
        self.micro_batches = 0;
        if self.lone.is_deferred {
            self.lone.batches = add_shapes(self.lone.batches, self.sum);
        }
        self.end_step(to)
    }
}
