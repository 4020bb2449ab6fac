//! Which rank of the run is selected. The selected step stays the same on the next rank if it is known there.

use gnntop_wire::StepId;

use super::state::App;
use super::view::LineKind;

impl App {
    /// Looks at the next rank, or at the one before.
    pub(super) fn select_next_rank(&mut self, forward: bool) {
        self.change_rank(|app| app.run.select_next(forward));
        if self.view().lines() != LineKind::Ranks {
            let of = self.run.expected();
            self.notify(self.run.rank().map_or_else(String::new, |rank| format!("rank {rank} of {of}")));
        }
    }

    /// Selects a rank this many places forward or back, among those that have published.
    pub(super) fn move_rank_selection(&mut self, forward: bool, places: usize) {
        let most = self.run.ranks().all().len();
        self.change_rank(|app| (0..places.min(most)).for_each(|_| app.run.select_next(forward)));
    }

    /// Looks at the rank with this place among those that have published.
    pub(super) fn select_rank(&mut self, at: usize) {
        let rank = self.run.ranks().all().get(at).map(|rank| rank.place.rank);
        if let Some(rank) = rank {
            self.change_rank(|app| _ = app.run.select(rank));
        }
    }

    /// Says something for a while.
    pub(super) fn notify(&mut self, text: String) {
        self.message.show(text, false, self.feed.now());
    }

    /// Forgets what was only true of the steps shown so far.
    pub(super) fn forget_steps(&mut self) {
        (self.judged, self.energy) = Default::default();
        self.presentation.take_highlight();
        self.latency.forget_figures();
        self.axes.reset();
    }

    /// Changes the rank, and forgets what was only true of the one before.
    fn change_rank(&mut self, change: impl FnOnce(&mut Self)) {
        let (before, step) = (self.run.rank(), self.cursor_step());
        change(self);
        if self.run.rank() == before {
            return;
        }
        // The same rank of the run that this one is compared with, if that has ranks.
        if let (Some(other), Some(rank)) = (&mut self.other, self.run.rank()) {
            other.run.select(rank);
        }
        self.forget_steps();
        if let Some(ordinal) = step.and_then(|step| Some(self.run.store().steps().find_step(step)?.ordinal())) {
            self.axes.show(ordinal, self.run.store().steps());
        }
        self.dirty = true;
    }

    /// The selected step, as the program counts.
    fn cursor_step(&self) -> Option<StepId> {
        let row = self.run.store().steps().known_row(self.axes.cursor()?)?;
        Some(row.step())
    }
}
