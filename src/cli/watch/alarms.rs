//! Which causes are new: each is reported once when it has held for a while, and again only after it was gone for as long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::conditions::{Cause, Seen};

/// What has been reported, and what may be.
#[derive(Debug)]
pub(super) struct Alarms {
    holds_for: Duration,
    by_cause: BTreeMap<String, Alarm>,
}

/// One cause.
#[derive(Debug, Default)]
struct Alarm {
    is_reported: bool,
    /// Since when it has held without being reported, or has been gone since it was reported.
    differs_since: Option<Instant>,
}

impl Alarms {
    /// Nothing has been reported.
    pub(super) fn new(holds_for: Duration) -> Self {
        Self { holds_for, by_cause: BTreeMap::new() }
    }

    /// Takes what was seen at one look; returns the causes that are to be reported now.
    pub(super) fn update(&mut self, seen: Vec<Seen>, now: Instant) -> Vec<Cause> {
        let holding: Vec<String> = seen.iter().filter_map(Seen::holding).map(str::to_owned).collect();
        let mut new = Vec::new();
        for seen in seen {
            match seen {
                // Two conditions can be about the same finding, one of them only if it is major.
                Seen::Gone(id) if !holding.contains(&id) => _ = self.differs(&id, false, now),
                Seen::Gone(_) | Seen::Unknown => (),
                Seen::Holds(cause) => new.extend(self.differs(&cause.id, true, now).then_some(cause)),
            }
        }
        new
    }

    /// Whether a cause that holds is to be reported now.
    fn differs(&mut self, id: &str, holds: bool, now: Instant) -> bool {
        let alarm = self.by_cause.entry(id.to_owned()).or_default();
        if holds == alarm.is_reported {
            alarm.differs_since = None;
            return false;
        }
        let since = *alarm.differs_since.get_or_insert(now);
        if now.saturating_duration_since(since) < self.holds_for {
            return false;
        }
        *alarm = Alarm { is_reported: holds, differs_since: None };
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_new(alarms: &mut Alarms, holds: bool, at_s: u64, begin: Instant) -> bool {
        let seen = if holds { Seen::Holds(Cause::new("gap", "gap 12 %")) } else { Seen::Gone("gap".to_owned()) };
        !alarms.update(vec![seen], begin + Duration::from_secs(at_s)).is_empty()
    }

    #[test]
    fn cause_is_reported_once_after_it_has_held() {
        let (mut alarms, begin) = (Alarms::new(Duration::from_secs(10)), Instant::now());
        assert!(!is_new(&mut alarms, true, 0, begin) && !is_new(&mut alarms, true, 9, begin));
        assert!(is_new(&mut alarms, true, 10, begin));
        assert!((11..60).all(|at_s| !is_new(&mut alarms, true, at_s, begin)));
    }

    #[test]
    fn cause_that_comes_and_goes_is_not_reported_again() {
        let (mut alarms, begin) = (Alarms::new(Duration::from_secs(10)), Instant::now());
        let first = (0..100).find(|at_s| is_new(&mut alarms, true, *at_s, begin));
        assert_eq!(first, Some(10));
        assert!((100..200).all(|at_s| !is_new(&mut alarms, at_s % 2 == 0, at_s, begin)), "gone for a second each");
        assert!((200..211).all(|at_s| !is_new(&mut alarms, false, at_s, begin)));
        let again = (220..300).find(|at_s| is_new(&mut alarms, true, *at_s, begin));
        assert_eq!(again, Some(230), "it was gone for 10 s");
    }

    #[test]
    fn what_is_not_known_changes_nothing() {
        let (mut alarms, begin) = (Alarms::new(Duration::ZERO), Instant::now());
        assert!(is_new(&mut alarms, true, 0, begin));
        assert!(alarms.update(vec![Seen::Unknown], begin).is_empty());
        assert!(!is_new(&mut alarms, true, 2, begin));
    }
}
