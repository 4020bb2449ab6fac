//! How things look: colours, glyphs and the looks of phases, degrading with what the terminal can do.
//!
//! Colour never carries a meaning alone. Each phase has a letter and a fill of its own, a warning has a word, the
//! cursor has a mark. The background stays the terminal's, so that light and dark terminals both read well.

use gnntop_wire::phase;
use ratatui::style::{Color, Modifier, Style};

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
}

/// A colour in the three depths that have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Paint {
    rgb: (u8, u8, u8),
    ansi: Color,
}

const fn paint(r: u8, g: u8, b: u8, ansi: Color) -> Paint {
    Paint { rgb: (r, g, b), ansi }
}

/// How a phase is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseLook {
    /// Its letter, unique among the phases of a run.
    pub letter: char,
    /// What its part of a bar is filled with.
    pub fill: char,
    /// Its colour; the terminal's own where there are no colours.
    pub color: Color,
    /// The colour of a cell's foreground and background where the fill shows: a darker grain on the phase's colour.
    pub grain: (Color, Color),
}

impl PhaseLook {
    /// The look of what has none of its own.
    pub const UNKNOWN: Self = Self { letter: '?', fill: '?', color: Color::Reset, grain: (Color::Reset, Color::Reset) };

    /// The style of a cell filled with this phase.
    pub fn style(&self) -> Style {
        Style::new().fg(self.grain.0).bg(self.grain.1)
    }
}

/// A fill without grain.
const SOLID: char = '█';

/// Name, letter, fill and colour of the standard phases: the Okabe-Ito palette, lifted a little, whose
/// colours stay apart for people who do not see red and green alike.
const STANDARD_LOOKS: [(&str, char, char, Paint); 8] = [
    (phase::DATA_WAIT, 'W', '╱', paint(0xe6, 0x9f, 0x00, Color::Yellow)),
    (phase::SAMPLE, 'S', '╲', paint(0xd9, 0x8c, 0xb3, Color::Magenta)),
    (phase::GATHER, 'G', '╳', paint(0xd8, 0xcf, 0x5a, Color::LightYellow)),
    (phase::TRANSFER, 'T', '─', paint(0xd5, 0x6e, 0x2f, Color::Red)),
    (phase::FORWARD, 'F', '░', paint(0x63, 0xb3, 0xe4, Color::Cyan)),
    (phase::BACKWARD, 'B', SOLID, paint(0x2f, 0x7f, 0xc1, Color::Blue)),
    (phase::ALL_REDUCE, 'A', '┼', paint(0xb0, 0x6a, 0xc9, Color::LightMagenta)),
    (phase::OPTIMIZER, 'O', '▚', paint(0x17, 0xa3, 0x7c, Color::Green)),
];

/// Letter, fill and colour of the gap between phases: hardly there.
const GAP_LOOK: (char, char, Paint) = ('.', '·', paint(0x8a, 0x8a, 0x8a, Color::DarkGray));

/// Fills and colours of a program's own phases, in the order in which they turn up.
const OTHER_LOOKS: [(char, Paint); 5] = [
    ('│', paint(0x9a, 0x8c, 0xd8, Color::LightBlue)),
    ('▒', paint(0x7f, 0xb8, 0x6a, Color::LightGreen)),
    ('▞', paint(0xe0, 0x7b, 0x7b, Color::LightRed)),
    ('≈', paint(0x5f, 0xc4, 0xc0, Color::LightCyan)),
    ('▓', paint(0xb5, 0x96, 0x6b, Color::Gray)),
];

/// Colours and glyphs for everything on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    depth: ColorDepth,
    ascii: bool,
}

impl Theme {
    /// A theme for a terminal of this depth; `ascii` keeps to the 95 printable characters of ASCII.
    pub fn new(depth: ColorDepth, ascii: bool) -> Self {
        Self { depth, ascii }
    }

    /// Whether only ASCII is drawn.
    pub fn ascii(&self) -> bool {
        self.ascii
    }

    /// Whether cells have a colour for their foreground and another for their background.
    pub fn has_color(&self) -> bool {
        self.depth != ColorDepth::None
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
    pub fn phase_looks<'a>(&self, phases: impl IntoIterator<Item = Option<&'a str>>) -> Vec<PhaseLook> {
        let mut letters: Vec<char> = STANDARD_LOOKS.iter().map(|look| look.1).collect();
        let mut others = 0;
        let look = |phase: Option<&str>| {
            let Some(name) = phase else {
                return self.phase_look(GAP_LOOK.0, GAP_LOOK.1, GAP_LOOK.2);
            };
            if let Some(&(_, letter, fill, paint)) = STANDARD_LOOKS.iter().find(|look| look.0 == name) {
                return self.phase_look(letter, fill, paint);
            }
            let letter = free_letter(name, &letters);
            letters.push(letter);
            let (fill, paint) = OTHER_LOOKS[others % OTHER_LOOKS.len()];
            let fill = if others < OTHER_LOOKS.len() { fill } else { letter };
            others += 1;
            self.phase_look(letter, fill, paint)
        };
        phases.into_iter().map(look).collect()
    }

    fn phase_look(&self, letter: char, fill: char, paint: Paint) -> PhaseLook {
        let (r, g, b) = paint.rgb;
        let darker = |c: u8| (u16::from(c) * 3 / 4) as u8;
        let fill = if self.ascii { letter } else { fill };
        let (color, grain) = match self.depth {
            ColorDepth::True => (Color::Rgb(r, g, b), Color::Rgb(darker(r), darker(g), darker(b))),
            ColorDepth::Indexed => (indexed(r, g, b), indexed(darker(r), darker(g), darker(b))),
            // The sixteen have no darker twin that is sure to differ.
            ColorDepth::Ansi => (paint.ansi, Color::Black),
            ColorDepth::None => return PhaseLook { letter, fill, ..PhaseLook::UNKNOWN },
        };
        let grain = if fill == SOLID { color } else { grain };
        PhaseLook { letter, fill, color, grain: (grain, color) }
    }

    fn color(&self, paint: Paint) -> Style {
        let (r, g, b) = paint.rgb;
        match self.depth {
            ColorDepth::True => Style::new().fg(Color::Rgb(r, g, b)),
            ColorDepth::Indexed => Style::new().fg(indexed(r, g, b)),
            ColorDepth::Ansi => Style::new().fg(paint.ansi),
            ColorDepth::None => Style::new(),
        }
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
        match self.depth {
            ColorDepth::None => Style::new().add_modifier(Modifier::DIM),
            _ => self.color(paint(0x87, 0x87, 0x87, Color::DarkGray)),
        }
    }

    /// The program's name, the focused panel, key names.
    pub fn accent(&self) -> Style {
        self.color(paint(0x4f, 0xa3, 0xd9, Color::Cyan)).add_modifier(Modifier::BOLD)
    }

    /// All is well: live.
    pub fn good(&self) -> Style {
        self.color(paint(0x17, 0xa3, 0x7c, Color::Green)).add_modifier(Modifier::BOLD)
    }

    /// Worth a look: frozen, spikes, something stale.
    pub fn warning(&self) -> Style {
        self.color(paint(0xd9, 0x95, 0x00, Color::Yellow)).add_modifier(Modifier::BOLD)
    }

    /// The sign that a bar was cut off, drawn on the bar.
    pub fn cut_off(&self) -> Style {
        let ink = if self.has_color() { Style::new().fg(Color::Black) } else { Style::new() };
        ink.add_modifier(Modifier::BOLD)
    }

    /// Something is lost or broken. Reversed, so that it is loud without colour too.
    pub fn alarm(&self) -> Style {
        self.color(paint(0xd5, 0x5e, 0x3f, Color::Red)).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// The series of a hardware reading.
    pub fn series(&self) -> Style {
        self.color(paint(0x8f, 0xa3, 0xb5, Color::Gray))
    }
}

/// The first letter of the name that is free, else the first free one of the alphabet, else `?`.
fn free_letter(name: &str, taken: &[char]) -> char {
    let own = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase());
    own.chain('A'..='Z').chain('a'..='z').find(|letter| !taken.contains(letter)).unwrap_or('?')
}

/// The nearest of the 6 x 6 x 6 colours of the 256 (16..232) and their greys (232..256).
fn indexed(r: u8, g: u8, b: u8) -> Color {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |c: u8| (0..6u8).min_by_key(|&i| LEVELS[usize::from(i)].abs_diff(c)).unwrap_or(0);
    if r == g && g == b {
        return Color::Indexed(232 + (r.saturating_sub(3) / 10).min(23));
    }
    Color::Indexed(16 + 36 * nearest(r) + 6 * nearest(g) + nearest(b))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn detect(vars: &[(&str, &str)]) -> ColorDepth {
        ColorDepth::detect(|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()))
    }

    #[test]
    fn the_environment_decides_the_depth() {
        assert_eq!(detect(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), ColorDepth::True);
        assert_eq!(detect(&[("TERM", "xterm-direct")]), ColorDepth::True);
        assert_eq!(detect(&[("TERM", "screen-256color")]), ColorDepth::Indexed);
        assert_eq!(detect(&[("TERM", "linux")]), ColorDepth::Ansi);
        assert_eq!(detect(&[("TERM", "dumb"), ("COLORTERM", "truecolor")]), ColorDepth::None);
        assert_eq!(detect(&[]), ColorDepth::None);
        assert_eq!(detect(&[("TERM", "xterm"), ("NO_COLOR", "1")]), ColorDepth::None);
        assert_eq!(detect(&[("TERM", "xterm"), ("NO_COLOR", "")]), ColorDepth::Ansi, "empty does not count");
    }

    fn all_phases() -> Vec<Option<&'static str>> {
        let own = ["decode", "augment", "gap", "データ", "decode 2"];
        phase::STANDARD.into_iter().chain(own).map(Some).chain([None]).collect()
    }

    #[test]
    fn phases_differ_without_colour() {
        for theme in [Theme::new(ColorDepth::None, false), Theme::new(ColorDepth::None, true)] {
            let looks = theme.phase_looks(all_phases());
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
        for depth in [ColorDepth::True, ColorDepth::Indexed, ColorDepth::Ansi] {
            let looks = Theme::new(depth, false).phase_looks(all_phases());
            let colors: HashSet<Color> = looks.iter().map(|look| look.color).collect();
            assert_eq!(colors.len(), looks.len(), "{depth:?}: {looks:?}");
        }
    }

    #[test]
    fn letters_and_fills_last_for_many_phases() {
        let names: Vec<String> = (0..32).map(|i| format!("phase {i}")).collect();
        let looks = Theme::new(ColorDepth::True, false).phase_looks(names.iter().map(|name| Some(name.as_str())));
        assert_eq!(looks.iter().map(|look| look.letter).collect::<HashSet<_>>().len(), 32);
        assert_eq!(looks.iter().map(|look| look.fill).collect::<HashSet<_>>().len(), 32);
    }

    #[test]
    fn fills_take_one_cell() {
        use unicode_width::UnicodeWidthChar;
        let looks = Theme::new(ColorDepth::True, false).phase_looks(all_phases());
        assert!(looks.iter().all(|look| look.fill.width() == Some(1) && look.letter.width() == Some(1)));
    }

    #[test]
    fn states_differ_without_colour() {
        let theme = Theme::new(ColorDepth::None, false);
        assert_ne!(theme.alarm(), theme.warning());
        assert_ne!(theme.accent(), theme.plain());
        assert_eq!(theme.alarm().fg, None);
    }
}
