//! The worker's side of a ring.

use std::sync::atomic::Ordering;

use gnntop_wire::NameKind;

use super::ring::{EventKind, Ring, RingError, RingEvent};

/// Records into the ring of another process. A ring has one writer. Never waits and never allocates.
#[derive(Debug)]
pub struct Writer {
    ring: Ring,
}

/// A name in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingName(u32);

impl Writer {
    /// Attaches to the ring with this address, from [`Ring::address`].
    ///
    /// # Errors
    /// The ring cannot be reached, or already has a writer.
    pub fn attach(address: &str) -> Result<Self, RingError> {
        let ring = Ring::open(address)?;
        ring.shared().claim(std::process::id())?;
        Ok(Self { ring })
    }

    /// Leaves an address in this process's memory for the process that made the ring, which may be allowed to read it.
    pub fn leave_address(&self, address: u64) {
        self.ring.shared().address_in_writer.store(address, Ordering::Release);
    }

    /// Registers a name; to be called once for each. `None` if there are too many.
    pub fn name(&mut self, kind: NameKind, text: &str) -> Option<RingName> {
        self.ring.shared().add_name(kind, text).map(RingName)
    }

    /// Counts an event for which there is no name.
    pub fn drop_one(&self) {
        self.ring.shared().drop_one();
    }

    /// Records a span, in ticks of [`crate::after::ticks`].
    pub fn span(&mut self, name: RingName, begin: u64, end: u64) {
        self.push(EventKind::Span, name, begin, end.max(begin));
    }

    /// Records a counter's value, in ticks of [`crate::after::ticks`].
    pub fn counter(&mut self, name: RingName, at: u64, value: f64) {
        self.push(EventKind::Counter, name, at, value.to_bits());
    }

    /// Records a mark, with a value if it has one.
    pub fn mark(&mut self, name: RingName, at: u64, value: Option<f64>) {
        let kind = if value.is_some() { EventKind::MarkWithValue } else { EventKind::Mark };
        self.push(kind, name, at, value.unwrap_or(0.0).to_bits());
    }

    /// Records a mark at the end of something, in ticks of [`crate::after::ticks`].
    pub fn timed_mark(&mut self, name: RingName, begin: u64, end: u64) {
        self.push(EventKind::TimedMark, name, begin, end.max(begin));
    }

    fn push(&mut self, kind: EventKind, name: RingName, at: u64, other: u64) {
        self.ring.shared().push(RingEvent { kind, name: name.0, at, other });
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.ring.close();
    }
}
