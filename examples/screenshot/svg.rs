//! A screen as SVG: backgrounds, shapes, and text that keeps to its columns whatever the font.

use std::collections::BTreeMap;
use std::fmt::Write;

use gnntop::ui::theme::{Background, rgb_of_index};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

use super::glyphs::{self, HEIGHT, Shape, WIDTH};

/// Room around the screen.
const MARGIN: f64 = 8.0;
/// Where letters are in a cell.
const BASELINE: f64 = 12.5;
/// The sixteen as xterm has them, from black to white.
const SIXTEEN: [u32; 16] = [
    0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00,
    0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
];

/// The picture of a screen.
pub fn picture(buffer: &Buffer, background: Background) -> String {
    let (paper, ink) = match background {
        Background::Dark => ("#0d1117", "#d0d7de"),
        Background::Light => ("#ffffff", "#1f2328"),
    };
    let mut picture = SvgPicture { paper, ink, shapes: BTreeMap::new(), text: String::new() };
    for y in 0..buffer.area.height {
        picture.add_row(buffer, y);
    }
    let width = f64::from(buffer.area.width) * WIDTH + 2.0 * MARGIN;
    let height = f64::from(buffer.area.height) * HEIGHT + 2.0 * MARGIN;
    picture.finish(width, height)
}

struct SvgPicture {
    /// Colour of the background and of text without a colour.
    paper: &'static str,
    ink: &'static str,
    /// By layer and colour.
    shapes: BTreeMap<(u8, String), Shape>,
    text: String,
}

/// Cells of one style.
#[derive(Clone, PartialEq)]
struct CellStyle {
    ink: String,
    paper: Option<String>,
    bold: bool,
    dim: bool,
}

impl SvgPicture {
    fn cell_style(&self, cell: &Cell) -> CellStyle {
        let mut ink = hex(cell.fg).unwrap_or_else(|| self.ink.to_owned());
        let mut paper = hex(cell.bg);
        if cell.modifier.contains(Modifier::REVERSED) {
            let below = paper.take().unwrap_or_else(|| self.paper.to_owned());
            paper = Some(std::mem::replace(&mut ink, below));
        }
        let has = |modifier| cell.modifier.contains(modifier);
        CellStyle { ink, paper, bold: has(Modifier::BOLD), dim: has(Modifier::DIM) }
    }

    fn add_row(&mut self, buffer: &Buffer, y: u16) {
        let top = f64::from(y) * HEIGHT;
        let mut run: Option<(u16, String, CellStyle)> = None;
        let mut x = 0;
        while x < buffer.area.width {
            let cell = &buffer[(x, y)];
            let look = self.cell_style(cell);
            let columns = cell.symbol().width().max(1) as u16;
            let left = f64::from(x) * WIDTH;
            if let Some(paper) = look.paper.clone() {
                let width = WIDTH * f64::from(columns);
                self.shapes.entry((0, paper)).or_default().add_rect(left, top, width, HEIGHT);
            }
            let mut chars = cell.symbol().chars();
            let is_shape = match (chars.next(), chars.next()) {
                (Some(c), None) => glyphs::trace(c, left, top, self.shapes.entry((1, look.ink.clone())).or_default()),
                _ => false,
            };
            let continues = run.as_ref().is_some_and(|(_, _, before)| *before == look) && !is_shape;
            if !continues {
                self.add_text(run.take(), top);
            }
            if !is_shape {
                run.get_or_insert_with(|| (x, String::new(), look)).1.push_str(cell.symbol());
            }
            x += columns;
        }
        self.add_text(run, top);
    }

    /// Writes a run of letters, word by word, so that each begins at its column.
    fn add_text(&mut self, run: Option<(u16, String, CellStyle)>, top: f64) {
        let Some((x, text, look)) = run else { return };
        let mut at = 0;
        for word in text.split(' ') {
            let columns = word.width();
            if columns > 0 {
                let left = (f64::from(x) + at as f64) * WIDTH;
                let style = if look.bold { " font-weight=\"bold\"" } else { "" };
                let dim = if look.dim { " opacity=\"0.6\"" } else { "" };
                let _ = writeln!(
                    self.text,
                    "<text x=\"{left}\" y=\"{}\" textLength=\"{}\" fill=\"{}\"{style}{dim}>{}</text>",
                    top + BASELINE,
                    columns as f64 * WIDTH,
                    look.ink,
                    escaped(word)
                );
            }
            at += columns + 1;
        }
    }

    fn finish(self, width: f64, height: f64) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             font-family=\"'DejaVu Sans Mono',Menlo,Consolas,monospace\" font-size=\"13.2\">\n\
             <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{}\"/>\n\
             <g transform=\"translate({MARGIN} {MARGIN})\">\n",
            self.paper
        );
        let paths = self.shapes.into_iter().map(|((_, color), shape)| (color, shape.finish()));
        for (color, path) in paths.filter(|(_, path)| !path.is_empty()) {
            let _ = writeln!(svg, "<path fill=\"{color}\" shape-rendering=\"crispEdges\" d=\"{path}\"/>");
        }
        svg + &self.text + "</g>\n</svg>\n"
    }
}

/// The colour as SVG writes it; `None` for the terminal's own.
fn hex(color: Color) -> Option<String> {
    let of = |(r, g, b): (u8, u8, u8)| Some(format!("#{r:02x}{g:02x}{b:02x}"));
    let sixteen = |at: usize| SIXTEEN.get(at).map(|hex| format!("#{hex:06x}"));
    match color {
        Color::Reset => None,
        Color::Rgb(r, g, b) => of((r, g, b)),
        Color::Indexed(index @ 16..) => of(rgb_of_index(index)),
        Color::Indexed(index) => sixteen(usize::from(index)),
        named => NAMED.iter().position(|color| *color == named).and_then(sixteen),
    }
}

/// The sixteen by name, in the order of their numbers.
const NAMED: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn words_begin_at_their_columns_and_blocks_are_shapes() {
        let mut buffer = Buffer::with_lines(["a<b  前向 x", "█ ⠁", "████"]);
        buffer.set_style(ratatui::layout::Rect::new(0, 0, 3, 1), Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Red));
        let svg = picture(&buffer, Background::Dark);
        assert!(svg.contains(r##"<text x="0" y="12.5" textLength="24" fill="#010203">a&lt;b</text>"##), "{svg}");
        assert!(svg.contains(r##"<text x="40" y="12.5" textLength="32" fill="#d0d7de">前向</text>"##), "{svg}");
        assert!(svg.contains(r##"<text x="80""##), "after two wide characters: {svg}");
        assert!(svg.contains(r##"<path fill="#cd0000""##), "a background: {svg}");
        assert!(svg.contains("M0 16h8v16h-8z") && svg.contains("M17 17h2v2h-2z"), "a block and a dot: {svg}");
        assert!(svg.contains("M0 32h32v16h-32z"), "four blocks side by side: {svg}");
        assert!(!svg.contains('█'), "{svg}");
    }

    #[test]
    fn reversed_text_is_drawn_on_its_colour() {
        let mut buffer = Buffer::with_lines(["!"]);
        buffer[(0, 0)].set_style(Style::new().fg(Color::Indexed(196)).add_modifier(Modifier::REVERSED));
        let svg = picture(&buffer, Background::Light);
        assert!(svg.contains(r##"<path fill="#ff0000""##) && svg.contains(r##"fill="#ffffff">!</text>"##), "{svg}");
    }
}
