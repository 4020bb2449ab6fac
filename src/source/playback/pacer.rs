//! Holds back what is not due yet, and hands over what has become due.

use std::collections::VecDeque;

use gnntop_wire::{Anchor, BlockEncoder, BlockInfo, End, Event, Item, StreamReader, put_anchor, put_end};

use super::super::Sink;

/// The recording is read this far ahead of the position: a recorder puts up to a second of one track into one
/// block before it writes the next track's, so what is due may stand behind what is not.
const READ_AHEAD_NS: u64 = 1_500_000_000;
/// A block that starts this long before the position is handed over whole.
const WHOLE_BLOCK_NS: u64 = 2_000_000_000;
/// Events held back at most; beyond it, reading ahead stops.
const MAX_HELD_EVENTS: usize = 1 << 20;

/// Items between the recording and the sink.
#[derive(Default)]
pub(super) struct Pacer {
    /// The recording's first instant, from the first item that has one.
    origin_ns: Option<u64>,
    /// Everything up to here is due, on the publisher's clock.
    due_ns: u64,
    /// Newest instant that was read.
    ahead_ns: u64,
    held: VecDeque<Held>,
    held_events: usize,
    position_ns: u64,
    /// Carries partial blocks through the one format that sinks know.
    reader: StreamReader,
    bytes: Vec<u8>,
}

/// Something that is not due yet.
enum Held {
    Block { info: BlockInfo, events: VecDeque<Event>, next_seq: u64 },
    Anchor(Anchor),
    End(End),
}

impl Pacer {
    /// Says which instant is shown, in nanoseconds from the start of the recording.
    pub(super) fn set_position(&mut self, position_ns: u64) {
        self.position_ns = position_ns;
        self.due_ns = self.origin_ns.unwrap_or(0).saturating_add(position_ns);
    }

    /// Whether enough was read to hand over everything that is due.
    pub(super) fn is_ahead(&self) -> bool {
        let enough_ns = self.due_ns.saturating_add(READ_AHEAD_NS);
        self.origin_ns.is_some() && self.ahead_ns >= enough_ns || self.held_events >= MAX_HELD_EVENTS
    }

    /// Whether nothing is held back.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The side that the recording puts items in.
    pub(super) fn gate<'a>(&'a mut self, sink: &'a mut dyn Sink) -> Gate<'a> {
        Gate { pacer: self, sink }
    }

    /// Notes an instant that was read.
    fn reach(&mut self, t_ns: u64) {
        if self.origin_ns.is_none() {
            self.origin_ns = Some(t_ns);
            self.set_position(self.position_ns);
        }
        self.ahead_ns = self.ahead_ns.max(t_ns);
    }

    /// Hands over what has become due; false if that was nothing.
    pub(super) fn release(&mut self, sink: &mut dyn Sink) -> bool {
        let due_ns = self.due_ns;
        self.bytes.clear();
        let mut held_events = 0;
        for held in &mut self.held {
            match held {
                Held::Block { info, events, next_seq } => {
                    put_due(&mut self.bytes, info, events, next_seq, due_ns);
                    held_events += events.len();
                }
                Held::Anchor(anchor) if anchor.monotonic_ns <= due_ns => put_anchor(&mut self.bytes, anchor),
                Held::End(end) if end.t_ns <= due_ns => put_end(&mut self.bytes, end),
                Held::Anchor(_) | Held::End(_) => (),
            }
        }
        self.held_events = held_events;
        self.held.retain(|held| match held {
            Held::Block { events, .. } => !events.is_empty(),
            Held::Anchor(anchor) => anchor.monotonic_ns > due_ns,
            Held::End(end) => end.t_ns > due_ns,
        });
        self.reader.fill(&self.bytes);
        while let Some(item) = self.reader.next() {
            sink.apply(item);
        }
        !self.bytes.is_empty()
    }
}

/// Appends a block of those first events of a held block that are due, and takes them out of it.
fn put_due(out: &mut Vec<u8>, info: &BlockInfo, events: &mut VecDeque<Event>, next_seq: &mut u64, due_ns: u64) {
    if events.front().is_none_or(|event| event.t_ns() > due_ns) {
        return;
    }
    let mut block = BlockEncoder::new(info.track);
    block.continue_from(*next_seq);
    while let Some(event) = events.front().filter(|event| event.t_ns() <= due_ns) {
        if !block.push(event) {
            block.finish(info.dropped, out);
            continue;
        }
        events.pop_front();
    }
    block.finish(info.dropped, out);
    *next_seq = block.next_seq();
}

/// Lets pass what is due and keeps the rest.
pub(super) struct Gate<'a> {
    pacer: &'a mut Pacer,
    sink: &'a mut dyn Sink,
}

impl Sink for Gate<'_> {
    fn apply(&mut self, item: Item<'_>) {
        let pacer = &mut *self.pacer;
        match item {
            Item::Block(info, events) => {
                pacer.reach(info.base_ns);
                if info.base_ns.saturating_add(WHOLE_BLOCK_NS) <= pacer.due_ns {
                    return self.sink.apply(Item::Block(info, events));
                }
                let events: VecDeque<Event> = events.collect();
                pacer.held_events += events.len();
                // No track gets so far; bounded so that no sum overflows.
                let next_seq = info.first_seq.min(1 << 62);
                pacer.held.push_back(Held::Block { info, events, next_seq });
            }
            Item::Anchor(anchor) => {
                pacer.reach(anchor.monotonic_ns);
                if anchor.monotonic_ns <= pacer.due_ns && pacer.held.is_empty() {
                    return self.sink.apply(Item::Anchor(anchor));
                }
                pacer.held.push_back(Held::Anchor(anchor));
            }
            Item::End(end) => {
                pacer.reach(end.t_ns);
                pacer.held.push_back(Held::End(end));
            }
            other => self.sink.apply(other),
        }
    }

    fn reset(&mut self) {
        self.sink.reset();
    }
}
