//! Characters that are drawn as shapes, because a font of another height would tear them apart: blocks, shades, lines,
//! braille.

use std::fmt::Write;

/// Size of a cell in the picture's units.
pub const WIDTH: f64 = 8.0;
/// Its height.
pub const HEIGHT: f64 = 16.0;

/// Dots of a braille character by bit: column and row.
const DOTS: [(f64, f64); 8] =
    [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];

/// What is drawn in one colour: the path of an SVG. Rectangles that are drawn side by side are one.
#[derive(Debug, Default)]
pub struct Shape {
    path: String,
    /// The newest, which may become wider: left, top, width and height.
    rect: Option<[f64; 4]>,
}

impl Shape {
    /// Adds a rectangle.
    pub fn add_rect(&mut self, left: f64, top: f64, width: f64, height: f64) {
        match &mut self.rect {
            Some([x, y, wide, high]) if *y == top && *high == height && *x + *wide == left => *wide += width,
            _ => {
                self.end_rect();
                self.rect = Some([left, top, width, height]);
            }
        }
    }

    /// The path.
    pub fn finish(mut self) -> String {
        self.end_rect();
        self.path
    }

    fn end_rect(&mut self) {
        if let Some([left, top, width, height]) = self.rect.take() {
            // Writing to a string cannot fail.
            let _ = write!(self.path, "M{left} {top}h{width}v{height}h-{width}z");
        }
    }
}

/// Adds the shape of `c` in the cell with this upper left corner; false if it is a letter.
pub fn trace(c: char, x: f64, y: f64, shape: &mut Shape) -> bool {
    let mut rect = |left: f64, top: f64, width: f64, height: f64| shape.add_rect(x + left, y + top, width, height);
    match c {
        '█' => rect(0.0, 0.0, WIDTH, HEIGHT),
        '▁'..='▇' => {
            let height = 2.0 * f64::from(c as u32 - 0x2580);
            rect(0.0, HEIGHT - height, WIDTH, height);
        }
        '▌' => rect(0.0, 0.0, WIDTH / 2.0, HEIGHT),
        '▀' => rect(0.0, 0.0, WIDTH, HEIGHT / 2.0),
        '▚' => {
            rect(0.0, 0.0, WIDTH / 2.0, HEIGHT / 2.0);
            rect(WIDTH / 2.0, HEIGHT / 2.0, WIDTH / 2.0, HEIGHT / 2.0);
        }
        '▞' => {
            rect(WIDTH / 2.0, 0.0, WIDTH / 2.0, HEIGHT / 2.0);
            rect(0.0, HEIGHT / 2.0, WIDTH / 2.0, HEIGHT / 2.0);
        }
        '░' | '▒' | '▓' => shade(c, rect),
        '─' => rect(0.0, 7.5, WIDTH, 1.0),
        '│' => rect(3.5, 0.0, 1.0, HEIGHT),
        '┼' => {
            rect(0.0, 7.5, WIDTH, 1.0);
            rect(3.5, 0.0, 1.0, HEIGHT);
        }
        '┤' => {
            rect(0.0, 7.5, 4.0, 1.0);
            rect(3.5, 0.0, 1.0, HEIGHT);
        }
        '├' => {
            rect(4.0, 7.5, 4.0, 1.0);
            rect(3.5, 0.0, 1.0, HEIGHT);
        }
        '┊' => (0..4).for_each(|dash| rect(3.5, 4.0 * f64::from(dash) + 1.0, 1.0, 2.0)),
        '·' => rect(3.25, 7.25, 1.5, 1.5),
        '╱' | '╲' | '╳' => diagonals(c, x, y, shape),
        '\u{2800}'..='\u{28ff}' => {
            let bits = c as u32 - 0x2800;
            for (_, (column, row)) in DOTS.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1) {
                rect(1.0 + 4.0 * column, 1.0 + 4.0 * row, 2.0, 2.0);
            }
        }
        _ => return false,
    }
    true
}

/// Dots: a quarter, a half or three quarters of the cell.
fn shade(c: char, mut rect: impl FnMut(f64, f64, f64, f64)) {
    for row in 0..8 {
        for column in 0..4 {
            let is_even = (row + column) % 2 == 0;
            let is_dot = match c {
                '░' => is_even && row % 2 == 0,
                '▒' => is_even,
                _ => is_even || row % 2 == 0,
            };
            if is_dot {
                rect(2.0 * f64::from(column), 2.0 * f64::from(row), 2.0, 2.0);
            }
        }
    }
}

/// Slanted lines from corner to corner.
fn diagonals(c: char, x: f64, y: f64, shape: &mut Shape) {
    let (right, bottom) = (x + WIDTH, y + HEIGHT);
    if c != '╲' {
        let _ = write!(shape.path, "M{} {y}h1L{} {bottom}h-1z", right - 1.0, x + 1.0);
    }
    if c != '╱' {
        let _ = write!(shape.path, "M{x} {y}h1L{right} {bottom}h-1z");
    }
}
