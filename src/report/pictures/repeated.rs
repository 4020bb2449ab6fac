//! Repeated layers as one strip: spans whose names differ in a number alone.

use crate::report::document::markup::escaped;
use crate::report::sections::durations::SpanLine;
use gnntop_analysis::figures::{duration, percent};

/// Spans that it takes.
const LEAST: usize = 3;

/// Spans whose names differ in a number alone.
#[derive(Clone, Debug)]
pub(in crate::report) struct Repeated<'r> {
    /// The name, with the numbers from first to last.
    pub name: String,
    /// Its spans, by their number.
    pub spans: Vec<&'r SpanLine>,
}

/// What a name has before and after its number.
type Around<'n> = (&'n str, &'n str);

/// The groups of at least three, in the order of the spans.
pub(in crate::report) fn groups(spans: &[SpanLine]) -> Vec<Repeated<'_>> {
    let mut all: Vec<(Around<'_>, Vec<(u64, &SpanLine)>)> = Vec::new();
    for span in spans {
        let Some((before, number, after)) = numbered(&span.name) else { continue };
        match all.iter_mut().find(|(key, _)| *key == (before, after)) {
            Some((_, members)) => members.push((number, span)),
            None => all.push(((before, after), vec![(number, span)])),
        }
    }
    let long = all.into_iter().filter(|(_, members)| members.len() >= LEAST);
    long.map(|((before, after), members)| group(before, after, members)).collect()
}

fn group<'r>(before: &str, after: &str, mut members: Vec<(u64, &'r SpanLine)>) -> Repeated<'r> {
    members.sort_by_key(|(number, _)| *number);
    let [first, last] = [members.first(), members.last()].map(|one| one.map_or(0, |(number, _)| *number));
    let name = format!("{before}{first}..{last}{after}");
    Repeated { name, spans: members.into_iter().map(|(_, span)| span).collect() }
}

/// The first number in a name, with what is before and after it.
fn numbered(name: &str) -> Option<(&str, u64, &str)> {
    let start = name.find(|c: char| c.is_ascii_digit())?;
    let end = name[start..].find(|c: char| !c.is_ascii_digit()).map_or(name.len(), |length| start + length);
    Some((&name[..start], name[start..end].parse().ok()?, &name[end..]))
}

impl Repeated<'_> {
    /// Time of all its spans.
    pub(in crate::report) fn total_ns(&self) -> u64 {
        self.spans.iter().fold(0, |sum, span| sum.saturating_add(span.durations.total_ns))
    }

    /// Its spans side by side, each as wide as its time.
    pub(in crate::report) fn to_html(&self) -> String {
        let total = self.total_ns().max(1) as f64;
        let piece = |(at, span): (usize, &&SpanLine)| {
            let share = span.durations.total_ns as f64 / total;
            let mean = span.durations.mean_ns.map_or_else(String::new, |ns| format!(", mean {}", duration(ns as u64)));
            let text = format!("{}: {}{mean}", span.name, percent(share));
            let number = numbered(&span.name).filter(|_| share >= 0.03).map_or_else(String::new, |n| n.1.to_string());
            let class = ["p4", "p5"][at % 2];
            format!("<i class=\"{class}\" style=\"flex:{share:.5} 0 0\" title=\"{}\">{number}</i>", escaped(&text))
        };
        let pieces: String = self.spans.iter().enumerate().map(piece).collect();
        let (name, total) = (escaped(&self.name), duration(self.total_ns()));
        format!("<figure class=\"strip\"><small>{name}: {total} in all, by layer</small><div>{pieces}</div></figure>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sections::durations::Durations;
    use gnntop_analysis::store::Distribution;

    fn span(name: &str, ms: u64) -> SpanLine {
        let mut durations = Distribution::new();
        durations.record(ms * 1_000_000);
        SpanLine { name: name.to_owned(), durations: Durations::of(&durations, &[50.0]), share: None }
    }

    #[test]
    fn layers_whose_names_differ_in_a_number_are_one_strip() {
        let spans = ["layer 10", "evaluate", "layer 2", "layer 1", "conv1", "<b>3", "<b>4", "<b>5"].map(|n| span(n, 2));
        let groups = groups(&spans);
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["layer 1..10", "<b>3..5"], "two are no group");
        assert_eq!(groups[0].total_ns(), 6_000_000);
        let page: String = groups.iter().map(Repeated::to_html).collect();
        assert!(page.contains(">1</i>") && page.contains("&lt;b&gt;3") && !page.contains("<b>"), "{page}");
    }
}
