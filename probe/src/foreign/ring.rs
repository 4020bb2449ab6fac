//! The ring itself: the layout of the shared memory, and how events get in and out.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use gnntop_wire::{NameKind, TrackRole};

use super::memory::Memory;
use crate::after;

/// Number of events that a ring holds: 128 KiB.
pub(super) const EVENTS: usize = 1 << 12;
/// Most names that a worker may use.
pub(super) const NAMES: usize = 64;
/// Longest text, in bytes; longer ones are truncated.
pub(super) const TEXT_BYTES: usize = 200;
/// "gnntop" and the version of the layout below.
const MAGIC: u64 = u64::from_be_bytes(*b"gnntop\0\x03");

/// Why a ring could not be made or attached to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The text is not a ring's address.
    #[error("{0:?} is not the address of a ring")]
    Address(String),
    /// The system did not provide the memory.
    #[error("the system provides no shared memory")]
    Memory(#[from] io::Error),
    /// The memory does not hold the ring with this address, or the ring has another version.
    #[error("a different ring, or one of another version of gnntop")]
    Other,
    /// Another process already records there.
    #[error("the ring already has a writer")]
    Taken,
}

/// The contents of the shared memory. All fields are atomic: the other process may write anything at any time.
#[repr(C)]
pub(super) struct SharedRing {
    magic: AtomicU64,
    id: AtomicU64,
    /// The worker's process id; 0 until it has attached.
    writer: AtomicU32,
    /// An address in the worker's memory; 0 until it has left one.
    pub(super) address_in_writer: AtomicU64,
    closed: AtomicU32,
    pub(super) dropped: AtomicU64,
    name_count: AtomicU32,
    written: CacheLine,
    read: CacheLine,
    names: [NameSlot; NAMES],
    events: [[AtomicU64; 4]; EVENTS],
}

/// A count that only one side changes, on its own cache line.
#[repr(C, align(64))]
struct CacheLine(AtomicU64);

#[repr(C)]
struct NameSlot {
    kind: AtomicU64,
    len: AtomicU32,
    text: [AtomicU8; TEXT_BYTES],
}

/// An event of a worker; times are ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RingEvent {
    pub(super) kind: EventKind,
    /// Index of the name in the ring.
    pub(super) name: u32,
    /// Begin of a span or of what a timed mark ends, else the instant.
    pub(super) at: u64,
    /// End of a span or instant of a timed mark, else the bits of the value.
    pub(super) other: u64,
}

/// What the other process has written is no event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Nonsense;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    Span,
    Counter,
    Mark,
    MarkWithValue,
    TimedMark,
}

impl EventKind {
    fn from_code(code: u64) -> Option<Self> {
        const ALL: [EventKind; 5] =
            [EventKind::Span, EventKind::Counter, EventKind::Mark, EventKind::MarkWithValue, EventKind::TimedMark];
        ALL.get(usize::try_from(code).ok()?).copied()
    }
}

/// A ring that a worker records into, as seen from either process.
#[derive(Debug)]
pub struct Ring {
    memory: Arc<Memory>,
    name: String,
    role: TrackRole,
    /// When it was made, in ticks of [`crate::after::ticks`]: no worker records anything that was before.
    made: u64,
}

impl Ring {
    /// Makes a ring for a worker whose track is called `name`.
    ///
    /// # Errors
    /// The system did not provide the memory.
    pub fn create(name: &str) -> Result<Self, RingError> {
        let ring = Self::from_memory(Memory::create(size_of::<SharedRing>())?, name);
        let id = RandomState::new().hash_one(std::process::id());
        ring.shared().id.store(id, Ordering::Relaxed);
        ring.shared().magic.store(MAGIC, Ordering::Release);
        Ok(ring)
    }

    /// Sets the track's role, [`TrackRole::Loader`] by default.
    #[must_use]
    pub fn with_role(mut self, role: TrackRole) -> Self {
        self.role = role;
        self
    }

    /// Opens the same ring again, in another process or in this one.
    ///
    /// # Errors
    /// The address is not a ring's, or the ring cannot be reached.
    pub(super) fn open(address: &str) -> Result<Self, RingError> {
        let wrong = || RingError::Address(address.to_owned());
        let mut parts = address.split(':');
        let mut next = || parts.next().ok_or_else(wrong);
        let (process, file, id) = (next()?, next()?, next()?);
        let process: u32 = process.parse().map_err(|_| wrong())?;
        let file: u32 = file.parse().map_err(|_| wrong())?;
        let id = u64::from_str_radix(id, 16).map_err(|_| wrong())?;
        // A forked child inherits the file, and may not be allowed to open its parent's.
        let mut last = RingError::Other;
        for path in [format!("/proc/{process}/fd/{file}"), format!("/proc/self/fd/{file}")] {
            match Memory::open(&path, size_of::<SharedRing>()) {
                Ok(memory) => {
                    let ring = Self::from_memory(memory, "");
                    let (magic, found) = (&ring.shared().magic, &ring.shared().id);
                    if magic.load(Ordering::Acquire) == MAGIC && found.load(Ordering::Relaxed) == id {
                        return Ok(ring);
                    }
                }
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }

    fn from_memory(memory: Memory, name: &str) -> Self {
        Self { memory: Arc::new(memory), name: name.to_owned(), role: TrackRole::Loader, made: after::ticks() }
    }

    /// The address by which the worker attaches: text of less than 48 bytes.
    pub fn address(&self) -> String {
        let id = self.shared().id.load(Ordering::Relaxed);
        format!("{}:{}:{id:016x}", std::process::id(), self.memory.file_number())
    }

    /// Closes the descriptor by which the worker has found the ring.
    pub(super) fn close_file(&self) {
        self.memory.close_file();
    }

    /// Closes the ring: nothing is recorded after what it holds.
    pub fn close(&self) {
        self.shared().closed.store(1, Ordering::Release);
    }

    /// The process that records here and the address in its own memory that it has left, while it does. What it left is not
    /// trusted: it may be any number.
    pub fn address_in_writer(&self) -> Option<(u32, u64)> {
        let address = self.shared().address_in_writer.load(Ordering::Acquire);
        let writer = self.shared().writer().filter(|_| address != 0 && !self.shared().is_closed())?;
        Some((writer, address))
    }

    /// The same ring, for the reader.
    pub(crate) fn share(&self) -> Self {
        Self { memory: Arc::clone(&self.memory), name: self.name.clone(), ..*self }
    }

    pub(super) fn made(&self) -> u64 {
        self.made
    }

    pub(super) fn role(&self) -> TrackRole {
        self.role
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shared(&self) -> &SharedRing {
        // SAFETY: the memory is as long as `SharedRing`, begins at a page boundary, was initially zero and is not unmapped
        // while `self` lives. Every field is an atomic, for which any bytes are valid, from any writer.
        unsafe { self.memory.start().cast::<SharedRing>().as_ref() }
    }
}

impl SharedRing {
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
    }

    /// The process that records here.
    pub(super) fn writer(&self) -> Option<u32> {
        Some(self.writer.load(Ordering::Acquire)).filter(|writer| *writer != 0)
    }

    /// Makes `process` the writer.
    pub(super) fn claim(&self, process: u32) -> Result<(), RingError> {
        let claimed = self.writer.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire);
        claimed.map(drop).map_err(|_| RingError::Taken)
    }

    /// Adds a name. Only the writer may call this. `None` if there are too many.
    pub(super) fn add_name(&self, kind: NameKind, text: &str) -> Option<u32> {
        let index = self.name_count.load(Ordering::Relaxed);
        let slot = self.names.get(index as usize)?;
        let text = &text[..text.floor_char_boundary(TEXT_BYTES)];
        slot.kind.store(kind.bits(), Ordering::Relaxed);
        slot.len.store(text.len() as u32, Ordering::Relaxed);
        for (to, from) in slot.text.iter().zip(text.bytes()) {
            to.store(from, Ordering::Relaxed);
        }
        self.name_count.store(index + 1, Ordering::Release);
        Some(index)
    }

    /// A name that the writer has added.
    pub(super) fn name(&self, index: usize) -> Option<(NameKind, String)> {
        if index >= self.name_count.load(Ordering::Acquire) as usize {
            return None;
        }
        let slot = self.names.get(index)?;
        let len = (slot.len.load(Ordering::Relaxed) as usize).min(TEXT_BYTES);
        let bytes: Vec<u8> = slot.text.iter().take(len).map(|byte| byte.load(Ordering::Relaxed)).collect();
        let kind = NameKind::from_bits(slot.kind.load(Ordering::Relaxed));
        Some((kind, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Adds an event, or counts it as dropped if the ring is full. Only the writer may call this.
    pub(super) fn push(&self, event: RingEvent) {
        let written = self.written.0.load(Ordering::Relaxed);
        if written.wrapping_sub(self.read.0.load(Ordering::Acquire)) >= EVENTS as u64 {
            return self.drop_one();
        }
        let kind_and_name = (event.kind as u64) << 32 | u64::from(event.name);
        let slot = &self.events[written as usize % EVENTS];
        for (to, from) in slot.iter().zip([event.at, event.other, kind_and_name]) {
            to.store(from, Ordering::Relaxed);
        }
        self.written.0.store(written.wrapping_add(1), Ordering::Release);
    }

    /// Counts an event for which the writer has no room. Only the writer may call this.
    pub(super) fn drop_one(&self) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        self.dropped.store(dropped.wrapping_add(1), Ordering::Relaxed);
    }

    /// Writes what is no event, as fast as the reader can read it.
    #[cfg(test)]
    pub(super) fn write_nonsense(&self) {
        let read = self.read.0.load(Ordering::Relaxed);
        self.events.iter().for_each(|event| event[2].store(u64::MAX, Ordering::Relaxed));
        self.written.0.store(read.wrapping_add(EVENTS as u64), Ordering::Relaxed);
    }

    /// Takes the oldest event, or nonsense in place of one. Only the reader may call this.
    pub(super) fn pop(&self) -> Option<Result<RingEvent, Nonsense>> {
        let (read, written) = (self.read.0.load(Ordering::Relaxed), self.written.0.load(Ordering::Acquire));
        let waiting = written.wrapping_sub(read);
        if waiting == 0 {
            return None;
        }
        if waiting > EVENTS as u64 {
            self.read.0.store(written, Ordering::Release);
            return Some(Err(Nonsense));
        }
        let [at, other, kind_and_name, _] =
            std::array::from_fn(|word| self.events[read as usize % EVENTS][word].load(Ordering::Relaxed));
        self.read.0.store(read.wrapping_add(1), Ordering::Release);
        let event = |kind| RingEvent { kind, name: kind_and_name as u32, at, other };
        Some(EventKind::from_code(kind_and_name >> 32).map(event).ok_or(Nonsense))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64) -> RingEvent {
        RingEvent { kind: EventKind::Mark, name: 0, at, other: 0 }
    }

    #[test]
    fn ring_round_trip() {
        let ring = Ring::create("loader 0").unwrap();
        let other = Ring::open(&ring.address()).unwrap();
        other.shared().claim(7).unwrap();
        assert!(other.shared().claim(8).is_err(), "one writer");
        let micro_batch = NameKind::Reported(gnntop_wire::Reported::MicroBatch(u32::MAX));
        assert_eq!(other.shared().add_name(NameKind::Span, "fetch"), Some(0));
        assert_eq!(other.shared().add_name(micro_batch, "pass"), Some(1));
        let sent = RingEvent { kind: EventKind::Span, name: 0, at: 5, other: 9 };
        other.shared().push(sent);
        drop(other);
        assert_eq!(ring.shared().writer(), Some(7));
        assert_eq!(ring.shared().name(0), Some((NameKind::Span, "fetch".to_owned())));
        assert_eq!(ring.shared().name(1), Some((micro_batch, "pass".to_owned())));
        assert_eq!(ring.shared().name(2), None);
        assert_eq!((ring.shared().pop(), ring.shared().pop()), (Some(Ok(sent)), None));
    }

    #[test]
    fn a_full_ring_drops_the_newest_and_counts_it() {
        let ring = Ring::create("x").unwrap();
        for round in 0..3 {
            (0..EVENTS as u64 + 5).for_each(|at| ring.shared().push(event(at)));
            let times: Vec<u64> = std::iter::from_fn(|| ring.shared().pop()).map(|event| event.unwrap().at).collect();
            assert_eq!(times, (0..EVENTS as u64).collect::<Vec<_>>());
            assert_eq!(ring.shared().dropped.load(Ordering::Relaxed), 5 * (round + 1));
        }
    }

    #[test]
    fn events_cross_threads_in_order() {
        let ring = Ring::create("x").unwrap();
        let other = ring.share();
        let writer = std::thread::spawn(move || {
            for at in 0..100_000 {
                while at - other.shared().read.0.load(Ordering::Relaxed) >= EVENTS as u64 {
                    std::thread::yield_now();
                }
                other.shared().push(event(at));
            }
        });
        let mut expected = 0;
        while expected < 100_000 {
            match ring.shared().pop() {
                Some(event) => {
                    assert_eq!(event.unwrap().at, expected);
                    expected += 1;
                }
                None => std::thread::yield_now(),
            }
        }
        writer.join().unwrap();
    }

    #[test]
    fn open_refuses_invalid_addresses() {
        let ring = Ring::create("x").unwrap();
        assert!(ring.address().len() < 48);
        let other_id = ring.address().replace(char::is_alphabetic, "0");
        for address in ["", "1", "1:2", "x:1:0", "1:-1:0", "0:0:zz", &format!("{other_id}0")] {
            assert!(Ring::open(address).is_err(), "{address}");
        }
    }

    #[test]
    fn ring_error_names_cause_once() {
        let error = RingError::from(io::Error::from(io::ErrorKind::OutOfMemory));
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(!error.to_string().contains(&cause), "{error}: {cause}");
    }

    #[test]
    fn garbage_from_writer_is_harmless() {
        let ring = Ring::create("x").unwrap();
        let shared = ring.shared();
        shared.written.0.store(u64::MAX, Ordering::Relaxed);
        assert_eq!((shared.pop(), shared.pop()), (Some(Err(Nonsense)), None), "and it goes on from there");
        shared.events[EVENTS - 1][2].store(u64::MAX, Ordering::Relaxed);
        shared.written.0.store(0, Ordering::Relaxed);
        assert_eq!((shared.pop(), shared.pop()), (Some(Err(Nonsense)), None), "an unknown kind");
        shared.name_count.store(u32::MAX, Ordering::Relaxed);
        shared.names[0].len.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(shared.name(0).unwrap().1.len(), TEXT_BYTES);
        assert_eq!(shared.name(NAMES), None);
        assert_eq!(shared.add_name(NameKind::Span, "y"), None);
    }
}
