//! What a thread records before there is a session: the newest 2,048 events are kept, and written once it has a track.

use std::sync::atomic::{AtomicUsize, Ordering};

use gnntop_probe::after;

use crate::names;
use crate::session;

/// Most events kept by a thread.
const MAX_EVENTS: usize = 2048;
/// Most threads that keep events: 80 KiB each.
const MAX_THREADS: usize = 32;

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// An event, with times in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EarlyEvent {
    Span {
        name: i32,
        begin: u64,
        end: u64,
    },
    Counter {
        name: i32,
        at: u64,
        value: f64,
    },
    Mark {
        name: i32,
        at: u64,
        value: Option<f64>,
    },
    /// A mark at the end of something.
    TimedMark {
        name: i32,
        begin: u64,
        end: u64,
    },
}

impl EarlyEvent {
    /// The number of its name.
    pub(crate) fn name(self) -> i32 {
        let (Self::Span { name, .. }
        | Self::Counter { name, .. }
        | Self::Mark { name, .. }
        | Self::TimedMark { name, .. }) = self;
        name
    }

    /// When it had ended, in ticks.
    pub(crate) fn ended(self) -> u64 {
        match self {
            Self::Span { end, .. } | Self::TimedMark { end, .. } => end,
            Self::Counter { at, .. } | Self::Mark { at, .. } => at,
        }
    }

    /// Records it on the calling thread's track.
    pub(crate) fn record(self) {
        let Some(name) = names::get(self.name()) else { return };
        let name = name.probe();
        match self {
            Self::Span { begin, end, .. } => after::span(name, begin, end),
            Self::Counter { at, value, .. } => after::counter(name, at, value),
            Self::Mark { at, value, .. } => after::mark(name, at, value),
            Self::TimedMark { begin, end, .. } => after::timed_mark(name, begin, end),
        }
    }
}

/// The newest events of a thread.
#[derive(Debug)]
pub(crate) struct EarlyEvents {
    events: Vec<EarlyEvent>,
    /// Index of the oldest event once all places are taken; the next one replaces it.
    oldest: usize,
    /// How many were replaced.
    lost: u64,
    /// How many count as missing unless they are written.
    counted: u64,
    /// The process of these events: a forked child has a copy, but they are not its own.
    process: u32,
}

impl EarlyEvents {
    /// Reserves room, unless too many threads have done so.
    pub(crate) fn new() -> Option<Self> {
        if THREADS.fetch_add(1, Ordering::Relaxed) >= MAX_THREADS {
            THREADS.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self {
            events: Vec::with_capacity(MAX_EVENTS),
            oldest: 0,
            lost: 0,
            counted: 0,
            process: session::generation(),
        })
    }

    pub(crate) fn push(&mut self, event: EarlyEvent, is_missing_unless_written: bool) {
        self.forget_parent();
        if self.events.len() < MAX_EVENTS {
            let counted = u64::from(is_missing_unless_written);
            session::count_kept(counted);
            self.counted += counted;
            self.events.push(event);
        } else if let Some(oldest) = self.events.get_mut(self.oldest) {
            self.lost += 1;
            *oldest = event;
            self.oldest = (self.oldest + 1) % MAX_EVENTS;
        }
    }

    fn forget_parent(&mut self) {
        if self.process != session::generation() {
            self.process = session::generation();
            self.events.clear();
            (self.oldest, self.lost, self.counted) = (0, 0, 0);
        }
    }

    /// How many there was no room for.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// All events, oldest first: they are written now.
    pub(crate) fn in_order(&mut self) -> impl Iterator<Item = EarlyEvent> {
        self.forget_parent();
        session::count_written(std::mem::take(&mut self.counted));
        let (newer, older) = self.events.split_at(self.oldest);
        older.iter().chain(newer).copied()
    }
}

impl Drop for EarlyEvents {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_events_are_kept_in_order() {
        let mut early = EarlyEvents::new().unwrap();
        let event = |at| EarlyEvent::Mark { name: 1, at, value: None };
        let total = MAX_EVENTS as u64 * 2 + 7;
        (0..total).for_each(|at| early.push(event(at), false));
        let kept: Vec<EarlyEvent> = early.in_order().collect();
        let expected: Vec<EarlyEvent> = (total - MAX_EVENTS as u64..total).map(event).collect();
        assert_eq!(kept, expected);
        assert_eq!(early.events.capacity(), MAX_EVENTS, "never grown");
        assert_eq!(early.lost(), total - MAX_EVENTS as u64);
    }
}
