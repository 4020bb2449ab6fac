//! Which looks a person chose, by name, and what the terminal can show of them. What they look like is the screen's
//! business.

use std::fmt;

/// A set of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Palette {
    /// Quiet colours that stay apart.
    #[default]
    Default,
    /// Colours that stay distinct for people with red-green or blue-yellow colour blindness.
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
    pub fn from_name(name: &str) -> Option<Self> {
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

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorDepth {
    /// 24 bits a cell.
    True,
    /// The 256 indexed colours.
    Indexed,
    /// The 16 colours of the user's own terminal theme.
    Ansi,
    /// No colour: bold, dim and reversed only.
    None,
}

impl ColorDepth {
    /// What the environment says the terminal can do; `env` looks up a variable.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        if set("NO_COLOR").is_some() || is_colourless(&term) {
            return Self::None;
        }
        match set("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Self::True,
            _ if term.ends_with("-direct") => Self::True,
            _ if term.contains("256color") => Self::Indexed,
            _ => Self::Ansi,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::True => "truecolor",
            Self::Indexed => "256",
            Self::Ansi => "16",
            Self::None => "none",
        }
    }

    /// The depth with this name: `truecolor`, `256`, `16` or `none`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "truecolor" | "24bit" => Self::True,
            "256" => Self::Indexed,
            "16" => Self::Ansi,
            "none" => Self::None,
            _ => return None,
        })
    }
}

/// Whether a terminal of this kind has no colours: DEC's VT52 to VT420 and those that say that they are monochrome.
fn is_colourless(term: &str) -> bool {
    let model = term.strip_prefix("vt").map(|rest| rest.split('-').next().unwrap_or(rest));
    let is_dec = model.is_some_and(|model| ["52", "100", "102", "220", "320", "400", "420"].contains(&model));
    term.is_empty() || term == "dumb" || is_dec || term.split('-').any(|part| ["mono", "m"].contains(&part))
}

/// The terminal's background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Black, or nearly.
    #[default]
    Dark,
    /// White, or nearly.
    Light,
}

impl Background {
    /// What `COLORFGBG` says, which some terminals set to the numbers of their colours (`15;0`); `env` looks up a
    /// variable. `None` if it says nothing.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let value = env("COLORFGBG").unwrap_or_default();
        match value.rsplit(';').next().and_then(|number| number.parse::<u8>().ok()) {
            Some(7 | 9..=15) => Some(Self::Light),
            Some(0..=6 | 8) => Some(Self::Dark),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
        }
    }

    /// The background with this name: `dark` or `light`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "dark" => Some(Self::Dark),
            "light" => Some(Self::Light),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn palettes_cycle_and_parse_by_name() {
        let mut palette = Palette::default();
        for expected in Palette::ALL {
            assert_eq!(palette, expected);
            assert_eq!(Palette::from_name(palette.name()), Some(palette));
            palette = palette.next();
        }
        assert_eq!(palette, Palette::Default);
        assert_eq!(Palette::from_name("color-blind"), Some(Palette::ColorBlind));
        assert_eq!(Palette::from_name("mauve"), None);
    }

    fn lookup<T>(vars: &[(&str, &str)], detect: impl Fn(&dyn Fn(&str) -> Option<String>) -> T) -> T {
        detect(&|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()))
    }

    fn depth(vars: &[(&str, &str)]) -> ColorDepth {
        lookup(vars, |env| ColorDepth::detect(env))
    }

    #[test]
    fn color_depth_is_detected_from_environment() {
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), ColorDepth::True);
        assert_eq!(depth(&[("TERM", "xterm-direct")]), ColorDepth::True);
        assert_eq!(depth(&[("TERM", "screen-256color")]), ColorDepth::Indexed);
        assert_eq!(depth(&[("TERM", "linux")]), ColorDepth::Ansi);
        assert_eq!(depth(&[("TERM", "dumb"), ("COLORTERM", "truecolor")]), ColorDepth::None);
        assert_eq!(depth(&[]), ColorDepth::None);
        for term in ["vt100", "vt220", "vt100-w", "xterm-mono"] {
            assert_eq!(depth(&[("TERM", term)]), ColorDepth::None, "{term}");
        }
        assert_eq!(depth(&[("TERM", "vt525")]), ColorDepth::Ansi);
        assert_eq!(depth(&[("TERM", "xterm"), ("NO_COLOR", "1")]), ColorDepth::None);
        assert_eq!(depth(&[("TERM", "xterm"), ("NO_COLOR", "")]), ColorDepth::Ansi, "empty does not count");
    }

    #[test]
    fn background_is_detected_from_environment() {
        let background = |value| lookup(&[("COLORFGBG", value)], |env| Background::detect(env));
        assert_eq!(background("15;0"), Some(Background::Dark));
        assert_eq!(background("0;15"), Some(Background::Light));
        assert_eq!(background("0;default;7"), Some(Background::Light));
        assert_eq!(background("12;8"), Some(Background::Dark));
        for nonsense in ["", ";", "0;default", "0;300"] {
            assert_eq!(background(nonsense), None, "{nonsense}");
        }
    }
}
