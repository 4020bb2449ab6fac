//! The message line: what a key changed, or what did not work, for a few seconds.

use std::time::Duration;

use super::App;

/// How long a notice is shown.
const NOTICE_FOR: Duration = Duration::from_secs(4);

/// Words that are shown for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    text: String,
    /// Whether something did not work.
    is_problem: bool,
    /// When it was first shown.
    since: Duration,
}

impl App {
    /// What there is to say at this moment, such as what a key changed.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_ref().map(|notice| notice.text.as_str())
    }

    /// Whether the notice is about something that did not work.
    pub fn notice_is_problem(&self) -> bool {
        self.notice.as_ref().is_some_and(|notice| notice.is_problem)
    }

    /// Says something for a while.
    pub(super) fn tell(&mut self, text: String) {
        self.notify(text, false);
    }

    /// The same of something that may not have worked.
    pub(super) fn notify(&mut self, text: String, is_problem: bool) {
        self.notice = Some(Notice { text, is_problem, since: self.now });
        self.dirty = true;
    }

    /// Takes back what has been said for long enough.
    pub(super) fn forget_notice(&mut self) {
        if self.notice.as_ref().is_some_and(|notice| self.now.saturating_sub(notice.since) >= NOTICE_FOR) {
            self.notice = None;
            self.dirty = true;
        }
    }
}
