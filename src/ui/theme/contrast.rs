//! What the palettes must hold: contrast by the formulas of WCAG 2.1, and distance for people who see fewer colours.

use gnntop_wire::phase;

use super::palettes::rgb_of_index;
use super::*;

type Rgb = (u8, u8, u8);

/// Backgrounds that terminals commonly have: black, dark grey, One Dark.
const DARK: [Rgb; 3] = [(0, 0, 0), (0x1e, 0x1e, 0x1e), (0x28, 0x2c, 0x34)];
/// White, and the light background of Solarized.
const LIGHT: [Rgb; 2] = [(0xff, 0xff, 0xff), (0xfd, 0xf6, 0xe3)];

fn linear(c: u8) -> f64 {
    let c = f64::from(c) / 255.0;
    if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// WCAG 2.1, "relative luminance".
fn luminance((r, g, b): Rgb) -> f64 {
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

/// WCAG 2.1, "contrast ratio".
fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn rgb(color: Color) -> Rgb {
    match color {
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Indexed(index) => rgb_of_index(index),
        Color::Black => (0, 0, 0),
        Color::White => (255, 255, 255),
        other => panic!("{other} is the terminal's business"),
    }
}

/// Every palette with its own colours, on each background, in each depth that has them.
fn themes() -> impl Iterator<Item = Theme> {
    let palettes = Palette::ALL.into_iter().filter(|palette| *palette != Palette::Terminal);
    palettes.flat_map(|palette| {
        let worn = move |depth| Theme::new(depth, false).with_palette(palette);
        let depths = [ColorDepth::True, ColorDepth::Indexed].into_iter();
        depths.flat_map(move |depth| [Background::Dark, Background::Light].map(|on| worn(depth).with_background(on)))
    })
}

/// The least contrast to the backgrounds that the theme is made for.
fn worst(theme: &Theme, color: Color) -> f64 {
    let backgrounds = match theme.background {
        Background::Dark => &DARK[..],
        Background::Light => &LIGHT[..],
    };
    backgrounds.iter().map(|on| contrast(rgb(color), *on)).fold(f64::INFINITY, f64::min)
}

fn all_phases() -> Vec<Option<&'static str>> {
    let own = ["decode", "augment", "gap", "データ", "decode 2"];
    phase::STANDARD.into_iter().chain(own).map(Some).chain([None]).collect()
}

#[test]
fn contrast_is_that_of_the_standard() {
    assert!((contrast((0, 0, 0), (255, 255, 255)) - 21.0).abs() < 1e-9);
    // The example of "Understanding 1.4.3": #767676 on white just passes.
    assert!((contrast((0x76, 0x76, 0x76), (255, 255, 255)) - 4.54).abs() < 0.01);
}

#[test]
fn text_can_be_read_in_every_palette() {
    let mut faint = Vec::new();
    for theme in themes() {
        let is_exact = theme.depth == ColorDepth::True;
        let least = if theme.palette == Palette::HighContrast && is_exact { 7.0 } else { 4.5 };
        let texts = [theme.dim(), theme.accent(), theme.good(), theme.warning(), theme.alarm(), theme.series()];
        for (at, style) in texts.into_iter().enumerate() {
            let found = worst(&theme, style.fg.unwrap());
            if found < least {
                faint.push(format!(
                    "{:?} {:?} {:?}: text {at} has {found:.2}",
                    theme.palette, theme.background, theme.depth
                ));
            }
        }
    }
    assert!(faint.is_empty(), "{faint:#?}");
}

#[test]
fn fills_can_be_seen_in_every_palette() {
    let mut faint = Vec::new();
    for theme in themes() {
        let least = if theme.palette == Palette::HighContrast { 4.5 } else { 3.0 };
        for look in theme.phase_styles(all_phases()) {
            let found = worst(&theme, look.color);
            if found < least {
                faint.push(format!(
                    "{:?} {:?} {:?}: {} has {found:.2}",
                    theme.palette, theme.background, theme.depth, look.letter
                ));
            }
        }
    }
    assert!(faint.is_empty(), "{faint:#?}");
}

#[test]
fn the_sign_on_a_bar_can_be_read_on_every_bar() {
    for theme in themes() {
        let ink = theme.cut_off().fg.unwrap();
        for look in theme.phase_styles(all_phases()) {
            let found = contrast(rgb(ink), rgb(look.color));
            assert!(found >= 3.0, "{theme:?}: {look:?} has {found:.2}");
        }
    }
}

#[test]
fn fills_of_high_contrast_have_ink_that_shows() {
    for theme in themes().filter(|theme| theme.palette == Palette::HighContrast) {
        for look in theme.phase_styles(all_phases()).iter().filter(|look| look.fill != SOLID) {
            let found = contrast(rgb(look.grain.0), rgb(look.grain.1));
            assert!(found >= 4.5, "{theme:?}: {look:?} has {found:.2}");
        }
    }
}

/// What people without one of the three kinds of cones see: G. M. Machado, M. M. Oliveira and L. A. F.
/// Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), severity 1, on
/// linear colours.
const DICHROMATS: [[[f64; 3]; 3]; 3] = [
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
];

/// CIE 1976 L*a*b* (D65) of a linear colour.
fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
    let root = |v: f64| if v > 0.008_856 { v.cbrt() } else { 7.787 * v + 16.0 / 116.0 };
    let x = root((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.950_47);
    let y = root(0.2126 * r + 0.7152 * g + 0.0722 * b);
    let z = root((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.088_83);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// The colours as seen by one of [`DICHROMATS`], as points whose distance is how different they look.
fn seen_by(eyes: &[[f64; 3]; 3], color: Color) -> [f64; 3] {
    let (r, g, b) = rgb(color);
    let light = [linear(r), linear(g), linear(b)];
    let cone = |row: &[f64; 3]| row.iter().zip(light).map(|(m, c)| m * c).sum::<f64>().clamp(0.0, 1.0);
    lab([cone(&eyes[0]), cone(&eyes[1]), cone(&eyes[2])])
}

#[test]
fn colour_blind_colours_stay_apart_for_everyone() {
    let normal = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for background in [Background::Dark, Background::Light] {
        let theme = Theme::new(ColorDepth::True, false).with_palette(Palette::ColorBlind).with_background(background);
        let looks = theme.phase_styles(phase::STANDARD.into_iter().map(Some).chain([None]));
        for eyes in DICHROMATS.iter().chain([&normal]) {
            for (at, one) in looks.iter().enumerate() {
                for other in &looks[at + 1..] {
                    let (a, b) = (seen_by(eyes, one.color), seen_by(eyes, other.color));
                    let apart = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(apart >= 9.0, "{background:?}: {} and {} are {apart:.1} apart", one.letter, other.letter);
                }
            }
        }
    }
}
