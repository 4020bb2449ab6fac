//! A few bars with names and values, as plain HTML.

use crate::report::document::markup::escaped;

/// One bar.
#[derive(Clone, Debug)]
pub(in crate::report) struct NamedBar {
    pub name: String,
    pub value: f64,
    /// The value, for people.
    pub text: String,
    /// A class of the page's style.
    pub class: &'static str,
}

/// The bars on one scale from zero to `most`, or to the longest; empty for none.
pub(in crate::report) fn bars(bars: &[NamedBar], most: Option<f64>) -> String {
    let most = most.unwrap_or_else(|| bars.iter().map(|bar| bar.value).fold(0.0, f64::max));
    if bars.is_empty() || most <= 0.0 || !most.is_finite() {
        return String::new();
    }
    let bar = |bar: &NamedBar| {
        let width = (bar.value / most * 100.0).clamp(0.0, 100.0);
        format!(
            "<span>{}</span><div><i class=\"{}\" style=\"left:0;width:{width:.1}%\"></i></div><b>{}</b>",
            escaped(&bar.name),
            bar.class,
            escaped(&bar.text)
        )
    };
    format!("<figure class=\"bars\">{}</figure>", bars.iter().map(bar).collect::<String>())
}
