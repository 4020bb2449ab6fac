//! A chart with a scale to its left: what all charts share.

use std::fmt::Write;

use crate::report::document::markup::escaped;

/// Size of a drawing in its own units; the page stretches it.
pub(in crate::report) const WIDTH: f64 = 1000.0;
pub(in crate::report) const HEIGHT: f64 = 100.0;

/// A chart.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Plot {
    /// What it shows; empty for a picture inside a finding, which has no frame.
    pub title: String,
    /// What its scale says, from top to bottom.
    pub scale: Vec<String>,
    /// The line under the drawing: a text and how far to the right its middle is (0 to 1), or at the ends.
    pub below: Vec<(Option<f64>, String)>,
    /// What the readout says under the pointer, for columns of equal width.
    pub values: Vec<String>,
    /// SVG in [`WIDTH`] by [`HEIGHT`].
    pub drawing: String,
    /// HTML below the chart.
    pub legend: String,
    /// Whether it is drawn low, as one of several.
    pub is_small: bool,
}

impl Plot {
    pub(in crate::report) fn to_html(&self) -> String {
        let class = match (self.title.is_empty(), self.is_small) {
            (true, _) => "plot bare",
            (_, true) => "plot small",
            _ => "plot",
        };
        let mut out = format!("<figure class=\"{class}\">");
        if !self.title.is_empty() {
            let _ = write!(out, "<figcaption><b>{}</b><output></output></figcaption>", escaped(&self.title));
        }
        out += "<div class=\"frame\">";
        if !self.scale.is_empty() {
            let marks: String = self.scale.iter().map(|text| format!("<span>{}</span>", escaped(text))).collect();
            let _ = write!(out, "<div class=\"scale\">{marks}</div>");
        }
        let _ = write!(
            out,
            "<div class=\"area\"{}><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\">{}</svg></div>",
            self.reading(),
            self.drawing
        );
        if !self.below.is_empty() {
            let text = |(at, text): &(Option<f64>, String)| match at {
                Some(at) => format!("<span style=\"left:{:.1}%\">{}</span>", at * 100.0, escaped(text)),
                None => format!("<span>{}</span>", escaped(text)),
            };
            let _ = write!(out, "<div class=\"ends\">{}</div>", self.below.iter().map(text).collect::<String>());
        }
        out += "</div>";
        if !self.legend.is_empty() {
            let _ = write!(out, "<div class=\"legend\">{}</div>", self.legend);
        }
        out + "</figure>"
    }

    /// What makes the values readable by pointer and keys.
    fn reading(&self) -> String {
        if self.values.is_empty() || self.title.is_empty() {
            return String::new();
        }
        let values: Vec<String> = self.values.iter().map(|text| escaped(text)).collect();
        let title = escaped(&self.title);
        format!(
            " tabindex=\"0\" role=\"img\" aria-label=\"{title}: arrow keys read values\" data-v=\"{}\"",
            values.join("\n")
        )
    }
}

/// Lines of the scale at these heights (0 at the bottom, 1 at the top).
pub(in crate::report) fn grid(heights: &[f64]) -> String {
    let line = |height: &f64| {
        let y = (1.0 - height) * HEIGHT;
        format!("<path class=\"grid\" d=\"M0 {y:.1}H{WIDTH}\"/>")
    };
    heights.iter().map(line).collect()
}

/// A line through heights (0 to 1) of columns of equal width, as the data of a path; it breaks where a height is
/// missing.
pub(in crate::report) fn line(heights: impl ExactSizeIterator<Item = Option<f64>>) -> String {
    let width = WIDTH / heights.len().max(1) as f64;
    let mut pen = 'M';
    let mut data = String::new();
    for (at, height) in heights.enumerate() {
        let Some(height) = height else {
            pen = 'M';
            continue;
        };
        let _ = write!(data, "{pen}{:.1} {:.1}", (at as f64 + 0.5) * width, (1.0 - height.clamp(0.0, 1.0)) * HEIGHT);
        pen = 'L';
    }
    data
}

/// Bars from the bottom, with heights (0 to 1) of columns of equal width, as the data of one path.
pub(in crate::report) fn columns(heights: impl ExactSizeIterator<Item = f64>) -> String {
    let width = WIDTH / heights.len().max(1) as f64;
    let mut data = format!("M0 {HEIGHT}");
    for (at, height) in heights.enumerate() {
        let _ = write!(data, "V{:.1}H{:.1}", (1.0 - height.clamp(0.0, 1.0)) * HEIGHT, (at + 1) as f64 * width);
    }
    data + &format!("V{HEIGHT}Z")
}

/// An entry of a legend: a class of the style, and what has it. `sign` is `line`, `dash` or empty for a square.
pub(in crate::report) fn key(class: &str, sign: &str, text: &str) -> String {
    format!("<span class=\"key\"><i class=\"{class} {sign}\"></i>{}</span>", escaped(text))
}
