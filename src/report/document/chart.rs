//! Bars as SVG: a group of bars in each row, or one bar in pieces. Takes numbers and texts, returns one picture.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::markup::escaped;

/// Width of the picture, in its own units.
const WIDTH: f64 = 760.0;
/// Classes of the page's style that colour bars, in the legend's order: neighbours differ in grey as well.
const COLOURS: [&str; 8] = ["p5", "p4", "p3", "o1", "p7", "p1", "gap", "p0"];
/// Height of a bar with the room below it.
const BAR: f64 = 16.0;
/// Room between two groups.
const BETWEEN: f64 = 8.0;
/// Height of the title's line.
const TOP: f64 = 22.0;
/// Room for the numbers after the bars.
const NUMBERS: f64 = 120.0;
/// Approximate width of a letter; and of the widest names.
const LETTER: f64 = 6.6;
const WIDEST_NAMES: f64 = 300.0;

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its length, not negative.
    pub value: f64,
    /// The range of single runs; the value itself if there is one run.
    pub range: (f64, f64),
    /// The number in words.
    pub text: String,
}

/// Bars in groups, each group with a name and, in the order of the legend, a bar or none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// What the bars of a group are.
    pub legend: Vec<String>,
    /// The groups, from the top.
    pub groups: Vec<(String, Vec<Option<Bar>>)>,
    /// Whether a group's bars follow each other on one line, as the parts of a whole.
    pub is_stacked: bool,
}

impl Chart {
    /// As SVG; empty if there is no bar.
    pub(super) fn to_svg(&self) -> String {
        let lengths = self.groups.iter().map(|(_, bars)| self.length(bars));
        let longest = lengths.fold(0.0_f64, f64::max);
        if longest <= 0.0 || !longest.is_finite() {
            return String::new();
        }
        let names = self.groups.iter().map(|(name, _)| name.width() as f64 * LETTER + 8.0).fold(40.0, f64::max);
        let left = names.min(WIDEST_NAMES);
        let scale = (WIDTH - left - NUMBERS) / longest;
        let lines = if self.is_stacked { 1 } else { self.legend.len().max(1) } as f64;
        let group_height = lines * BAR + BETWEEN;
        let legend_top = TOP + group_height * self.groups.len() as f64 + 12.0;
        let legend_lines = if self.legend.len() > 1 { self.legend.len().div_ceil(3) } else { 0 };
        let (title, height) = (escaped(&self.title), legend_top + 16.0 * legend_lines as f64);
        let mut svg = format!(
            r#"<svg class="study" viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg"><title>{title}</title>"#
        );
        let _ = write!(svg, r#"<text x="0" y="14" font-weight="bold">{title}</text>"#);
        for (at, (name, bars)) in self.groups.iter().enumerate() {
            let top = TOP + group_height * at as f64;
            let middle = top + lines * BAR / 2.0 + 4.0;
            let _ = write!(svg, r#"<text x="{:.1}" y="{middle:.1}" text-anchor="end">"#, left - 6.0);
            let _ = write!(svg, "{}</text>", escaped(name));
            let frame = GroupFrame { left, top, scale };
            if self.is_stacked { pieces(&mut svg, bars, &frame) } else { side_by_side(&mut svg, bars, &frame) }
        }
        self.write_legend(&mut svg, legend_top);
        svg + "</svg>"
    }

    /// How long the longest line of a group is.
    fn length(&self, bars: &[Option<Bar>]) -> f64 {
        let ends =
            bars.iter().flatten().map(|bar| if self.is_stacked { bar.value } else { bar.value.max(bar.range.1) });
        if self.is_stacked { ends.sum() } else { ends.fold(0.0, f64::max) }
    }

    fn write_legend(&self, svg: &mut String, top: f64) {
        if self.legend.len() < 2 {
            return;
        }
        for (at, name) in self.legend.iter().enumerate() {
            let (x, y) = ((at % 3) as f64 * 250.0, top + 16.0 * (at / 3) as f64);
            let colour = COLOURS[at % COLOURS.len()];
            let _ = write!(svg, r#"<rect x="{x}" y="{:.1}" width="10" height="10" class="{colour}"/>"#, y - 9.0);
            let _ = write!(svg, r#"<text x="{}" y="{y:.1}">{}</text>"#, x + 16.0, escaped(name));
        }
    }
}

/// Where a group is drawn.
struct GroupFrame {
    left: f64,
    top: f64,
    scale: f64,
}

fn side_by_side(svg: &mut String, bars: &[Option<Bar>], frame: &GroupFrame) {
    for (at, bar) in bars.iter().enumerate() {
        let top = frame.top + BAR * at as f64;
        let Some(bar) = bar else {
            let _ = write!(svg, r#"<text x="{:.1}" y="{:.1}">-</text>"#, frame.left + 4.0, top + 11.0);
            continue;
        };
        let (width, colour) = (bar.value * frame.scale, COLOURS[at % COLOURS.len()]);
        let (x, height) = (frame.left, BAR - 3.0);
        let _ = write!(svg, r#"<rect x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height}" class="{colour}"/>"#);
        let (low, high) = (x + bar.range.0 * frame.scale, x + bar.range.1 * frame.scale);
        if high - low > 0.5 {
            let middle = top + height / 2.0;
            let _ = write!(svg, r#"<path d="M{low:.1} {middle:.1}H{high:.1}"/>"#);
        }
        let (x, y) = (high.max(x + width) + 5.0, top + 10.5);
        let _ = write!(svg, r#"<text x="{x:.1}" y="{y:.1}">{}</text>"#, escaped(&bar.text));
    }
}

fn pieces(svg: &mut String, bars: &[Option<Bar>], frame: &GroupFrame) {
    let mut x = frame.left;
    for (at, bar) in bars.iter().enumerate() {
        let Some(bar) = bar else { continue };
        let (width, colour) = (bar.value * frame.scale, COLOURS[at % COLOURS.len()]);
        let (top, height) = (frame.top, BAR - 1.0);
        let _ = write!(svg, r#"<rect x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height}" class="{colour}">"#);
        let _ = write!(svg, "<title>{}</title></rect>", escaped(&bar.text));
        if width > bar.text.width() as f64 * LETTER + 4.0 {
            let (x, y, text) = (x + 3.0, top + 11.5, escaped(&bar.text));
            let _ = write!(svg, r#"<text class="ink" x="{x:.1}" y="{y:.1}">{text}</text>"#);
        }
        x += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(value: f64) -> Option<Bar> {
        Some(Bar { value, range: (value * 0.9, value * 1.1), text: format!("{value} <s>") })
    }

    fn chart(is_stacked: bool) -> Chart {
        let groups = vec![("a & b".to_owned(), vec![bar(1.0), bar(2.0)]), ("c".to_owned(), vec![bar(4.0), None])];
        Chart { title: "times".to_owned(), legend: vec!["here".to_owned(), "there".to_owned()], groups, is_stacked }
    }

    #[test]
    fn every_bar_is_drawn_to_one_scale_and_names_are_escaped() {
        let svg = chart(false).to_svg();
        // Three bars and two colours in the legend.
        assert_eq!(svg.matches("<rect").count(), 5);
        assert!(svg.contains("a &amp; b") && svg.contains("4 &lt;s&gt;") && svg.contains(">-</text>"), "{svg}");
        let widths: Vec<f64> =
            svg.split("width=\"").skip(1).filter_map(|s| s.split('"').next()?.parse().ok()).collect();
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01 && (widths[2] / widths[0] - 4.0).abs() < 0.01, "{widths:?}");
    }

    #[test]
    fn stacked_pieces_follow_one_another() {
        let svg = chart(true).to_svg();
        let starts: Vec<f64> =
            svg.split("<rect x=\"").skip(1).filter_map(|s| s.split('"').next()?.parse().ok()).collect();
        assert!(starts[1] > starts[0] && (starts[2] - starts[0]).abs() < 0.01, "{starts:?}");
    }

    #[test]
    fn chart_without_numbers_is_empty() {
        assert_eq!(Chart::default().to_svg(), "");
        let mut empty = chart(false);
        empty.groups.iter_mut().for_each(|(_, bars)| bars.fill(None));
        assert_eq!(empty.to_svg(), "");
    }
}
