//! What stands in a copy of a session in place of its lock: a small file that is written again and again as long as the
//! program lives and is heard of. It needs no lock, which file systems of several machines may not have, and no process.

use std::io::Read as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gnntop_wire::ClockOffset;
use gnntop_wire::text::clean;

use crate::error::Error;
use crate::layout;
use crate::platform::{Access, Directory};
use crate::private_dir::{PrivateDir, open_regular};
use crate::publisher::{CopyState, Publisher, Stopped};

/// Time between two heartbeats.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Without a heartbeat for this long, a copy is silent: three are missing.
const SILENT: Duration = Duration::from_secs(30);
/// Without one for this long, the program counts as gone.
const GONE: Duration = Duration::from_secs(600);
/// Longest file that is read.
const MAX_LEN: u64 = 4096;
/// How the file begins.
const HEADING: &str = "gnntop-alive 1";

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// When it was written, in nanoseconds since 1970 by the writer's clock.
    pub wall_ns: u64,
    /// Since when the program cannot write its stream, if it reports that.
    pub stopped: Option<Stopped>,
    /// Why nothing newer comes, as words to follow the host's name: "is not reached: connection timed out".
    pub trouble: Option<String>,
    /// From the program's monotonic clock to that of the machine which has the copy, if they were compared.
    pub clock: Option<ClockOffset>,
}

impl Heartbeat {
    /// One of this moment.
    pub fn now() -> Self {
        let wall_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { wall_ns: u64::try_from(wall_ns).unwrap_or(u64::MAX), ..Self::default() }
    }

    /// Puts it into a copy, in place of the one before.
    pub(crate) fn write(&self, copy: &PrivateDir) -> Result<(), Error> {
        copy.replace(layout::ALIVE_FILE, layout::NEW_ALIVE_FILE, self.text().as_bytes())
    }

    /// The one in a session's directory; `None` if it is no copy, or the program has ended.
    pub(crate) fn read(session: &Directory) -> Option<Self> {
        let (file, _) = open_regular(session, layout::ALIVE_FILE, Access::Read).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_LEN).read_to_end(&mut bytes).ok()?;
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    /// What it says about the publisher, at this time.
    pub(crate) fn publisher(self, now: SystemTime) -> Publisher {
        let written = UNIX_EPOCH + Duration::from_nanos(self.wall_ns);
        // From the future, it is another machine's clock that is ahead.
        let age = now.duration_since(written).unwrap_or_default();
        let copy = CopyState { silent: (age >= SILENT).then_some(age), trouble: self.trouble, clock: self.clock };
        Publisher { alive: age < GONE, stopped: self.stopped, copy: Some(copy) }
    }

    fn text(&self) -> String {
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        let mut text = format!("{HEADING}\nwall_ns {}\n", self.wall_ns);
        if let Some(clock) = &self.clock {
            text += &format!("clock {} {}\n", clock.offset_ns, clock.error_ns);
        }
        if let Some(stopped) = &self.stopped {
            text += &format!("stopped {} {}\n", stopped.wall_ns, line(&stopped.reason));
        }
        if let Some(trouble) = &self.trouble {
            text += &format!("trouble {}\n", line(trouble));
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != HEADING {
            return None;
        }
        let mut found = Self::default();
        for (name, value) in lines.filter_map(|line| line.split_once(' ')) {
            match name {
                "wall_ns" => found.wall_ns = value.parse().ok()?,
                "clock" => {
                    let (offset_ns, error_ns) = value.split_once(' ')?;
                    let clock = ClockOffset { offset_ns: offset_ns.parse().ok()?, error_ns: error_ns.parse().ok()? };
                    found.clock = Some(clock);
                }
                "stopped" => {
                    let (wall_ns, reason) = value.split_once(' ')?;
                    found.stopped = Some(Stopped { wall_ns: wall_ns.parse().ok()?, reason: clean(reason.as_bytes()) });
                }
                "trouble" => found.trouble = Some(clean(value.as_bytes())),
                // A newer gnntop's.
                _ => (),
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        let heartbeat = Heartbeat {
            wall_ns: 1_700_000_000_123_456_789,
            stopped: Some(Stopped { wall_ns: 7, reason: "the disk was full".to_owned() }),
            trouble: Some("is not reached: no route".to_owned()),
            clock: Some(ClockOffset { offset_ns: -5, error_ns: 3 }),
        };
        assert_eq!(Heartbeat::parse(&heartbeat.text()), Some(heartbeat));
        assert_eq!(Heartbeat::parse(&Heartbeat::default().text()), Some(Heartbeat::default()));
        let lines = Heartbeat { trouble: Some("a\nwall_ns 9".to_owned()), ..Heartbeat::default() };
        assert_eq!(Heartbeat::parse(&lines.text()).map(|found| found.wall_ns), Some(0));
    }

    #[test]
    fn parse_refuses_what_is_no_heartbeat_and_control_characters() {
        for text in ["", "gnntop-alive 2\nwall_ns 1", "gnntop-alive 1\nwall_ns x", "gnntop-alive 1\nclock 1"] {
            assert_eq!(Heartbeat::parse(text), None, "{text}");
        }
        let found = Heartbeat::parse("gnntop-alive 1\nnew thing\nwall_ns 1\ntrouble a\x1b[2Jb\n").unwrap();
        assert_eq!(found.trouble.as_deref(), Some("a\u{fffd}[2Jb"));
    }

    #[test]
    fn a_copy_is_live_then_silent_then_gone() {
        let heartbeat = Heartbeat { wall_ns: 1_000_000_000_000, ..Heartbeat::default() };
        let after = |seconds: u64| {
            let now = UNIX_EPOCH + Duration::from_secs(1000) + Duration::from_secs(seconds);
            let publisher = heartbeat.clone().publisher(now);
            (publisher.alive, publisher.copy.unwrap().silent.map(|time| time.as_secs()))
        };
        assert_eq!((after(0), after(29)), ((true, None), (true, None)));
        assert_eq!((after(43), after(599)), ((true, Some(43)), (true, Some(599))));
        assert_eq!(after(600), (false, Some(600)));
        let before = heartbeat.publisher(UNIX_EPOCH + Duration::from_secs(10));
        assert!(before.alive && before.copy.unwrap().silent.is_none(), "its clock is ahead");
    }
}
