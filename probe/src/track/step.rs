//! The steps of a training loop. What is known of a step goes to the ring in parts, before the step itself.

use std::ptr;

use gnntop_wire::BatchShape;

use super::local::{Local, current, is_current};
use super::shared::{IS_TRACED, LONG_EPOCH, RawEvent, Tag};
use crate::switch;

/// Begins the next step of this thread's training loop; it ends when the result is dropped.
///
/// Put the whole loop body inside, including the wait for data. Time inside a step but in no phase, and time between two
/// steps, is shown as the gap.
#[inline]
pub fn step(epoch: u64) -> Step {
    let mut begun = Step { local: ptr::null(), start: 0, parts: StepParts { epoch, ..StepParts::default() } };
    // An `Rc`, since an observer runs the program's code, which may end the track.
    let Some(track) = current() else { return begun };
    if !switch::is_recording() {
        skip(&track);
        return begun;
    }
    begun.local = &raw const *track;
    begin_next(&track);
    begun.start = track.clock.raw();
    begun
}

/// Counts a step that is not recorded, unless it had begun, so that the numbers of those after it say that it is missing.
pub(super) fn skip(track: &Local) {
    if track.step.replace(0) == 0 {
        track.last_step.set(track.last_step.get() + 1);
    }
}

/// Begins the next step: later records belong to it. May run the program's code.
pub(super) fn begin_next(track: &Local) {
    let number = track.last_step.get() + 1;
    track.last_step.set(number);
    track.step.set(number);
    if let Some(observer) = track.observer.get() {
        observer.begin_step(number);
    }
}

/// Records a step with what is known of it; later records belong to no step. May run the program's code.
pub(super) fn end(track: &Local, parts: &StepParts, begin: u64, end: u64) {
    let step = track.step.get();
    let (epoch, is_long_epoch) = (parts.epoch as u32, parts.epoch > u64::from(u32::MAX));
    parts.push(track, step, is_long_epoch);
    push_usage(track, step, end);
    let present = if is_long_epoch { LONG_EPOCH } else { 0 } | if parts.is_traced { IS_TRACED } else { 0 };
    track.push_step(RawEvent { a: begin, b: end, c: step, id: epoch, tag: Tag::Step, present });
    if let Some(observer) = track.observer.get() {
        observer.end_step(step, begin, end);
    }
    track.step.set(0);
}

/// A running step; see [`step`]. Set what is known of its batch.
#[must_use = "the step ends when this is dropped"]
pub struct Step {
    /// The track it began on; null if nothing is recorded. Only compared: the track may have ended.
    local: *const Local,
    start: u64,
    parts: StepParts,
}

/// What is known of a step besides its times.
#[derive(Clone, Copy, Default)]
pub(super) struct StepParts {
    pub(super) epoch: u64,
    pub(super) batch: BatchShape,
    pub(super) loss: Option<f64>,
    pub(super) is_traced: bool,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("Step");
        text.field("is_recording", &!self.local.is_null()).field("epoch", &self.parts.epoch);
        text.field("batch", &self.parts.batch).field("loss", &self.parts.loss).finish_non_exhaustive()
    }
}

impl Step {
    /// Sets the size of the step's batch, as far as known.
    pub fn batch(&mut self, batch: BatchShape) {
        self.parts.batch = batch;
    }

    /// Sets the step's loss. On a GPU, reading the loss waits for the device: omit it if that disturbs the training.
    pub fn loss(&mut self, loss: f64) {
        self.parts.loss = Some(loss);
    }
}

impl StepParts {
    /// Records the parts before the step itself. They include the epoch only if the step has no room for it.
    fn push(&self, track: &Local, step: u64, is_long_epoch: bool) {
        let part = |tag, present, a, b, c| RawEvent { a, b, c, id: step as u32, tag, present };
        let known = |value: Option<u64>, bit: u8| u8::from(value.is_some()) << bit;
        let value = |value: Option<u64>| value.unwrap_or(0);
        let BatchShape { graphs, nodes, edges, seeds } = self.batch;
        let present = known(graphs, 0) | known(nodes, 1) | known(edges, 2);
        if present != 0 {
            track.push_step(part(Tag::StepBatch, present, value(graphs), value(nodes), value(edges)));
        }
        let present = known(seeds, 0) | u8::from(self.loss.is_some()) << 1;
        if present != 0 || is_long_epoch {
            let loss_bits = self.loss.unwrap_or(0.0).to_bits();
            track.push_step(part(Tag::StepRun, present, value(seeds), loss_bits, self.epoch));
        }
    }
}

/// Records the thread's page faults and context switches since it last asked.
fn push_usage(track: &Local, step: u64, end: u64) {
    if let Some((now, [a, b])) = track.charged.get().and_then(|before| before.at_step_end(end, &track.clock)) {
        track.push_step(RawEvent { a, b, c: 0, id: step as u32, tag: Tag::StepUsage, present: 0 });
        track.charged.set(Some(now));
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if self.local.is_null() || !is_current(self.local) {
            return;
        }
        // An `Rc`, as above.
        let Some(track) = current() else { return };
        let now = track.clock.raw();
        end(&track, &self.parts, self.start, now);
    }
}
