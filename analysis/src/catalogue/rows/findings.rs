//! How often each kind of finding was seen, and what it costs.

use crate::catalogue::context::Context;
use crate::catalogue::measured::{Absent, Found, Outcome};
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::Unit;
use crate::findings::Kind;

pub(in crate::catalogue) const ROWS: &[Row] = &[Row {
    subject: "finding.KIND",
    about: "how often a kind of finding was seen, such as `finding.spike`, and the share of the wall time that it costs",
    names: Names::Own("spike", |_| Kind::ALL.iter().map(|kind| name(*kind)).collect()),
    statistics: |text| match kind(text) {
        Some(_) => vec![(Statistic::Count, Unit::Count), (Statistic::Share, Unit::Share)],
        None => Vec::new(),
    },
    get: |context, name, statistic| match kind(name) {
        Some(kind) => of_kind(context, kind, statistic),
        None => Absent::because("there is no such finding"),
    },
}];

/// The kind's id with the underscores of all figures.
fn name(kind: Kind) -> String {
    kind.id().replace('-', "_")
}

fn kind(text: &str) -> Option<Kind> {
    Kind::ALL.iter().copied().find(|kind| name(*kind) == text)
}

fn of_kind(context: &Context<'_>, kind: Kind, statistic: Statistic) -> Outcome {
    let findings = context.findings();
    if let Some(undecided) = findings.not_enough.iter().find(|undecided| undecided.kind == kind) {
        return Absent::because(undecided.reason.clone());
    }
    let found = findings.found.iter().filter(|finding| finding.kind == kind);
    let value = match statistic {
        Statistic::Share => found.map(|finding| finding.share).reduce(|a, b| Some(a? + b?)).unwrap_or(Some(0.0)),
        _ => Some(found.map(|finding| finding.count).sum::<u64>() as f64),
    };
    Found::in_all(value, "its cost is not known")
}
