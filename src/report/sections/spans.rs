//! Spans that are not phases, repeated layers together: those whose names differ in a number alone.

use std::cmp::Reverse;

use serde::Serialize;

use super::durations::{self, DETAILS, Durations};
use crate::report::document::Block;
use crate::report::document::markup::escaped;
use crate::report::options::Options;
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::{count, duration, percent};

/// Spans that are not folded.
const SHOWN: usize = 10;
/// Fewest spans whose names differ in a number alone that share a row.
const LEAST: usize = 3;

/// Durations of all spans of one name.
#[derive(Clone, Debug, Serialize)]
pub struct SpanLine {
    /// The name.
    pub name: String,
    /// Its durations.
    #[serde(flatten)]
    pub durations: Durations,
    /// Total as a share of the time covered; more than 1 where threads run side by side.
    pub share: Option<f64>,
}

/// The spans with the largest totals. Phases are left out where there are steps, which show them.
pub(in crate::report) fn span_lines(figures: &Catalogue<'_>, options: &Options) -> Vec<SpanLine> {
    let store = figures.store();
    let has_steps = store.statistics().steps() > 0;
    let mut spans: Vec<_> = store.spans().iter().filter(|span| !(span.is_phase && has_steps)).collect();
    spans.sort_by_key(|span| (Reverse(span.durations.total_ns()), span.name));
    let line = |name: &str| {
        let subject = figures.subject("span.SPAN", name);
        let durations = Durations::new(subject, &options.percentiles);
        SpanLine { name: name.to_owned(), durations, share: subject.value(Statistic::Share) }
    };
    spans.iter().take(options.top_spans).map(|span| line(store.name(span.name))).collect()
}

/// The section: repeated layers in one row and as a strip, the rest beyond ten rows folded. Nothing without spans.
pub(in crate::report) fn blocks(spans: &[SpanLine]) -> Vec<Block> {
    let Some(all) = table(&spans.iter().collect::<Vec<_>>()) else { return Vec::new() };
    let heading = Block::heading("Spans");
    let groups = groups(spans);
    if groups.is_empty() && spans.len() <= SHOWN {
        return vec![heading, all];
    }
    let mut short: Vec<Block> = groups.iter().map(|group| Block::picture(group.to_html())).collect();
    short.push(grouped(spans, &groups));
    vec![heading, Block::Folded { line: format!("All {} spans", spans.len()), short, all: vec![all] }]
}

fn table(spans: &[&SpanLine]) -> Option<Block> {
    durations::table("span", spans.iter().map(|line| (line.name.clone(), &line.durations, line.share)))
}

/// The longest, repeated ones in one row.
fn grouped(spans: &[SpanLine], groups: &[Repeated<'_>]) -> Block {
    let is_repeated =
        |span: &SpanLine| groups.iter().any(|group| group.spans.iter().any(|one| std::ptr::eq(*one, span)));
    let all: Vec<&SpanLine> = spans.iter().collect();
    let Some(Block::Table { rows, details }) = table(&all) else { return Block::table(Vec::new()) };
    let mut rows = rows.into_iter();
    let head = rows.next().unwrap_or_default();
    let singles = spans.iter().zip(rows).filter(|(span, _)| !is_repeated(span));
    let mut timed: Vec<(u64, Vec<String>)> = singles.map(|(span, row)| (span.durations.total_ns, row)).collect();
    timed.extend(groups.iter().map(|group| (group.total_ns(), group.row(head.len()))));
    timed.sort_by_key(|(total, _)| Reverse(*total));
    let rows = std::iter::once(head).chain(timed.into_iter().take(SHOWN - 1).map(|(_, row)| row)).collect();
    Block::Table { rows, details }
}

/// Spans whose names differ in a number alone.
#[derive(Clone, Debug)]
struct Repeated<'r> {
    /// The name, with the numbers from first to last.
    name: String,
    /// Its spans, by their number.
    spans: Vec<&'r SpanLine>,
}

/// What a name has before and after its number.
type SpanPlace<'n> = (&'n str, &'n str);

/// The groups of at least three, in the order of the spans.
fn groups(spans: &[SpanLine]) -> Vec<Repeated<'_>> {
    let mut all: Vec<(SpanPlace<'_>, Vec<(u64, &SpanLine)>)> = Vec::new();
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
    /// One row with the common figures.
    fn row(&self, columns: usize) -> Vec<String> {
        let total = self.total_ns();
        let number: u64 = self.spans.iter().map(|span| span.durations.count).sum();
        let longest = self.spans.iter().filter_map(|span| span.durations.max_ns).max();
        let share = self.spans.iter().map(|span| span.share).sum::<Option<f64>>();
        let mut row = vec![self.name.clone(), count(number), duration(total / number.max(1))];
        row.resize(columns.saturating_sub(DETAILS.len() + 3), "-".to_owned());
        row.push(longest.map_or_else(|| "-".to_owned(), duration));
        row.extend([duration(total), share.map_or_else(|| "-".to_owned(), percent)]);
        row.resize(columns, "-".to_owned());
        row
    }

    /// Time of all its spans.
    fn total_ns(&self) -> u64 {
        self.spans.iter().fold(0, |sum, span| sum.saturating_add(span.durations.total_ns))
    }

    /// Its spans side by side, each as wide as its time.
    fn to_html(&self) -> String {
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

    fn span(name: &str, ms: u64) -> SpanLine {
        let durations = Durations { count: 1, total_ns: ms * 1_000_000, ..Durations::default() };
        SpanLine { name: name.to_owned(), durations, share: None }
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
