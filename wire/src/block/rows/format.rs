//! The layout of rows: their tags, and the state that both directions keep.

use crate::ids::SignalId;

/// Signals whose last value a block keeps; higher ids are coded without it.
pub(super) const REMEMBERED_SIGNALS: usize = 1024;

/// Tags below this are spans.
pub(super) const FIRST_OTHER_TAG: u8 = 0x80;
/// In a span's tag: the next difference counts from the span's end, not its start.
pub(super) const SPAN_FROM_END: u8 = 1;
/// Names up to this id fit into a span's tag.
pub(super) const INLINE_NAMES: u32 = 62;
pub(super) const TAG_SAMPLE: u8 = 0x80;
/// Not an event: the spans after it belong to another step.
pub(super) const TAG_CHANGE_STEP: u8 = 0x81;
pub(super) const TAG_STEP: u8 = 0xC0;
pub(super) const TAG_COUNTER: u8 = 0xC1;
pub(super) const TAG_MARK: u8 = 0xC2;
pub(super) const TAG_OPEN: u8 = 0xC3;
pub(super) const TAG_ABSENT: u8 = 0xC4;
pub(super) const TAG_ALLOCATION: u8 = 0xC5;
pub(super) const TAG_PHASE_MEMORY: u8 = 0xC6;
pub(super) const TAG_DEVICE_SPAN: u8 = 0xC7;
pub(super) const TAG_STACK_FRAME: u8 = 0xC8;
pub(super) const TAG_STACK_SAMPLE: u8 = 0xC9;
pub(super) const TAG_RIVAL: u8 = 0xCA;
/// Tags from here on carry a length, so that unknown ones can be skipped.
pub(super) const FIRST_SIZED_TAG: u8 = 0xC0;

/// The last value of each signal in a block, kept by both directions.
#[derive(Debug, Default)]
pub(crate) struct LastValues(Vec<i64>);

impl LastValues {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The signal's value, initially 0; `None` for signals whose values are not kept.
    pub(super) fn get(&mut self, signal: SignalId) -> Option<&mut i64> {
        let index = signal.0 as usize;
        if index >= REMEMBERED_SIGNALS {
            return None;
        }
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0.get_mut(index)
    }
}

// Bits of a step that say what is present, above those of its batch.
pub(super) const HAS_USAGE: u8 = 1 << 4;
pub(super) const IS_TRACED: u8 = 1 << 5;

// Forms of a number.
pub(super) const NUMBER_NONE: u8 = 0;
pub(super) const NUMBER_INTEGER: u8 = 1;
pub(super) const NUMBER_F32: u8 = 2;
pub(super) const NUMBER_F64: u8 = 3;
