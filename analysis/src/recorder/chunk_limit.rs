//! When a chunk of a recording ends: after a number of bytes or of events, whichever comes first.

use super::options::RecorderOptions;

/// A number of events ends a chunk only if the chunk is many times as large as its summaries, which would otherwise be
/// the larger part.
const TIMES_TOTALS: u64 = 64;

/// How long a chunk is.
pub(super) struct ChunkLimit {
    /// Bytes of a chunk; `None` if there are no chunks.
    enough_bytes: Option<u64>,
    least_events: u64,
    /// Events of a chunk: by the length of the last chunk's events, they take some times what its end took.
    enough_events: u64,
    /// Events since the last chunk ended.
    events: u64,
    /// Where the last chunk ended, and the number of chunks.
    from: u64,
    ended: u64,
}

impl ChunkLimit {
    pub(super) fn new(options: &RecorderOptions) -> Self {
        Self {
            enough_bytes: (options.chunk_bytes < u64::MAX).then_some(options.chunk_bytes),
            least_events: options.chunk_events,
            enough_events: options.chunk_events,
            events: 0,
            from: 0,
            ended: 0,
        }
    }

    /// No chunk ends any more.
    pub(super) fn stop(&mut self) {
        self.enough_bytes = None;
    }

    /// Whether chunks end at all.
    pub(super) fn is_on(&self) -> bool {
        self.enough_bytes.is_some()
    }

    /// Notes that this many more events were recorded.
    pub(super) fn add(&mut self, events: u64) {
        self.events = self.events.saturating_add(events);
    }

    /// Whether the chunk has enough events, written or not.
    pub(super) fn has_enough_events(&self) -> bool {
        self.is_on() && self.events >= self.enough_events
    }

    /// Whether the chunk is long enough when this many bytes have been written in total.
    pub(super) fn is_reached(&self, written_bytes: u64) -> bool {
        self.has_enough_events() || self.enough_bytes.is_some_and(|enough| self.len(written_bytes) >= enough)
    }

    /// Bytes of the chunk so far.
    pub(super) fn len(&self, written_bytes: u64) -> u64 {
        written_bytes.saturating_sub(self.from)
    }

    /// Number of chunks that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// Notes the end of a chunk of this many bytes, followed by `summaries` bytes, of which `whole` are the summary of
    /// everything so far.
    pub(super) fn end(&mut self, chunk: u64, summaries: u64, whole: u64) {
        let worth = whole.saturating_mul(TIMES_TOTALS).saturating_mul(self.events) / chunk.max(1);
        self.enough_events = worth.max(self.least_events);
        (self.events, self.ended) = (0, self.ended + 1);
        self.from += chunk + summaries;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due() -> ChunkLimit {
        ChunkLimit::new(&RecorderOptions { chunk_bytes: 1000, chunk_events: 50, ..RecorderOptions::default() })
    }

    #[test]
    fn chunk_ends_after_bytes_or_events() {
        let mut due = due();
        assert!(!due.is_reached(999) && due.is_reached(1000));
        due.add(49);
        assert!(!due.is_reached(999));
        due.add(1);
        assert!(due.is_reached(0));
        due.end(100, 20, 0);
        assert!(!due.is_reached(1119) && due.is_reached(1120) && due.ended() == 1);
        due.stop();
        due.add(1000);
        assert!(!due.is_reached(u64::MAX - 1));
    }

    #[test]
    fn chunk_length_grows_with_summary() {
        let mut due = due();
        due.add(50);
        // Two bytes an event, so that 64 times 10 bytes are 320 events.
        due.end(100, 30, 10);
        due.add(319);
        assert!(!due.is_reached(130));
        due.add(1);
        assert!(due.is_reached(130));
        due.end(640, 30, 1);
        due.add(50);
        assert!(due.is_reached(800), "and no longer once they are short");
    }
}
