//! The `gnntop run` that started a keeper, as the keeper sees it: whether it is stopped at its terminal.

use std::fs;
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

/// What was sent to a stopped process arrives within this time of its continuing, also on a busy machine.
const MOMENT: Duration = Duration::from_secs(2);

/// The process, and when it was last seen to be stopped.
pub(super) struct Starter {
    pid: u32,
    seen_stopped: Option<Instant>,
}

impl Starter {
    /// Our parent.
    pub(super) fn find() -> Self {
        Self { pid: parent_id(), seen_stopped: None }
    }

    /// Looks at it. To be called often.
    pub(super) fn observe(&mut self) {
        let stat = || fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok();
        if self.pid == parent_id() && stat().is_some_and(|stat| is_stopped(&stat)) {
            self.seen_stopped = Some(Instant::now());
        }
    }

    /// Whether it is stopped, or was until a moment ago.
    pub(super) fn was_stopped(&self) -> bool {
        self.seen_stopped.is_some_and(|seen| seen.elapsed() < MOMENT)
    }
}

/// Whether a process is stopped that has a terminal: by its line of `/proc`.
fn is_stopped(stat: &str) -> bool {
    // The name in brackets may hold anything; state, parent, group, session and terminal follow.
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    fields.first() == Some(&"T") && fields.get(4).is_some_and(|terminal| *terminal != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_with_a_terminal_counts_as_stopped_there() {
        assert!(is_stopped("7 (a) T b) T 1 7 7 34816 7 0"));
        assert!(!is_stopped("7 (a) T b) S 1 7 7 34816 7 0"));
        assert!(!is_stopped("7 (a) T 1 7 7 0 -1 0"));
    }
}
