//! Steps by class: warm-up, full batches, partial batches, with time per sample and edge.

use serde::Serialize;

use super::durations::{self, Durations};
use crate::report::document::{Block, ComparisonTable};
use gnntop_analysis::figures::duration;
use gnntop_analysis::findings::{self, Class};
use gnntop_analysis::store::{BatchTotals, Distribution, StepRow, Store, Total};

/// Steps of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct ClassLine {
    /// `warm-up`, `full batch` or `partial batch`; `step` if batches are not distinguished.
    pub name: &'static str,
    /// How long they take, with the time since the step before.
    #[serde(flatten)]
    pub durations: Durations,
    /// Mean time for one graph.
    pub per_graph_ns: Option<f64>,
    /// Mean time for one node.
    pub per_node_ns: Option<f64>,
    /// Mean time for one directed edge.
    pub per_edge_ns: Option<f64>,
    /// Mean time for one seed node.
    pub per_seed_ns: Option<f64>,
}

/// The classes that have steps, over the rows from ordinal `skip` on that are held.
pub(in crate::report) fn class_lines(store: &Store, skip: u64, percentages: &[f64]) -> Vec<ClassLine> {
    let classes = findings::classes(store, skip..u64::MAX);
    let line = |name: &'static str, class: Class| {
        let rows = classes.iter().filter(|(_, of)| *of == class).map(|(row, _)| row);
        let (mut durations, mut totals) = (Distribution::new(), BatchTotals::default());
        rows.for_each(|row: &StepRow<'_>| {
            durations.record(row.period_ns());
            totals.add(&row.batch(), row.period_ns());
        });
        let per = |total: &Total| (total.sum > 0).then(|| total.period_ns as f64 / total.sum as f64);
        (durations.count() > 0).then(|| ClassLine {
            name,
            durations: Durations::new(&durations, percentages),
            per_graph_ns: per(&totals.graphs),
            per_node_ns: per(&totals.nodes),
            per_edge_ns: per(&totals.edges),
            per_seed_ns: per(&totals.seeds),
        })
    };
    let has_partial = classes.iter().any(|(_, class)| *class == Class::Partial);
    let rest = if has_partial { "full batch" } else { "step" };
    let all = [("warm-up", Class::WarmUp), (rest, Class::Full), ("partial batch", Class::Partial)];
    all.into_iter().filter_map(|(name, class)| line(name, class)).collect()
}

/// The section: how long steps of each kind take, where there are several, and what a graph, node, edge or seed costs.
pub(in crate::report) fn blocks(classes: &[ClassLine]) -> Vec<Block> {
    let lines = classes.iter().map(|line| (line.name.to_owned(), &line.durations, None));
    let times = durations::table("kind", lines).filter(|_| classes.len() > 1);
    let named: Vec<(&str, &ClassLine)> = classes.iter().map(|line| (line.name, line)).collect();
    let mut costs = ComparisonTable::new("cost", &named);
    let cost = |ns: Option<f64>| ns.map(|ns| duration(ns.round() as u64));
    costs.row("a graph", |line| cost(line.per_graph_ns));
    costs.row("a node", |line| cost(line.per_node_ns));
    costs.row("an edge", |line| cost(line.per_edge_ns));
    costs.row("a seed", |line| cost(line.per_seed_ns));
    let tables: Vec<Block> = times.into_iter().chain(costs.table()).collect();
    let heading = (!tables.is_empty()).then(|| Block::heading("Kinds of steps"));
    heading.into_iter().chain(tables).collect()
}
