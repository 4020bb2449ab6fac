//! How far a living session is, from the end of its newest segment: for lists, which read no session as a whole.

use std::time::Duration;

use gnntop_sensors::monotonic_ns;
use gnntop_sessions::SessionDir;
use gnntop_sessions::discover::ListedSession;
use gnntop_wire::{Event, Item, Step, StreamReader};

use super::process::has_our_clock;

/// Bytes at the end that are read.
const TAIL_LEN: u64 = 256 * 1024;
/// Steps after which the usual one is known.
const KNOWN_STEPS: usize = 5;
/// A program that does no step hangs after this many usual ones...
const USUAL_STEPS: u32 = 10;
/// ...and not before this.
const FLOOR: Duration = Duration::from_secs(3);

/// The newest step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latest {
    /// Its ordinal, from 1.
    pub step: u64,
    /// How long ago it ended, if that is long for this program; it hangs, or does something else.
    pub still: Option<Duration>,
}

impl Latest {
    /// Reads it; `None` if there is no step in the end of the newest segment.
    pub fn read(session: &ListedSession) -> Option<Self> {
        let tail = SessionDir::open(&session.dir).ok()?.tail(TAIL_LEN).ok()?;
        // By another machine's clock no time has passed.
        Self::from_tail(&tail, if has_our_clock(&session.info) { monotonic_ns() } else { 0 })
    }

    fn from_tail(tail: &[u8], now_ns: u64) -> Option<Self> {
        let mut reader = StreamReader::new();
        reader.fill(tail);
        let mut steps: Vec<Step> = Vec::new();
        while let Some(item) = reader.next() {
            if let Item::Block(_, events) = item {
                steps.extend(
                    events
                        .into_iter()
                        .filter_map(|event| if let Event::Step(step) = event { Some(step) } else { None }),
                );
            }
        }
        let newest = steps.iter().max_by_key(|step| step.end_ns).copied()?;
        let mut took_ns: Vec<u64> = steps.iter().map(|step| step.end_ns.saturating_sub(step.start_ns)).collect();
        let middle = took_ns.len() / 2;
        let usual = Duration::from_nanos(*took_ns.select_nth_unstable(middle).1);
        let still = Duration::from_nanos(now_ns.saturating_sub(newest.end_ns));
        let is_long = steps.len() >= KNOWN_STEPS && still >= (usual * USUAL_STEPS).max(FLOOR);
        Some(Self { step: newest.step.0, still: is_long.then_some(still) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{START_NS, STEP_NS, segment, steps};
    use super::*;

    #[test]
    fn newest_step_is_read_from_a_cut_segment() {
        let bytes = [segment("pna", 7, 0), steps(0..40), steps(40..80)].concat();
        let end_ns = START_NS + 80 * STEP_NS;
        let after = |seconds: u64| Latest::from_tail(&bytes[100..], end_ns + seconds * 1_000_000_000).unwrap();
        assert_eq!(after(2), Latest { step: 80, still: None });
        assert_eq!(after(12).still, Some(Duration::from_secs(12)));
        assert_eq!(Latest::from_tail(&segment("pna", 7, 0), end_ns), None);
        let few = [segment("pna", 7, 0), steps(0..2)].concat();
        assert_eq!(Latest::from_tail(&few, end_ns + 60_000_000_000).unwrap().still, None, "a step may take that long");
    }
}
