//! What a person does: keys and their names, what the mouse does, and what it can point at. The screen knows where it drew
//! what.

use std::fmt;

use super::view::{Panel, View};
use gnntop_analysis::store::PhaseSlot;

/// A key press, however the terminal reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character, as typed: capitals are separate characters.
    Char(char),
    /// A character with Control held.
    Ctrl(char),
    /// Enter or Return.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Tab with Shift held.
    BackTab,
    /// Left arrow.
    Left,
    /// Right arrow.
    Right,
    /// Up arrow.
    Up,
    /// Down arrow.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
}

/// Keys that have a name instead of a character, as people write them.
const NAMED: [(Key, &str); 14] = [
    (Key::Char(' '), "Space"),
    (Key::Enter, "Enter"),
    (Key::Esc, "Esc"),
    (Key::Backspace, "Backspace"),
    (Key::Tab, "Tab"),
    (Key::BackTab, "Shift-Tab"),
    (Key::Left, "Left"),
    (Key::Right, "Right"),
    (Key::Up, "Up"),
    (Key::Down, "Down"),
    (Key::PageUp, "PgUp"),
    (Key::PageDown, "PgDn"),
    (Key::Home, "Home"),
    (Key::End, "End"),
];

impl Key {
    /// The key with this name: a character, `Ctrl-` and a letter, or one of `Space`, `Enter`, `Esc`, `Backspace`, `Tab`,
    /// `Shift-Tab`, `Left`, `Right`, `Up`, `Down`, `PgUp`, `PgDn`, `Home` and `End`.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut chars = name.chars();
        if let (Some(c), None) = (chars.next(), chars.next()) {
            return (!c.is_control() && !c.is_whitespace()).then_some(Self::Char(c));
        }
        if let Some(letter) = name.strip_prefix("Ctrl-") {
            let letter: char = letter.parse().ok()?;
            return letter.is_ascii_alphabetic().then(|| Self::Ctrl(letter.to_ascii_lowercase()));
        }
        NAMED.iter().find(|(_, known)| *known == name).map(|(key, _)| *key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (NAMED.iter().find(|(key, _)| key == self), self) {
            (Some((_, name)), _) => f.write_str(name),
            (None, Self::Char(c)) => write!(f, "{c}"),
            (None, Self::Ctrl(c)) => write!(f, "Ctrl-{}", c.to_ascii_uppercase()),
            // All keys that are not characters are in the table.
            (None, _) => Ok(()),
        }
    }
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gesture {
    /// The button went down.
    Press,
    /// The mouse moved with the button down.
    Drag,
    /// The wheel turned.
    Wheel {
        /// Away from the person.
        up: bool,
    },
}

/// Something on the screen that the mouse can point at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A view's place in the row of views.
    View(View),
    /// What fills the screen between header and footer, where nothing else is.
    Body,
    /// A panel of the overview.
    Panel(Panel),
    /// A step's bar, by the step's ordinal.
    Step(u64),
    /// A phase in the legend, by its slot in the store.
    Phase(PhaseSlot),
    /// A line of the view that is shown.
    Line(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_round_trip() {
        let all =
            NAMED.iter().map(|(key, _)| *key).chain([Key::Char('q'), Key::Char('G'), Key::Char('-'), Key::Ctrl('c')]);
        for key in all {
            assert_eq!(Key::from_name(&key.to_string()), Some(key), "{key}");
        }
        for nonsense in ["", " ", "\u{1b}", "space", "Ctrl-", "Ctrl-ab", "Ctrl-1", "F5"] {
            assert_eq!(Key::from_name(nonsense), None, "{nonsense:?}");
        }
    }
}
