//! Which looks a person chose, by name. What they look like is the screen's business.

use std::fmt;

/// A set of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Palette {
    /// Quiet colours that stay apart.
    #[default]
    Default,
    /// Colours that stay apart for people who do not see red and green, or blue and yellow, alike.
    ColorBlind,
    /// Loud colours, black or white ink.
    HighContrast,
    /// Greys.
    Monochrome,
    /// The 16 colours of the user's own terminal theme.
    Terminal,
}

impl Palette {
    /// All palettes, in the order of the key that changes them.
    pub const ALL: [Self; 5] = [Self::Default, Self::ColorBlind, Self::HighContrast, Self::Monochrome, Self::Terminal];

    /// Its name, as it is typed and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::ColorBlind => "colour-blind",
            Self::HighContrast => "high-contrast",
            Self::Monochrome => "monochrome",
            Self::Terminal => "terminal",
        }
    }

    /// The palette with this name, in either spelling of colour.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.replace("color", "colour");
        Self::ALL.into_iter().find(|palette| palette.name() == name)
    }

    /// The one after it, round and round.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|palette| *palette == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

impl fmt::Display for Palette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn palettes_go_round_and_are_found_by_name() {
        let mut palette = Palette::default();
        for expected in Palette::ALL {
            assert_eq!(palette, expected);
            assert_eq!(Palette::named(palette.name()), Some(palette));
            palette = palette.next();
        }
        assert_eq!(palette, Palette::Default);
        assert_eq!(Palette::named("color-blind"), Some(Palette::ColorBlind));
        assert_eq!(Palette::named("mauve"), None);
    }
}
