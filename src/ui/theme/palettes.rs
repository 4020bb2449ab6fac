//! The palettes, as data: one set of colours for dark backgrounds and one for light ones, each.
//!
//! Every colour of text has a contrast of 4.5 to its background and every fill one of 3, as WCAG 2.1 asks for (success
//! criteria 1.4.3 and 1.4.11); `high-contrast` has 7 and 4.5. The tests hold this on the backgrounds that terminals
//! commonly have.

use ratatui::style::Color;

use crate::app::{Background, Palette};
use crate::phase_style;

/// A colour, and the one of the sixteen that comes closest in meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paint {
    pub rgb: (u8, u8, u8),
    pub ansi: Color,
}

/// What the fill of a phase is drawn with, on the phase's colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grain {
    /// The same colour with this percentage of its light.
    Shade(u8),
    /// Black.
    Black,
    /// White.
    White,
}

/// A palette on one background.
#[derive(Debug)]
pub(super) struct Colors {
    /// The standard phases, in the order of their looks.
    pub phases: [Paint; 8],
    /// The gap between phases.
    pub gap: Paint,
    /// A program's own phases.
    pub others: [Paint; 5],
    pub grain: Grain,
    pub dim: Paint,
    pub accent: Paint,
    pub good: Paint,
    pub warning: Paint,
    pub alarm: Paint,
    pub series: Paint,
}

/// The colours of a palette. Those of [`Palette::Terminal`] are seen by their nearest of the sixteen only.
pub(super) fn colors(palette: Palette, background: Background) -> &'static Colors {
    match (palette, background) {
        (Palette::Default | Palette::Terminal, Background::Dark) => &DEFAULT_DARK,
        (Palette::Default | Palette::Terminal, Background::Light) => &DEFAULT_LIGHT,
        (Palette::ColorBlind, Background::Dark) => &COLOR_BLIND_DARK,
        (Palette::ColorBlind, Background::Light) => &COLOR_BLIND_LIGHT,
        (Palette::HighContrast, Background::Dark) => &HIGH_CONTRAST_DARK,
        (Palette::HighContrast, Background::Light) => &HIGH_CONTRAST_LIGHT,
        (Palette::Monochrome, Background::Dark) => &MONOCHROME_DARK,
        (Palette::Monochrome, Background::Light) => &MONOCHROME_LIGHT,
    }
}

const fn paint(hex: u32, ansi: Color) -> Paint {
    Paint { rgb: ((hex >> 16) as u8, (hex >> 8) as u8, hex as u8), ansi }
}

/// The sixteen in the order of the standard phases: data wait, sample, gather, transfer, forward, backward,
/// all-reduce, optimizer.
const PHASES_16: [Color; 8] = [
    Color::Yellow,
    Color::Magenta,
    Color::LightYellow,
    Color::Red,
    Color::Cyan,
    Color::Blue,
    Color::LightMagenta,
    Color::Green,
];

const OTHERS_16: [Color; 4] = [Color::LightBlue, Color::LightGreen, Color::LightRed, Color::LightCyan];

const fn phases(hex: [u32; 8]) -> [Paint; 8] {
    let mut paints = [paint(0, Color::Reset); 8];
    let mut at = 0;
    while at < hex.len() {
        paints[at] = paint(hex[at], PHASES_16[at]);
        at += 1;
    }
    paints
}

/// The gap and a program's own phases: on a light background grey and dark grey change places.
const fn gap_and_others(background: Background, gap: u32, hex: [u32; 5]) -> (Paint, [Paint; 5]) {
    let (faint, other) = match background {
        Background::Dark => (Color::DarkGray, Color::Gray),
        Background::Light => (Color::Gray, Color::DarkGray),
    };
    let mut paints = [paint(hex[4], other); 5];
    let mut at = 0;
    while at < OTHERS_16.len() {
        paints[at] = paint(hex[at], OTHERS_16[at]);
        at += 1;
    }
    (paint(gap, faint), paints)
}

const fn texts(hex: [u32; 6]) -> [Paint; 6] {
    [
        // Dim text is dimmed, not coloured, where there are sixteen: their greys may be the background.
        paint(hex[0], Color::Reset),
        paint(hex[1], Color::Cyan),
        paint(hex[2], Color::Green),
        paint(hex[3], Color::Yellow),
        paint(hex[4], Color::Red),
        paint(hex[5], Color::Reset),
    ]
}

const fn palette(
    background: Background,
    grain: Grain,
    standard: [u32; 8],
    gap: u32,
    others: [u32; 5],
    text: [u32; 6],
) -> Colors {
    let (gap, others) = gap_and_others(background, gap, others);
    let [dim, accent, good, warning, alarm, series] = texts(text);
    Colors { phases: phases(standard), gap, others, grain, dim, accent, good, warning, alarm, series }
}

static DEFAULT_DARK: Colors = palette(
    Background::Dark,
    Grain::Shade(75),
    phase_style::DARK.phases,
    phase_style::DARK.gap,
    phase_style::DARK.others,
    phase_style::DARK.texts,
);

static DEFAULT_LIGHT: Colors = palette(
    Background::Light,
    Grain::Shade(75),
    phase_style::LIGHT.phases,
    phase_style::LIGHT.gap,
    phase_style::LIGHT.others,
    phase_style::LIGHT.texts,
);

/// The colours of M. Okabe and K. Ito, "Color Universal Design" (2008, jfly.uni-koeln.de/color), lightened or darkened
/// where their contrast to the background was less than 3; their black is the lightest grey on a dark background.
static COLOR_BLIND_DARK: Colors = palette(
    Background::Dark,
    Grain::Shade(50),
    [0xe69f00, 0xd68fb8, 0xf0e442, 0xd55e00, 0x72bcec, 0x3a80bb, 0xf2f2f2, 0x009e73],
    0x7c7c7c,
    [0x9a8cd8, 0xb8d86a, 0xe0a08b, 0x5fc4c0, 0xb5966b],
    [0x949494, 0x56b4e9, 0x56b4e9, 0xe69f00, 0xe0824a, 0x8fa3b5],
);

static COLOR_BLIND_LIGHT: Colors = palette(
    Background::Light,
    Grain::Shade(50),
    [0xb77e00, 0x83305f, 0x6b6618, 0x592300, 0x438fba, 0x00629a, 0x000000, 0x007050],
    0x808080,
    [0x5f5faf, 0x5a8a4a, 0xb85050, 0x2f8585, 0x8a6a2a],
    [0x6c6c6c, 0x005f9a, 0x005f9a, 0x875f00, 0x9a3400, 0x5a6580],
);

static HIGH_CONTRAST_DARK: Colors = palette(
    Background::Dark,
    Grain::Black,
    [0xffaf00, 0xff87d7, 0xffff5f, 0xff875f, 0x87d7ff, 0x5f9fff, 0xd787ff, 0x00d787],
    0xb2b2b2,
    [0xafafff, 0xafff87, 0xffafaf, 0x5fffff, 0xd7af87],
    [0xc6c6c6, 0x5fd7ff, 0x5fffaf, 0xffd75f, 0xffafaf, 0xe4e4e4],
);

static HIGH_CONTRAST_LIGHT: Colors = palette(
    Background::Light,
    Grain::White,
    [0x875f00, 0x87005f, 0x5f5f00, 0xaf0000, 0x005faf, 0x00005f, 0x5f00af, 0x005f00],
    0x626262,
    [0x5f5faf, 0x005f5f, 0x870000, 0x5f005f, 0x5f0000],
    [0x444444, 0x00479a, 0x00542b, 0x664200, 0x960000, 0x303030],
);

static MONOCHROME_DARK: Colors = palette(
    Background::Dark,
    Grain::Black,
    [0xd0d0d0, 0x9e9e9e, 0xe4e4e4, 0xb2b2b2, 0xc6c6c6, 0x8a8a8a, 0xeeeeee, 0xa8a8a8],
    0x767676,
    [0xdadada, 0x949494, 0xbcbcbc, 0xffffff, 0x808080],
    [0x949494, 0xffffff, 0xffffff, 0xffffff, 0xffffff, 0xbcbcbc],
);

static MONOCHROME_LIGHT: Colors = palette(
    Background::Light,
    Grain::White,
    [0x444444, 0x767676, 0x303030, 0x626262, 0x6c6c6c, 0x3a3a3a, 0x1c1c1c, 0x585858],
    0x808080,
    [0x4e4e4e, 0x121212, 0x262626, 0x080808, 0x000000],
    [0x6c6c6c, 0x000000, 0x000000, 0x000000, 0x000000, 0x4e4e4e],
);

/// Levels of the three colours in the cube of the 256.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest of the 6 x 6 x 6 colours of the 256 (16..232) and their greys (232..256).
pub(super) fn nearest((r, g, b): (u8, u8, u8)) -> Color {
    let level = |c: u8| (0..6u8).min_by_key(|&i| LEVELS[usize::from(i)].abs_diff(c)).unwrap_or(0);
    let grey = (0..24u8).min_by_key(|&i| (8 + 10 * i).abs_diff(g)).unwrap_or(0);
    let cube = 16 + 36 * level(r) + 6 * level(g) + level(b);
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

    #[test]
    fn each_of_the_256_is_nearest_to_itself() {
        for index in 16..=255u8 {
            let Color::Indexed(found) = nearest(rgb_of_index(index)) else { panic!("{index}") };
            assert_eq!(rgb_of_index(found), rgb_of_index(index), "{index}");
        }
    }
}
