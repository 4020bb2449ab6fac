//! What the key table needs to know, read off the app.

use super::App;
use super::keys::Situation;
use crate::source::State;

impl App {
    /// The situation that decides what keys do.
    pub fn situation(&self) -> Situation {
        let replay = self.status.transport.is_some();
        let ended = matches!(self.status.state, State::Ended(_));
        Situation {
            view: self.view(),
            focus: self.focus,
            enlarged: self.enlarged(),
            steps: !self.store.steps().is_empty(),
            selected: self.window.cursor().is_some(),
            live: !replay && (!ended || self.frozen_at.is_some()),
            replay,
            log: self.log.is_some(),
        }
    }
}
