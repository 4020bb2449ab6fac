//! Fetches of batches, what a loader does in them, and epochs.

use super::record::{Name, Record, Shape};
use super::{Loop, State};

impl Loop {
    pub(super) fn fetch_begin(&mut self, to: &mut impl Record) -> i32 {
        if self.state == State::Optimizer {
            let depth = self.phase.map_or(0, |(_, depth)| depth);
            self.leave(depth, to); // it has raised, and the program continued
        }
        self.record_optimizer_in_closure(to);
        self.forget_guess(to);
        self.lone_fetch(to);
        self.inference_fetch(to);
        self.penalised = 0;
        self.fetch_began = to.now();
        self.enter(State::Fetch, Name::DataWait, to)
    }

    pub(super) fn fetch_end(&mut self, token: i32, to: &mut impl Record) {
        self.leave(token, to);
        self.loading.clear();
        self.has_forward = false;
        self.resume(to);
    }

    /// The loop has a batch of this size, as far as known.
    pub(crate) fn fetched(&mut self, shape: Option<Shape>, to: &mut impl Record) {
        self.has_batch = true;
        self.shape = shape;
        // A batch of an evaluation counts as the new epoch, too, if no evaluation was seen before it.
        if self.is_over && self.validation_began == 0 {
            self.is_over = false;
            self.epoch += 1;
            to.epoch(self.epoch);
        }
    }

    /// The loop has asked for a batch, and there was none: the data has ended.
    pub(crate) fn exhausted(&mut self) {
        if self.validation_began == 0 {
            self.is_over = self.steps > 0;
        }
    }

    pub(super) fn transfer_begin(&mut self, to: &mut impl Record) -> i32 {
        self.record_loss(to);
        self.record_optimizer_in_closure(to);
        self.forget_guess(to);
        self.end_update(to);
        self.enter(State::Transfer, Name::Transfer, to)
    }

    pub(super) fn transfer_end(&mut self, token: i32, to: &mut impl Record) {
        self.leave(token, to);
        self.resume(to);
    }

    /// A loader samples or gathers. This replaces the wait that contains it, and the spans in between.
    pub(super) fn loading_begin(&mut self, name: Name, to: &mut impl Record) -> i32 {
        let around = self.loading.last().copied().or(self.phase.filter(|_| self.state == State::Fetch));
        if let Some((_, depth)) = around {
            to.end_to(depth);
        } else {
            self.record_loss(to);
            self.record_optimizer_in_closure(to);
            self.forget_guess(to);
            self.end_update(to);
        }
        let depth = to.begin(name);
        self.loading.push((name, depth));
        depth
    }

    pub(super) fn loading_end(&mut self, token: i32, to: &mut impl Record) {
        to.end_to(token);
        self.loading.pop();
        if let Some((name, _)) = self.loading.last() {
            to.begin(*name);
        } else if self.state == State::Fetch {
            to.begin(Name::DataWait);
        } else {
            self.resume(to);
        }
    }
}
