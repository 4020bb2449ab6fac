//! Bars as plain HTML: a few with names and values, and how much longer or shorter B takes than A, with the 95 % interval of each
//! number.

use std::fmt::Write;

use crate::report::document::markup::escaped;
use gnntop_analysis::comparison::{Change, Compared, Comparison};

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

/// A line a number: the whole period's, then the mean of each phase. Empty where nothing was compared.
pub(in crate::report) fn intervals(comparison: &Comparison) -> String {
    let is_shown = |one: &&Compared| one.name == "period" || one.statistic == "mean" && one.name != "step";
    let all = comparison.lines.iter().flat_map(|line| &line.numbers).filter(is_shown);
    let shown: Vec<&Compared> = all.filter(|one| one.verdict != Change::TooFew).collect();
    let reach = |one: &&&Compared| {
        let (low, high) = one.interval.unwrap_or((one.change, one.change));
        one.change.abs().max(low.abs().min(1.0)).max(high.abs().min(1.0))
    };
    let most = shown.iter().map(|one| reach(&one)).fold(0.02, f64::max).min(2.0);
    if shown.is_empty() {
        return String::new();
    }
    let at = |change: f64| 50.0 + (change / most).clamp(-1.0, 1.0) * 50.0;
    let mut out = "<figure class=\"bars\">".to_owned();
    for one in shown {
        let (zero, end) = (50.0, at(one.change));
        let class = match one.verdict {
            Change::Faster => "good",
            Change::Slower => "alarm",
            _ => "series",
        };
        let _ = write!(
            out,
            "<span>{} {}</span><div><i class=\"{class}\" style=\"left:{:.1}%;width:{:.1}%\"></i><u style=\"left:50%\"></u>",
            escaped(&one.name),
            escaped(&one.statistic),
            end.min(zero),
            (end - zero).abs()
        );
        if let Some((low, high)) = one.interval {
            let _ = write!(out, "<s style=\"left:{:.1}%;width:{:.1}%\"></s>", at(low), at(high) - at(low));
        }
        let _ = write!(out, "</div><b>{:+.1} %, {}</b>", one.change * 100.0, one.verdict.as_str());
    }
    out + "</figure>"
}
