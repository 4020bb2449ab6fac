//! How a person wants the screen to be, at its start and as keys and the terminal have changed it since.

use super::colors::{Background, Palette};
use super::keymap::KeyMap;
use super::view::View;

/// How a person wants the screen to be.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    /// The palette of colours.
    pub palette: Palette,
    /// The terminal's background.
    pub background: Background,
    /// The view to begin with.
    pub view: View,
    /// What the keys do.
    pub keys: KeyMap,
}
