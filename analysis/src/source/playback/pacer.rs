//! Holds back what is not due yet, and passes on what has become due.

use std::collections::VecDeque;

use gnntop_wire::{Anchor, BlockEncoder, BlockInfo, End, Event, Item, SessionInfo, StreamReader, put_anchor, put_end};

use crate::stream::{Clocks, MAX_SESSIONS, Sink};

/// How far to read ahead of the position: a recorder puts up to a second of one track into a block before it writes the
/// next track's, so due events may come after ones that are not.
const READ_AHEAD_NS: u64 = 1_500_000_000;
/// A block that starts this long before the position is passed on whole.
const WHOLE_BLOCK_NS: u64 = 2_000_000_000;
/// A session whose first event is this far before the position, and before what was read, comes after others that ran at
/// the same time.
const IN_TURN_NS: u64 = 3_000_000_000;
/// Most events held back; beyond this, reading ahead stops.
const MAX_PENDING_EVENTS: usize = 1 << 20;

/// Items between the recording and the sink.
#[derive(Default)]
pub(super) struct Pacer {
    /// The recording's first instant; if not known in advance, from the first item with a time.
    origin_ns: Option<u64>,
    /// Everything up to this time is due, on the common clock of all sessions.
    due_ns: u64,
    /// Newest time read, on the common clock.
    ahead_ns: u64,
    clocks: Clocks,
    /// The session of the items being read, and the one last announced to the sink.
    reading: Option<u128>,
    announced: Option<u128>,
    /// Sessions whose first event was read; the next field is whether one of them came after others that ran at the same time.
    started: Vec<u128>,
    is_in_turn: bool,
    pending: VecDeque<PendingFrame>,
    pending_events: usize,
    position_ns: u64,
    /// Passes partial blocks through the one format that sinks know.
    reader: StreamReader,
    bytes: Vec<u8>,
}

/// An item that is not due yet.
struct PendingFrame {
    what: FrameBody,
    session: Option<u128>,
    /// To be added to its times to get the common clock's.
    offset_ns: i64,
}

enum FrameBody {
    Block { info: BlockInfo, events: VecDeque<Event>, next_seq: u64 },
    Anchor(Anchor),
    End(End),
}

impl Pacer {
    /// A pacer for a recording that begins at this instant on this session's clock, if known.
    pub(super) fn new(origin: Option<(u64, Option<SessionInfo>)>) -> Self {
        let Some((first_ns, reference)) = origin else { return Self::default() };
        Self { origin_ns: Some(first_ns), clocks: Clocks::with_reference(reference), ..Self::default() }
    }

    /// Announces the session of the next items: the sink may have received others in between.
    pub(super) fn resume(&mut self, sink: &mut dyn Sink) {
        self.announced = None;
        self.announce(self.reading, sink);
    }

    fn announce(&mut self, session: Option<u128>, sink: &mut dyn Sink) {
        if let Some(session_id) = session.filter(|_| session != self.announced) {
            sink.select_session(session_id);
            self.announced = session;
        }
    }

    /// Sets the instant shown, in nanoseconds from the start of the recording.
    pub(super) fn set_position(&mut self, position_ns: u64) {
        self.position_ns = position_ns;
        self.due_ns = self.origin_ns.unwrap_or(0).saturating_add(position_ns);
    }

    /// Whether enough was read to pass on everything that is due.
    pub(super) fn is_ahead(&self) -> bool {
        let enough_ns = self.due_ns.saturating_add(READ_AHEAD_NS);
        self.origin_ns.is_some() && self.ahead_ns >= enough_ns || self.pending_events >= MAX_PENDING_EVENTS
    }

    /// Whether sessions that ran at the same time come one after another.
    pub(super) fn is_in_turn(&self) -> bool {
        self.is_in_turn
    }

    /// Notes the time of the current session's first event.
    fn note_start(&mut self, t_ns: u64) {
        let Some(session_id) = self.reading.filter(|id| !self.started.contains(id)) else { return };
        let read_ns = self.due_ns.min(self.ahead_ns);
        self.is_in_turn |= !self.started.is_empty() && t_ns.saturating_add(IN_TURN_NS) < read_ns;
        if self.started.len() < MAX_SESSIONS {
            self.started.push(session_id);
        }
    }

    /// Whether nothing is held back.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The side into which the recording puts items.
    pub(super) fn paced_sink<'a>(&'a mut self, sink: &'a mut dyn Sink) -> PacedSink<'a> {
        PacedSink { pacer: self, sink }
    }

    /// Notes an instant that was read.
    fn reach(&mut self, t_ns: u64) {
        if self.origin_ns.is_none() {
            self.origin_ns = Some(t_ns);
            self.set_position(self.position_ns);
        }
        self.ahead_ns = self.ahead_ns.max(t_ns);
    }

    /// Passes on what has become due; `false` if there was nothing. Afterwards the sink is back at its session.
    pub(super) fn release(&mut self, sink: &mut dyn Sink) -> bool {
        let mut held = std::mem::take(&mut self.pending);
        let mut any = false;
        self.pending_events = 0;
        self.announced = None;
        for held in &mut held {
            self.bytes.clear();
            let due_ns = self.due_ns.saturating_add_signed(held.offset_ns.saturating_neg());
            match &mut held.what {
                FrameBody::Block { info, events, next_seq } => {
                    put_due(&mut self.bytes, info, events, next_seq, due_ns);
                    self.pending_events += events.len();
                }
                FrameBody::Anchor(anchor) if anchor.monotonic_ns <= due_ns => put_anchor(&mut self.bytes, anchor),
                FrameBody::End(end) if end.t_ns <= due_ns => put_end(&mut self.bytes, end),
                FrameBody::Anchor(_) | FrameBody::End(_) => (),
            }
            if !self.bytes.is_empty() {
                any = true;
                self.announce(held.session, sink);
                self.reader.fill(&self.bytes);
                while let Some(item) = self.reader.next() {
                    sink.apply(item);
                }
            }
        }
        let due_ns = self.due_ns;
        held.retain(|held| {
            let due_ns = due_ns.saturating_add_signed(held.offset_ns.saturating_neg());
            match &held.what {
                FrameBody::Block { events, .. } => !events.is_empty(),
                FrameBody::Anchor(anchor) => anchor.monotonic_ns > due_ns,
                FrameBody::End(end) => end.t_ns > due_ns,
            }
        });
        self.pending = held;
        if any {
            self.announce(self.reading, sink);
        }
        any
    }

    fn push_pending(&mut self, what: FrameBody) {
        self.pending.push_back(PendingFrame { what, session: self.reading, offset_ns: self.clocks.offset_ns() });
    }
}

/// Appends a block of a held block's first events that are due, and removes them from it.
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

/// Passes what is due and keeps the rest.
pub(super) struct PacedSink<'a> {
    pacer: &'a mut Pacer,
    sink: &'a mut dyn Sink,
}

impl Sink for PacedSink<'_> {
    fn apply(&mut self, item: Item<'_>) {
        let pacer = &mut *self.pacer;
        match item {
            Item::Segment(info) => {
                pacer.clocks.begin(&info);
                pacer.reading = Some(info.session_id);
                pacer.announced = pacer.reading;
                self.sink.apply(Item::Segment(info));
            }
            Item::Block(info, events) => {
                let base_ns = pacer.clocks.common_ns(info.base_ns);
                pacer.reach(base_ns);
                pacer.note_start(base_ns);
                if base_ns.saturating_add(WHOLE_BLOCK_NS) <= pacer.due_ns {
                    return self.sink.apply(Item::Block(info, events));
                }
                let events: VecDeque<Event> = events.collect();
                pacer.pending_events += events.len();
                // More than any track reaches; limited so that no sum overflows.
                let next_seq = info.first_seq.min(1 << 62);
                pacer.push_pending(FrameBody::Block { info, events, next_seq });
            }
            Item::Anchor(anchor) => {
                let t_ns = pacer.clocks.common_ns(anchor.monotonic_ns);
                pacer.reach(t_ns);
                if t_ns <= pacer.due_ns && pacer.pending.is_empty() {
                    return self.sink.apply(Item::Anchor(anchor));
                }
                pacer.push_pending(FrameBody::Anchor(anchor));
            }
            Item::End(end) => {
                pacer.reach(pacer.clocks.common_ns(end.t_ns));
                pacer.push_pending(FrameBody::End(end));
            }
            other => self.sink.apply(other),
        }
    }

    fn reset(&mut self) {
        self.sink.reset();
    }

    fn select_session(&mut self, session_id: u128) {
        (self.pacer.reading, self.pacer.announced) = (Some(session_id), Some(session_id));
        self.sink.select_session(session_id);
    }
}
