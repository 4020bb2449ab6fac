//! The communicators of this process: the operations in flight of each, and its ring for finished ones.
//!
//! NCCL calls from its own threads and the program's, none of which may wait. A thread that cannot get a communicator
//! within some microseconds continues, and what it would have reported counts as missing.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use gnntop_probe::foreign::{RingName, Writer};
use gnntop_probe::{NameKind, Reported, TrackRole, after};

use super::operations::{self, FinishedOperation, Operations, Ticket, Work};
use crate::session::{self, Status};
use crate::worker;

/// Most communicators at a time; further ones are not observed.
const MAX: usize = 32;
/// Attempts to get a communicator: some microseconds, longer than any use of one.
const TRIES: usize = 2_000;

static ALL: [Mutex<Option<Communicator>>; MAX] = [const { Mutex::new(None) }; MAX];

/// One communicator: a track.
struct Communicator {
    ring: i32,
    writer: Writer,
    operations: Operations,
    /// Whether its ranks are on several machines.
    is_between_machines: bool,
    spans: [Option<RingName>; operations::KINDS],
    bytes: [Option<RingName>; operations::KINDS],
    untimed: Option<RingName>,
    /// End of the last event written: a track's events are in order.
    last: u64,
    /// Number of operations already reported without a time.
    reported: u64,
}

/// A handle of an operation, or of a channel of its kernel, as a pointer that nobody dereferences. Its lowest bit is set,
/// so it is never NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventHandle {
    pub(super) communicator: usize,
    pub(super) ticket: Ticket,
    pub(super) is_channel: bool,
}

impl EventHandle {
    pub(super) fn to_bits(self) -> u64 {
        let (place, number) = (u64::from(self.ticket.place), u64::from(self.ticket.number));
        number << 32 | place << 16 | (self.communicator as u64 & 0xFF) << 8 | u64::from(self.is_channel) << 1 | 1
    }

    pub(super) fn from_bits(bits: u64) -> Option<Self> {
        let ticket = Ticket { place: (bits >> 16) as u16, number: (bits >> 32) as u32 };
        let handle = Self { communicator: (bits >> 8 & 0xFF) as usize, ticket, is_channel: bits & 2 != 0 };
        (handle.to_bits() == bits && handle.communicator < MAX).then_some(handle)
    }
}

/// Opens a communicator called `name`, of ranks on one machine or several; returns its number. May wait for the session to open, as NCCL waits anyway.
pub(super) fn open(name: &str, is_between_machines: bool) -> Option<usize> {
    let at = ALL.iter().position(|place| lock(place).is_some_and(|place| place.is_none()))?;
    let (ring, address) = worker::create(name, TrackRole::Communicator)?;
    let communicator = Writer::attach(&address).ok().map(|writer| Communicator::new(ring, writer, is_between_machines));
    let mut place = ALL[at].lock().unwrap_or_else(PoisonError::into_inner);
    match communicator {
        Some(communicator) if place.is_none() => {
            *place = Some(communicator);
            Some(at)
        }
        _ => {
            worker::close(ring);
            None
        }
    }
}

/// Closes it.
pub(super) fn close(at: usize) {
    let place = ALL.get(at).map(|place| place.lock().unwrap_or_else(PoisonError::into_inner).take());
    if let Some(mut communicator) = place.flatten() {
        communicator.finish();
        worker::close(communicator.ring);
    }
}

/// The host submits an operation.
pub(super) fn start(at: usize, work: Work) -> Option<EventHandle> {
    let ticket = with(at, |communicator| communicator.operations.start(work, after::ticks()))??;
    Some(EventHandle { communicator: at, ticket, is_channel: false })
}

/// A channel of an operation's kernel has begun.
pub(super) fn begin_channel(operation: EventHandle, gpu_ns: u64) -> Option<EventHandle> {
    let ticket = operation.ticket;
    let is_known = with(operation.communicator, |communicator| communicator.begin_channel(ticket, gpu_ns))?;
    is_known.then_some(EventHandle { is_channel: true, ..operation })
}

/// Notes the GPU's clock at a channel's end.
pub(super) fn channel_ended_at(channel: EventHandle, gpu_ns: u64) {
    with(channel.communicator, |communicator| communicator.operations.channel_ended_at(channel.ticket, gpu_ns));
}

/// A channel has ended.
pub(super) fn end_channel(channel: EventHandle) {
    with(channel.communicator, |communicator| communicator.end_channel(channel.ticket));
}

/// Runs `f` with a communicator while a session is open.
fn with<T>(at: usize, f: impl FnOnce(&mut Communicator) -> T) -> Option<T> {
    if session::state().0 != Status::Publishing {
        return None;
    }
    lock(ALL.get(at)?)?.as_mut().map(f)
}

/// Locks the communicator, if it is free soon.
fn lock(place: &Mutex<Option<Communicator>>) -> Option<MutexGuard<'_, Option<Communicator>>> {
    for _ in 0..TRIES {
        match place.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
    None
}

impl Communicator {
    fn new(ring: i32, writer: Writer, is_between_machines: bool) -> Self {
        const MANY: u64 = 1 << 40;
        let ns_per_tick = after::ticks_ns(MANY) as f64 / MANY as f64;
        Self {
            ring,
            writer,
            operations: Operations::new(ns_per_tick),
            is_between_machines,
            spans: [None; operations::KINDS],
            bytes: [None; operations::KINDS],
            untimed: None,
            last: 0,
            reported: 0,
        }
    }

    fn begin_channel(&mut self, ticket: Ticket, gpu_ns: u64) -> bool {
        let mut over = Vec::new();
        let is_known = self.operations.begin_channel(ticket, after::ticks(), gpu_ns, |done| over.push(done));
        self.write_all(over);
        is_known
    }

    fn end_channel(&mut self, ticket: Ticket) {
        if let Some(done) = self.operations.end_channel(ticket, after::ticks()) {
            self.write(&done);
        }
    }

    fn finish(&mut self) {
        let mut over = Vec::new();
        self.operations.finish(|done| over.push(done));
        self.write_all(over);
    }

    fn write_all(&mut self, mut over: Vec<FinishedOperation>) {
        over.sort_by_key(|done| done.end);
        over.iter().for_each(|done| self.write(done));
        if self.operations.untimed != self.reported {
            self.reported = self.operations.untimed;
            let new = || self.writer.name(NameKind::Counter, "collectives without a time");
            if let Some(name) = self.untimed.or_else(new) {
                self.untimed = Some(name);
                self.writer.counter(name, after::ticks(), self.reported as f64);
            }
        }
    }

    /// Writes an operation's span and its number of bytes.
    fn write(&mut self, done: &FinishedOperation) {
        let FinishedOperation { work, begin, end } = *done;
        self.last = self.last.max(end);
        let text = operations::display_name(work.kind);
        let new = || match self.is_between_machines {
            true => {
                let known = Reported::BetweenMachines;
                self.writer.name(NameKind::Reported(known), &format!("{}{text}", known.text()))
            }
            false => self.writer.name(NameKind::Span, text),
        };
        let span = self.spans[work.kind].or_else(new);
        self.spans[work.kind] = span;
        if let Some(span) = span {
            self.writer.span(span, begin, self.last);
        }
        let Some(bytes) = work.bytes else { return };
        let new = || self.writer.name(NameKind::Counter, &format!("{text} (bytes)"));
        let counter = self.bytes[work.kind].or_else(new);
        self.bytes[work.kind] = counter;
        if let Some(counter) = counter {
            self.writer.counter(counter, self.last, bytes as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_bits_round_trip_and_other_bits_are_rejected() {
        let ticket = Ticket { place: 255, number: u32::MAX };
        for handle in [false, true].map(|is_channel| EventHandle { communicator: MAX - 1, ticket, is_channel }) {
            assert_ne!(handle.to_bits(), 0);
            assert_eq!(EventHandle::from_bits(handle.to_bits()), Some(handle));
        }
        for bits in [0, 2, 0x7fff_1234_5678, 0xFF01, u64::MAX] {
            assert_eq!(EventHandle::from_bits(bits), None, "{bits:x}");
        }
    }
}
