//! The phases in which a loop gets its batch, and how much of the time each takes.

use gnntop_wire::phase::{DATA_WAIT, LOADING, TRANSFER};

use crate::findings::evidence::StepEvidence;
use crate::findings::hardware;
use crate::store::{PhaseSlot, StepRow};

/// A part with a smaller share of the wall time is not named.
const WORTH_NAMING: f64 = 0.01;

/// A phase in which the loop gets its batch.
pub(super) struct InputPart {
    /// The phase.
    pub text: &'static str,
    slot: PhaseSlot,
    /// Its share (0 to 1) of the wall time.
    pub share: f64,
}

/// All of them, the largest first.
pub(super) struct Input {
    pub parts: Vec<InputPart>,
}

impl Input {
    /// Those that the program has; `None` if it has none.
    pub(super) fn find(evidence: &StepEvidence<'_>) -> Option<Self> {
        let span = evidence.span_ns();
        let copies_wait = span.is_some_and(|span| hardware::copies_wait_for_device(evidence.store, &span));
        let copies = [TRANSFER].into_iter().filter(|_| !copies_wait);
        let part = |text| {
            let slot = evidence.store.phase(text)?.slot;
            Some(InputPart { text, slot, share: evidence.share(evidence.phase_total_ns(slot)) })
        };
        let mut parts: Vec<InputPart> = LOADING.into_iter().chain(copies).filter_map(part).collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// Their share (0 to 1) of the wall time together.
    pub(super) fn share(&self) -> f64 {
        self.parts.iter().map(|part| part.share).sum()
    }

    /// Their places in a row.
    pub(super) fn slots(&self) -> Vec<PhaseSlot> {
        self.parts.iter().map(|part| part.slot).collect()
    }

    /// Time of a step in them.
    pub(super) fn row_ns(&self, row: &StepRow<'_>) -> f64 {
        self.parts.iter().map(|part| row.phase_ns(part.slot) as f64).sum()
    }

    /// Those that are worth a name.
    pub(super) fn named(&self) -> impl Iterator<Item = &InputPart> {
        self.parts.iter().filter(|part| part.share >= WORTH_NAMING)
    }

    /// The part that the training thread does itself and that takes the most time, if all of these take longer than it
    /// waits.
    pub(super) fn own(&self) -> Option<&InputPart> {
        let own = || self.parts.iter().filter(|part| part.text != DATA_WAIT);
        let waits: f64 = self.parts.iter().filter(|part| part.text == DATA_WAIT).map(|part| part.share).sum();
        own().next().filter(|_| own().map(|part| part.share).sum::<f64>() > waits)
    }
}
