//! What the terminal can show: how many colours, and on which background.

use ratatui::style::Color;

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
        if set("NO_COLOR").is_some() || term.is_empty() || term == "dumb" {
            return Self::None;
        }
        match set("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Self::True,
            _ if term.ends_with("-direct") => Self::True,
            _ if term.contains("256color") => Self::Indexed,
            _ => Self::Ansi,
        }
    }

    /// The depth with this name: `truecolor`, `256`, `16` or `none`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "truecolor" | "24bit" => Self::True,
            "256" => Self::Indexed,
            "16" => Self::Ansi,
            "none" => Self::None,
            _ => return None,
        })
    }
}

/// What lies behind the text.
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
    /// variable. Dark where it says nothing.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Self {
        let value = env("COLORFGBG").unwrap_or_default();
        match value.rsplit(';').next().and_then(|number| number.parse::<u8>().ok()) {
            Some(7 | 9..=15) => Self::Light,
            _ => Self::Dark,
        }
    }

    /// The background with this name: `dark` or `light`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "dark" => Some(Self::Dark),
            "light" => Some(Self::Light),
            _ => None,
        }
    }
}

/// Levels of the three colours in the cube of the 256.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest of the 6 x 6 x 6 colours of the 256 (16..232) and their greys (232..256).
pub(super) fn indexed((r, g, b): (u8, u8, u8)) -> Color {
    let nearest = |c: u8| (0..6u8).min_by_key(|&i| LEVELS[usize::from(i)].abs_diff(c)).unwrap_or(0);
    let grey = (0..24u8).min_by_key(|&i| (8 + 10 * i).abs_diff(g)).unwrap_or(0);
    let cube = 16 + 36 * nearest(r) + 6 * nearest(g) + nearest(b);
    let away = |index: u8| {
        let (r2, g2, b2) = rgb_of_index(index);
        [(r, r2), (g, g2), (b, b2)].map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).iter().sum::<u32>()
    };
    Color::Indexed(if away(232 + grey) < away(cube) { 232 + grey } else { cube })
}

/// Red, green and blue of an indexed colour from 16 on, as xterm has them.
pub fn rgb_of_index(index: u8) -> (u8, u8, u8) {
    let level = |i: u8| LEVELS[usize::from(i % 6)];
    match index {
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
        _ => {
            let cube = index.saturating_sub(16);
            (level(cube / 36), level(cube / 6), level(cube))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup<T>(vars: &[(&str, &str)], detect: impl Fn(&dyn Fn(&str) -> Option<String>) -> T) -> T {
        detect(&|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()))
    }

    fn depth(vars: &[(&str, &str)]) -> ColorDepth {
        lookup(vars, |env| ColorDepth::detect(env))
    }

    #[test]
    fn the_environment_decides_the_depth() {
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), ColorDepth::True);
        assert_eq!(depth(&[("TERM", "xterm-direct")]), ColorDepth::True);
        assert_eq!(depth(&[("TERM", "screen-256color")]), ColorDepth::Indexed);
        assert_eq!(depth(&[("TERM", "linux")]), ColorDepth::Ansi);
        assert_eq!(depth(&[("TERM", "dumb"), ("COLORTERM", "truecolor")]), ColorDepth::None);
        assert_eq!(depth(&[]), ColorDepth::None);
        assert_eq!(depth(&[("TERM", "xterm"), ("NO_COLOR", "1")]), ColorDepth::None);
        assert_eq!(depth(&[("TERM", "xterm"), ("NO_COLOR", "")]), ColorDepth::Ansi, "empty does not count");
    }

    #[test]
    fn the_environment_may_know_the_background() {
        let background = |value| lookup(&[("COLORFGBG", value)], |env| Background::detect(env));
        assert_eq!(background("15;0"), Background::Dark);
        assert_eq!(background("0;15"), Background::Light);
        assert_eq!(background("0;default;7"), Background::Light);
        assert_eq!(background("12;8"), Background::Dark);
        for nonsense in ["", ";", "0;default", "0;300"] {
            assert_eq!(background(nonsense), Background::Dark, "{nonsense}");
        }
    }

    #[test]
    fn each_of_the_256_is_nearest_to_itself() {
        for index in 16..=255u8 {
            let Color::Indexed(found) = indexed(rgb_of_index(index)) else { panic!("{index}") };
            assert_eq!(rgb_of_index(found), rgb_of_index(index), "{index}");
        }
    }
}
