//! Steps of optimizers, and the ends of steps.

use super::record::{Name, Record, add_shapes};
use super::rule::{OptimizerId, Turn};
use super::work::Work;
use super::{Loop, OptimizerStep, State};

impl Loop {
    /// This optimizer begins a step; with a closure, forward and backward are inside.
    pub(crate) fn optimizer_begin(&mut self, optimizer: OptimizerId, has_closure: bool, to: &mut impl Record) {
        // An optimizer is in no step of its own: that one has raised, and with it those inside.
        if let Some(place) = self.stepping.iter().position(|step| step.optimizer == optimizer) {
            self.forget_steps(place, to);
        }
        // Nor is a backward pass in a step without a closure: it was for this one, and not recorded.
        let is_left = |step: &OptimizerStep| step.work == Work::Optimizer && step.backwards != self.backwards_begun;
        if let Some(place) = self.stepping.iter().position(is_left) {
            self.forget_steps(place, to);
            self.rule.backward(false);
        }
        if self.stepping.last().is_some_and(|step| step.work == Work::Optimizer) {
            self.rule.steps_inside(optimizer);
        }
        self.steps_begun += 1;
        let work = if has_closure { Work::Closure } else { Work::Optimizer };
        let token = self.begin(work, to);
        self.stepping.push(OptimizerStep { optimizer, work, token, backwards: self.backwards_begun });
    }

    /// This optimizer has stepped. Returns what to [`end`](Self::end), if that is recorded.
    pub(crate) fn optimizer_end(&mut self, optimizer: OptimizerId, to: &mut impl Record) -> Option<(Work, i32)> {
        let place = self.stepping.iter().rposition(|step| step.optimizer == optimizer)?;
        self.forget_steps(place + 1, to); // those inside have raised
        let OptimizerStep { work, token, .. } = self.stepping.pop()?;
        token.map(|token| (work, token))
    }

    /// Steps of optimizers that have begun: of how many a hook was told.
    pub(crate) fn optimizer_steps(&self) -> u64 {
        self.steps_begun
    }

    /// Forgets the steps from this place on: they have raised.
    pub(super) fn forget_steps(&mut self, place: usize, to: &mut impl Record) {
        while self.stepping.len() > place {
            let Some(OptimizerStep { work, token: Some(token), .. }) = self.stepping.pop() else { continue };
            match work {
                Work::Closure => self.closures = self.closures.saturating_sub(1),
                _ if self.state == State::Optimizer => self.leave(token, to),
                _ => {}
            }
        }
    }

    pub(super) fn step_begin(&mut self, to: &mut impl Record) -> i32 {
        self.penalised = 0;
        self.end_inference(to);
        self.end_validation(to);
        self.forget_guess(to);
        self.end_lone(to);
        self.enter(State::Optimizer, Name::Optimizer, to)
    }

    pub(super) fn closure_begin(&mut self, to: &mut impl Record) -> i32 {
        self.end_inference(to);
        self.end_validation(to);
        self.forget_guess(to);
        self.end_lone(to);
        self.closures += 1;
        self.in_closure = 0;
        self.closure_began = to.now();
        to.depth()
    }

    pub(super) fn closure_end(&mut self, to: &mut impl Record) {
        let has_fetched = self.fetch_began > self.closure_began;
        if self.in_closure == 0 && !self.has_forward && self.validation_began == 0 && !has_fetched {
            let now = to.now(); // the closure does nothing, as in Lightning's manual optimization
            to.span(Name::Optimizer, self.closure_began, now);
        }
        self.record_optimizer_in_closure(to);
        self.closures = self.closures.saturating_sub(1);
        self.state = State::Nothing;
    }

    pub(super) fn stepped(&mut self, optimizer: OptimizerId, to: &mut impl Record) -> Option<i32> {
        // What steps it, such as a gradient scaler, ended before it did: it has raised.
        if let Some(place) = self.stepping.iter().position(|step| step.optimizer == optimizer) {
            self.forget_steps(place, to);
            return None;
        }
        self.micro_batches = 0;
        let number = self.turn(optimizer, to);
        self.rest(to);
        if self.accumulates {
            self.stepped = to.now();
        }
        number
    }

    /// An optimizer has had its turn: what has waited for it, or with it, are parts of a step or steps.
    fn turn(&mut self, optimizer: OptimizerId, to: &mut impl Record) -> Option<i32> {
        let turn = self.rule.optimizer(optimizer);
        if self.waiting.lesson != self.rule.lessons() {
            self.end_waiting(to); // for another training's optimizers
            self.waiting.lesson = self.rule.lessons();
        }
        match turn {
            Turn::Part => None,
            Turn::Waits => {
                if self.waiting.steps == 0 {
                    to.defer();
                }
                self.waiting.steps += 1;
                self.waiting.batches = add_shapes(self.waiting.batches, self.sum);
                self.end_step(to);
                None
            }
            Turn::Ends if self.waiting.steps > 0 => {
                to.merge(std::mem::take(&mut self.waiting.steps));
                self.sum = add_shapes(self.waiting.batches.take(), self.sum);
                let number = self.end_step(to);
                to.publish(true);
                number
            }
            Turn::Ends | Turn::EndsEach => {
                let number = self.end_step(to);
                self.end_waiting(to);
                number
            }
        }
    }

    /// What has waited are steps: no other optimizer steps.
    pub(super) fn end_waiting(&mut self, to: &mut impl Record) {
        if std::mem::take(&mut self.waiting.steps) > 0 {
            self.waiting.batches = None;
            to.publish(true);
        }
    }

    /// In a closure, what the optimizer did since the previous backward pass.
    pub(super) fn record_optimizer_in_closure(&mut self, to: &mut impl Record) {
        let is_the_optimizers = !self.has_forward && self.validation_began == 0;
        if self.closures > 0 && self.in_closure > 0 && is_the_optimizers {
            let now = to.now();
            to.span(Name::Optimizer, self.differentiated, now);
        }
    }

    pub(super) fn end_step(&mut self, to: &mut impl Record) -> Option<i32> {
        if !self.is_automatic {
            return None;
        }
        let sum = self.sum.take();
        if sum != self.known {
            self.known = sum;
            to.batch(sum);
        }
        self.steps += 1;
        Some(to.step())
    }

    /// A part of the optimizer's phase, in its step or outside of it.
    pub(super) fn part_begin(&mut self, name: Name, to: &mut impl Record) -> i32 {
        if self.state == State::Optimizer {
            return to.begin(name); // a part of its phase, and no phase
        }
        let token = self.pause_begin(Name::Optimizer, to);
        to.begin(name);
        token
    }
}
