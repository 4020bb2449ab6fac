//! Steps by class: warm-up, full batches, partial batches, with time per sample and edge.

use serde::Serialize;

use super::durations::{self, Durations};
use crate::report::document::{Block, ComparisonTable};
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::duration;

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

/// The classes that have steps, over those that are held one by one.
pub(in crate::report) fn class_lines(figures: &Catalogue<'_>, percentages: &[f64]) -> Vec<ClassLine> {
    let line = |(name, subject): (&'static str, &str)| {
        let steps = figures.subject(subject, "");
        ClassLine {
            name,
            durations: Durations::new(steps, percentages),
            per_graph_ns: steps.value(Statistic::PerGraph),
            per_node_ns: steps.value(Statistic::PerNode),
            per_edge_ns: steps.value(Statistic::PerEdge),
            per_seed_ns: steps.value(Statistic::PerSeed),
        }
    };
    let has_partial = figures.value("partial_batch.count").is_some_and(|count| count > 0.0);
    let rest = if has_partial { "full batch" } else { "step" };
    let all = [("warm-up", "warm_up"), (rest, "full_batch"), ("partial batch", "partial_batch")];
    all.map(line).into_iter().filter(|line| line.durations.count > 0).collect()
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
