//! The message line: what a key changed, or what did not work, for a few seconds.

use std::time::Duration;

/// How long a notice is shown that a key has caused.
const NOTICE_FOR: Duration = Duration::from_secs(4);
/// How long one is shown that comes by itself, when a person may be looking elsewhere.
const NEWS_FOR: Duration = Duration::from_secs(20);

/// The message of the moment. Times count from the start of the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageLine {
    notice: Option<Notice>,
}

/// Words that are shown for a while.
#[derive(Clone, Debug)]
struct Notice {
    text: String,
    /// Whether something did not work.
    is_problem: bool,
    /// When it is taken back.
    until: Duration,
}

impl MessageLine {
    pub(super) fn text(&self) -> Option<&str> {
        self.notice.as_ref().map(|notice| notice.text.as_str())
    }

    /// Whether it is about something that did not work.
    pub(super) fn is_problem(&self) -> bool {
        self.notice.as_ref().is_some_and(|notice| notice.is_problem)
    }

    /// Says something for a while.
    pub(super) fn show(&mut self, text: String, is_problem: bool, now: Duration) {
        self.notice = Some(Notice { text, is_problem, until: now + NOTICE_FOR });
    }

    /// Shows the progress of something that takes a while.
    pub(super) fn show_progress(&mut self, text: String, now: Duration) {
        self.notice = Some(Notice { text, is_problem: false, until: now + NEWS_FOR });
    }

    /// Takes back what has been said for long enough; whether something was.
    pub(super) fn tick(&mut self, now: Duration) -> bool {
        let is_old = |notice: &mut Notice| now >= notice.until;
        self.notice.take_if(is_old).is_some()
    }
}
