//! Events that no table had room for: counted, and said in facts of the session.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::session;

/// What there was too much of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LostEvent {
    /// Spans inside of spans.
    Deep = 0,
    /// Threads.
    Thread = 1,
    /// Events before there is a session.
    Early = 2,
}

const FACTS: [&str; 3] = [
    "not recorded: spans nested too deep",
    "not recorded: events of more threads than have a track",
    "not recorded: the oldest events before the session",
];

static COUNTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Counts an event. The fact follows at each power of two, since a program that loses millions must not pay for each, and
/// only if that takes no wait.
#[cold]
pub(crate) fn count(lost: LostEvent) {
    let at = lost as usize;
    let count = COUNTS[at].fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_power_of_two() {
        session::fact_at_once(FACTS[at], &format!("{count} or more"));
    }
}

/// Says the exact counts, for an end of the session.
pub(crate) fn publish_counts() {
    for (fact, count) in FACTS.iter().zip(&COUNTS) {
        let count = count.swap(0, Ordering::Relaxed);
        if count > 0 {
            session::with_session(|session| session.fact(fact, &count.to_string()));
        }
    }
}
