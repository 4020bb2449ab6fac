//! The times during which nothing could be written: what the lock file says while they last, and a fact afterwards.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use gnntop_sessions::Stopped;
use gnntop_wire::Fact;
use rustix::time::ClockId;

use crate::clock;
use crate::warning::Warning;

/// What the fact is about.
const NOT_RECORDED: &str = "what happened while nothing could be written";

/// What could not be written so far.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// The one that lasts.
    now: Option<(Instant, Stopped)>,
    total: Duration,
}

impl Outages {
    /// Begins one, unless it lasts already. Returns since when and why.
    pub(crate) fn begin(&mut self, warning: &Warning) -> &Stopped {
        let stopped = || Stopped { wall_ns: clock::system_ns(ClockId::Realtime), reason: reason(warning) };
        &self.now.get_or_insert_with(|| (Instant::now(), stopped())).1
    }

    /// Ends the one that lasts: a fact with the length of all of them, the end of the last one, and its reason.
    pub(crate) fn end(&mut self) -> Option<Fact> {
        let (since, Stopped { reason, .. }) = self.now.take()?;
        self.total += since.elapsed();
        let until = time_of_day(clock::system_ns(ClockId::Realtime));
        let amount = format!("{:.1} s, until {until} UTC: {reason}", self.total.as_secs_f64());
        Some(Fact::NotRecorded { what: NOT_RECORDED.to_owned(), amount })
    }
}

fn reason(warning: &Warning) -> String {
    match warning {
        Warning::Write { error, .. } => match error.kind() {
            ErrorKind::StorageFull => "the disk was full".to_owned(),
            ErrorKind::QuotaExceeded => "the disk quota was used up".to_owned(),
            ErrorKind::FileTooLarge => "a limit on the size of files was reached".to_owned(),
            _ => error.to_string(),
        },
        other => other.to_string(),
    }
}

/// As hours, minutes and seconds.
fn time_of_day(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_add_up_and_the_first_failure_says_since_when() {
        let full = Warning::Write { path: "x".into(), error: ErrorKind::StorageFull.into() };
        let mut outages = Outages::default();
        assert_eq!(outages.end(), None);
        let since = outages.begin(&full).wall_ns;
        assert_eq!(outages.begin(&full).wall_ns, since);
        outages.end().unwrap();
        outages.total = Duration::from_millis(2100);
        outages.begin(&full);
        let text = outages.end().unwrap().text();
        assert!(text.starts_with("2.1 s, until ") && text.ends_with(" UTC: the disk was full"), "{text}");
        assert_eq!(time_of_day(1_700_000_000_999_999_999), "22:13:20");
    }
}
