//! The status of the source, and how long it has been silent or the picture frozen.

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
