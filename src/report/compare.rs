//! A comparison as text: how much faster the work gets done, whether both ran the same, then the numbers.

use super::document::plain;
use gnntop_analysis::comparison::{Compared, Comparison, Line};
use gnntop_analysis::figures::duration;

/// The comparison for people. The caller says which recordings A and B are.
pub fn compared_in_text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for sentence in [comparison.headline(), comparison.sameness.sentence()] {
        plain::indented(&mut out, "", &sentence);
    }
    plain::indented(&mut out, "", &comparison.population());
    out.push('\n');
    plain::write(&mut out, &numbers(comparison));
    out.push_str("\nstep: from its own start; period: with the gap before it, as in work per second\n");
    out
}

/// All numbers as a table with its head.
pub(super) fn numbers(comparison: &Comparison) -> Vec<Vec<String>> {
    let head = ["", "", "A", "B", "change", "95 % interval", "B is"].map(str::to_owned).to_vec();
    let numbers = comparison.lines.iter().flat_map(|line: &Line| &line.numbers);
    std::iter::once(head).chain(numbers.map(cells)).collect()
}

fn cells(compared: &Compared) -> Vec<String> {
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let interval = |(low, high): (f64, f64)| format!("{} to {}", percent(low), percent(high));
    vec![
        compared.name.clone(),
        compared.statistic.clone(),
        duration(compared.first_ns as u64),
        duration(compared.second_ns as u64),
        percent(compared.change),
        compared.interval.map_or_else(|| "-".to_owned(), interval),
        compared.verdict.words().to_owned(),
    ]
}
