//! The status of the source, how long it has been silent or the picture frozen, and the message of the moment: what a key
//! changed, or what did not work.

use std::time::Duration;

use gnntop_analysis::source::{SourceState, Status};

/// Without news for this long, a live run is called silent. Sensors alone send ten readings a second.
const SILENT_AFTER: Duration = Duration::from_secs(2);

/// The status of the source. Times count from the start of the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed {
    status: Status,
    now: Duration,
    /// When data last arrived.
    last_news_at: Duration,
    frozen_at: Option<Duration>,
}

impl Feed {
    pub(super) fn status(&self) -> &Status {
        &self.status
    }

    pub(super) fn now(&self) -> Duration {
        self.now
    }

    pub(super) fn frozen_for(&self) -> Option<Duration> {
        self.frozen_at.map(|at| self.now.saturating_sub(at))
    }

    pub(super) fn silent_for(&self) -> Option<Duration> {
        let silence = self.now.saturating_sub(self.last_news_at);
        let expected = self.status.live && self.status.state == SourceState::Running && self.frozen_at.is_none();
        (expected && silence >= SILENT_AFTER).then_some(silence)
    }

    /// Whether it can be moved in.
    pub(super) fn is_replay(&self) -> bool {
        self.status.transport.is_some()
    }

    /// Whether a replay has reached its end.
    pub(super) fn is_at_end(&self) -> bool {
        let transport = self.status.transport.filter(|transport| !transport.seeking);
        transport.is_some_and(|transport| transport.total_ns.is_some_and(|total_ns| transport.position_ns >= total_ns))
    }

    /// Whether a replay is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.status.transport.is_some_and(|transport| transport.paused)
    }

    /// Whether data arrives, and so can be frozen.
    pub(super) fn is_live(&self) -> bool {
        let ended = matches!(self.status.state, SourceState::Ended(_));
        !self.is_replay() && (!ended || self.frozen_at.is_some())
    }

    /// Position of a replay.
    pub(super) fn position_ns(&self) -> u64 {
        self.status.transport.map_or(0, |transport| transport.position_ns)
    }

    /// Time has passed; returns whether that is visible.
    pub(super) fn tick(&mut self, now: Duration) -> bool {
        let shown = |feed: &Self| [feed.frozen_for(), feed.silent_for()].map(|time| time.map(|time| time.as_secs()));
        let before = shown(self);
        self.now = now;
        shown(self) != before
    }

    /// The source was asked; whether there is news.
    pub(super) fn update(&mut self, status: Status, has_come: bool) -> bool {
        if has_come {
            self.last_news_at = self.now;
        }
        let is_news = has_come || self.status != status;
        self.status = status;
        is_news
    }

    /// Stops taking in data, or continues.
    pub(super) fn toggle_freeze(&mut self) {
        self.frozen_at = if self.frozen_at.is_some() { None } else { Some(self.now) };
        self.last_news_at = self.now;
    }

    /// Another source is asked from now on.
    pub(super) fn reset(&mut self) {
        self.frozen_at = None;
        self.last_news_at = self.now;
    }
}

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

    /// Takes back what was said of an earlier key.
    pub(super) fn clear(&mut self) {
        self.notice = None;
    }

    /// Takes back what has been said for long enough; whether something was.
    pub(super) fn tick(&mut self, now: Duration) -> bool {
        let is_old = |notice: &mut Notice| now >= notice.until;
        self.notice.take_if(is_old).is_some()
    }
}
