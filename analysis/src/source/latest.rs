//! How far a living session is, from the end of its newest segment: for lists, which read no session as a whole.

use std::time::Duration;

use gnntop_sensors::monotonic_ns;
use gnntop_sessions::SessionDir;
use gnntop_sessions::discover::ListedSession;
use gnntop_wire::{Event, Item, SessionInfo, Step, StreamReader};

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
        let clock = session.copy.as_ref().and_then(|copy| copy.clock);
        let now_ns = clock.map_or_else(
            || now_ns(&session.info),
            |clock| monotonic_ns().saturating_add_signed(clock.offset_ns.saturating_neg()),
        );
        Some(NewestStep::from_steps(&steps_in(&tail))?.at(now_ns))
    }
}

/// The newest step, and for how long none may follow before the program counts as standing still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewestStep {
    /// Its ordinal, from 1.
    pub(crate) step: u64,
    end_ns: u64,
    /// `None` where too few steps are known.
    patience: Option<Duration>,
}

impl NewestStep {
    /// Of these steps; `None` without one.
    pub(crate) fn from_steps(steps: &[Step]) -> Option<Self> {
        let newest = steps.iter().max_by_key(|step| step.end_ns)?;
        let mut took_ns: Vec<u64> = steps.iter().map(|step| step.end_ns.saturating_sub(step.start_ns)).collect();
        let middle = took_ns.len() / 2;
        let usual = Duration::from_nanos(*took_ns.select_nth_unstable(middle).1);
        let patience = (steps.len() >= KNOWN_STEPS).then(|| (usual * USUAL_STEPS).max(FLOOR));
        Some(Self { step: newest.step.0, end_ns: newest.end_ns, patience })
    }

    /// What is known at this time.
    pub(crate) fn at(&self, now_ns: u64) -> Latest {
        let still = Duration::from_nanos(now_ns.saturating_sub(self.end_ns));
        let is_long = self.patience.is_some_and(|patience| still >= patience);
        Latest { step: self.step, still: is_long.then_some(still) }
    }
}

/// The time by a session's clock. By another machine's clock no time has passed.
pub(crate) fn now_ns(info: &SessionInfo) -> u64 {
    if has_our_clock(info) { monotonic_ns() } else { 0 }
}

/// The steps in a part of a segment.
pub(crate) fn steps_in(part: &[u8]) -> Vec<Step> {
    let mut reader = StreamReader::new();
    reader.fill(part);
    let mut steps: Vec<Step> = Vec::new();
    while let Some(item) = reader.next() {
        if let Item::Block(_, events) = item {
            let step = |event| if let Event::Step(step) = event { Some(step) } else { None };
            steps.extend(events.into_iter().filter_map(step));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{START_NS, STEP_NS, segment, steps};
    use super::*;

    #[test]
    fn newest_step_is_read_from_a_cut_segment() {
        let bytes = [segment("pna", 7, 0), steps(0..40), steps(40..80)].concat();
        let end_ns = START_NS + 80 * STEP_NS;
        let latest = |bytes: &[u8], now_ns| Some(NewestStep::from_steps(&steps_in(bytes))?.at(now_ns));
        let after = |seconds: u64| latest(&bytes[100..], end_ns + seconds * 1_000_000_000).unwrap();
        assert_eq!(after(2), Latest { step: 80, still: None });
        assert_eq!(after(12).still, Some(Duration::from_secs(12)));
        assert_eq!(latest(&segment("pna", 7, 0), end_ns), None);
        let few = [segment("pna", 7, 0), steps(0..2)].concat();
        assert_eq!(latest(&few, end_ns + 60_000_000_000).unwrap().still, None, "a step may take that long");
    }
}
