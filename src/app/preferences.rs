//! How a person wants the screen to be, at its start and as keys have changed it since.

use super::{App, Background, KeyMap, LogView, Palette, View};
use gnntop_analysis::store::PhaseSlot;

/// How a person wants the screen to be.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    /// The palette of colours.
    pub palette: Palette,
    /// What lies behind the text.
    pub background: Background,
    /// The view to begin with.
    pub view: View,
    /// What the keys do.
    pub keys: KeyMap,
}

impl App {
    /// The same as a person wants it.
    pub fn with(has_log: bool, preferences: Preferences) -> Self {
        let Preferences { palette, background, view, keys: keymap } = preferences;
        let log = has_log.then(LogView::default);
        let mut app = Self { log, palette, background, keymap, dirty: true, size: (80, 24), ..Self::default() };
        app.show(view);
        app
    }

    /// What the keys do.
    pub fn keymap(&self) -> &KeyMap {
        &self.keymap
    }

    /// The palette of colours.
    pub fn palette(&self) -> Palette {
        self.palette
    }

    /// What lies behind the text.
    pub fn background(&self) -> Background {
        self.background
    }

    /// The phase that is shown more clearly than the others.
    pub fn highlight(&self) -> Option<PhaseSlot> {
        self.highlight
    }
}
