//! How things look: colours, glyphs and the looks of phases, degrading with what the terminal can do.
//!
//! Colour never carries a meaning alone. Each phase has its own letter and fill, a warning has a word, the
//! cursor has a mark. The background stays the terminal's: there are colours for dark ones and for light ones.
//!
//! `palettes.rs` has the colours, also those of terminals with 256, and `contrast.rs` holds them to a standard.

#[cfg(test)]
mod contrast;
mod palettes;

use ratatui::style::{Color, Modifier, Style};

use crate::app::Palette;
pub use crate::app::{Background, ColorDepth};
use crate::phase_style::{self, Hue};
pub use palettes::rgb_of_index;
use palettes::{Colors, Grain, Paint};

/// How a phase is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseStyle {
    /// Its letter, unique among the phases of a run.
    pub letter: char,
    /// What its part of a bar is filled with.
    pub fill: char,
    /// Its colour; the terminal's own if there are no colours.
    pub color: Color,
    /// The colour of a cell's foreground and background where the fill shows: a darker grain on the phase's colour.
    pub grain: (Color, Color),
}

impl PhaseStyle {
    /// The look of anything without its own.
    pub const UNKNOWN: Self = Self { letter: '?', fill: '?', color: Color::Reset, grain: (Color::Reset, Color::Reset) };

    /// The style of a cell filled with this phase.
    pub fn style(&self) -> Style {
        Style::new().fg(self.grain.0).bg(self.grain.1)
    }
}

/// A fill without grain.
const SOLID: char = '█';

/// Fills of the standard phases, in the order of [`phase_style::LETTERS`].
const STANDARD_FILLS: [char; 8] = ['╱', '╲', '╳', '─', '░', SOLID, '┼', '▚'];

/// Fill of the gap between phases: hardly there.
const GAP_FILL: char = '·';

/// Fills of a program's own phases, in the order in which they turn up.
const OTHER_FILLS: [char; 5] = ['│', '▒', '▞', '≈', '▓'];

/// Colours and glyphs for everything on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    depth: ColorDepth,
    ascii: bool,
    palette: Palette,
    background: Background,
}

impl Theme {
    /// The default palette on a dark terminal of this depth; `ascii` keeps to the 95 printable characters of ASCII.
    pub fn new(depth: ColorDepth, ascii: bool) -> Self {
        Self { depth, ascii, palette: Palette::Default, background: Background::Dark }
    }

    /// The same in another palette.
    pub fn with_palette(self, palette: Palette) -> Self {
        Self { palette, ..self }
    }

    /// The same on another background.
    pub fn with_background(self, background: Background) -> Self {
        Self { background, ..self }
    }

    /// The depth that is used: some palettes want less than the terminal has.
    fn shown_depth(&self) -> ColorDepth {
        match (self.depth, self.palette) {
            (ColorDepth::True | ColorDepth::Indexed, Palette::Terminal) => ColorDepth::Ansi,
            // The sixteen have too few greys, and which of them shows on the background is unknown.
            (ColorDepth::Ansi, Palette::Monochrome) => ColorDepth::None,
            (depth, _) => depth,
        }
    }

    fn colors(&self) -> &'static Colors {
        palettes::colors(self.palette, self.background)
    }

    /// Whether only ASCII is drawn.
    pub fn ascii(&self) -> bool {
        self.ascii
    }

    /// Whether cells have a colour for their foreground and another for their background.
    pub fn has_color(&self) -> bool {
        self.shown_depth() != ColorDepth::None
    }

    /// `unicode`, or `ascii` where only ASCII is drawn.
    pub fn glyph(&self, unicode: char, ascii: char) -> char {
        if self.ascii { ascii } else { unicode }
    }

    /// `unicode`, or `ascii` where only ASCII is drawn.
    pub fn text(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }

    /// Looks of the phases with these names, `None` being the gap; each letter and fill is used once.
    pub fn phase_styles<'a>(&self, phases: impl IntoIterator<Item = Option<&'a str>>) -> Vec<PhaseStyle> {
        let colors = self.colors();
        let look = |(letter, hue): (char, Hue)| match hue {
            Hue::Gap => self.phase_style(letter, GAP_FILL, colors.gap),
            Hue::Standard(at) => self.phase_style(letter, STANDARD_FILLS[at], colors.phases[at]),
            Hue::Other(nth) => {
                let fill = OTHER_FILLS.get(nth).copied().unwrap_or(letter);
                self.phase_style(letter, fill, colors.others[nth % colors.others.len()])
            }
        };
        phase_style::assign_letters(phases).into_iter().map(look).collect()
    }

    fn phase_style(&self, letter: char, fill: char, paint: Paint) -> PhaseStyle {
        let fill = if self.ascii { letter } else { fill };
        let Some(color) = self.shown(paint) else { return PhaseStyle { letter, fill, ..PhaseStyle::UNKNOWN } };
        let grain = if fill == SOLID { color } else { self.grain(paint) };
        PhaseStyle { letter, fill, color, grain: (grain, color) }
    }

    /// The look of a phase that steps back while another one is shown clearly. It keeps its letter.
    pub fn faint(&self, look: PhaseStyle) -> PhaseStyle {
        let color = self.shown(self.colors().gap).unwrap_or(Color::Reset);
        let fill = self.glyph('·', '.');
        PhaseStyle { letter: look.letter, fill, color, grain: (color, Color::Reset) }
    }

    /// What a phase's fill is drawn with on its colour.
    fn grain(&self, paint: Paint) -> Color {
        let (r, g, b) = paint.rgb;
        match self.colors().grain {
            // The sixteen have no darker twin that is sure to differ.
            _ if self.shown_depth() == ColorDepth::Ansi => Color::Black,
            Grain::Black => self.ink((0, 0, 0)),
            Grain::White => self.ink((255, 255, 255)),
            Grain::Shade(percent) => {
                let darker = |c: u8| (u16::from(c) * u16::from(percent) / 100) as u8;
                self.ink((darker(r), darker(g), darker(b)))
            }
        }
    }

    /// A colour where there are at least 256 of them.
    fn ink(&self, (r, g, b): (u8, u8, u8)) -> Color {
        if self.shown_depth() == ColorDepth::True { Color::Rgb(r, g, b) } else { palettes::nearest((r, g, b)) }
    }

    /// The colour as this terminal shows it.
    fn shown(&self, paint: Paint) -> Option<Color> {
        match self.shown_depth() {
            ColorDepth::True | ColorDepth::Indexed => Some(self.ink(paint.rgb)),
            ColorDepth::Ansi => Some(paint.ansi),
            ColorDepth::None => None,
        }
    }

    fn color(&self, paint: Paint) -> Style {
        self.shown(paint).filter(|color| *color != Color::Reset).map_or(Style::new(), |color| Style::new().fg(color))
    }

    /// Ordinary text: the terminal's own.
    pub fn plain(&self) -> Style {
        Style::new()
    }

    /// Text that matters: the verdict, the selected row.
    pub fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Text that steps back: units, axes, rules.
    pub fn dim(&self) -> Style {
        let style = self.color(self.colors().dim);
        if style.fg.is_none() { style.add_modifier(Modifier::DIM) } else { style }
    }

    /// The program's name, the focused panel, key names.
    pub fn accent(&self) -> Style {
        self.color(self.colors().accent).add_modifier(Modifier::BOLD)
    }

    /// All is well: live.
    pub fn good(&self) -> Style {
        self.color(self.colors().good).add_modifier(Modifier::BOLD)
    }

    /// Worth a look: frozen, spikes, old data.
    pub fn warning(&self) -> Style {
        self.color(self.colors().warning).add_modifier(Modifier::BOLD)
    }

    /// The sign that a bar was cut off, drawn on the bar.
    pub fn cut_off(&self) -> Style {
        let ink = match (self.shown_depth(), self.background) {
            (ColorDepth::None, _) => Style::new(),
            (ColorDepth::True | ColorDepth::Indexed, Background::Light) => Style::new().fg(Color::White),
            _ => Style::new().fg(Color::Black),
        };
        ink.add_modifier(Modifier::BOLD)
    }

    /// Something is lost or broken. Reversed, so that it is loud without colour too.
    pub fn alarm(&self) -> Style {
        self.color(self.colors().alarm).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// The series of a hardware reading.
    pub fn series(&self) -> Style {
        self.color(self.colors().series)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use gnntop_wire::phase;

    use super::*;

    fn all_phases() -> Vec<Option<&'static str>> {
        let own = ["decode", "augment", "gap", "データ", "decode 2"];
        phase::STANDARD.into_iter().chain(own).map(Some).chain([None]).collect()
    }

    #[test]
    fn phases_differ_without_colour() {
        for theme in [Theme::new(ColorDepth::None, false), Theme::new(ColorDepth::None, true)] {
            let looks = theme.phase_styles(all_phases());
            let letters: HashSet<char> = looks.iter().map(|look| look.letter).collect();
            let fills: HashSet<char> = looks.iter().map(|look| look.fill).collect();
            assert_eq!(letters.len(), looks.len(), "a letter each: {looks:?}");
            assert_eq!(fills.len(), looks.len(), "a fill each: {looks:?}");
            assert!(looks.iter().all(|look| look.color == Color::Reset && look.grain == (Color::Reset, Color::Reset)));
            assert!(!theme.ascii() || looks.iter().all(|look| look.fill.is_ascii()));
        }
    }

    #[test]
    fn phases_differ_in_colour_at_every_depth() {
        let depths = [ColorDepth::True, ColorDepth::Indexed, ColorDepth::Ansi];
        for (depth, palette) in depths.into_iter().flat_map(|depth| Palette::ALL.map(|palette| (depth, palette))) {
            for background in [Background::Dark, Background::Light] {
                let theme = Theme::new(depth, false).with_palette(palette).with_background(background);
                let looks = theme.phase_styles(all_phases());
                let colors: HashSet<Color> = looks.iter().map(|look| look.color).collect();
                assert!(!theme.has_color() || colors.len() == looks.len(), "{theme:?}: {looks:?}");
            }
        }
    }

    #[test]
    fn letters_and_fills_last_for_many_phases() {
        let names: Vec<String> = (0..32).map(|i| format!("phase {i}")).collect();
        let looks = Theme::new(ColorDepth::True, false).phase_styles(names.iter().map(|name| Some(name.as_str())));
        assert_eq!(looks.iter().map(|look| look.letter).collect::<HashSet<_>>().len(), 32);
        assert_eq!(looks.iter().map(|look| look.fill).collect::<HashSet<_>>().len(), 32);
    }

    #[test]
    fn fills_take_one_cell() {
        use unicode_width::UnicodeWidthChar;
        let looks = Theme::new(ColorDepth::True, false).phase_styles(all_phases());
        assert!(looks.iter().all(|look| look.fill.width() == Some(1) && look.letter.width() == Some(1)));
    }

    #[test]
    fn states_differ_without_colour() {
        let theme = Theme::new(ColorDepth::None, false);
        assert_ne!(theme.alarm(), theme.warning());
        assert_ne!(theme.accent(), theme.plain());
        assert_eq!(theme.alarm().fg, None);
    }

    #[test]
    fn the_terminals_own_colours_are_all_that_its_palette_uses() {
        let theme = Theme::new(ColorDepth::True, false).with_palette(Palette::Terminal);
        assert_eq!(theme.phase_styles([Some(phase::FORWARD)])[0].color, Color::Cyan);
        assert_eq!(theme.warning().fg, Some(Color::Yellow));
        assert_eq!((theme.dim().fg, theme.dim().add_modifier), (None, Modifier::DIM), "their greys may not show");
    }
}
