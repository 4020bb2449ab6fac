//! What a seed brings into a sampled batch, and whether that rises.

use crate::findings::batch_fit::BatchMeasure;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::Finding;
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::store::StepRow;

/// It rises if the last third of the steps has this many times as much as the first.
const RISES: f64 = 1.2;

/// Adds how many nodes and edges there are for each seed, if batches are sampled.
pub(super) fn describe(evidence: &StepEvidence<'_>, finding: Finding) -> Finding {
    let usual = |measure| evidence.median(|row| for_seed(row, measure));
    let (Some(nodes), edges) = (usual(BatchMeasure::Nodes), usual(BatchMeasure::Edges)) else { return finding };
    let growth = growth(evidence).filter(|ratio| *ratio >= RISES);
    finding.with_evidence_from(|facts| {
        let nodes = facts.number(Number::NodesPerSeed, nodes);
        let edges = edges.map(|edges| format!(" and {:.0} edges", facts.number(Number::EdgesPerSeed, edges)));
        let growth = growth.map(|ratio| {
            let ratio = facts.number(Number::SeedGrowth, ratio);
            format!("; the last third of the steps has {ratio:.1} x the nodes of the first")
        });
        let [edges, growth] = [edges, growth].map(Option::unwrap_or_default);
        format!("each seed brings {nodes:.0} nodes{edges} into its batch{growth}")
    })
}

/// How many times as many nodes a seed brings in the last third of the steps as in the first.
fn growth(evidence: &StepEvidence<'_>) -> Option<f64> {
    let third = evidence.rows.len() / 3;
    let usual = |rows: &[StepRow<'_>]| {
        median(&mut rows.iter().filter_map(|row| for_seed(row, BatchMeasure::Nodes)).collect::<Vec<f64>>())
    };
    let (first, last) = (usual(&evidence.rows[..third])?, usual(&evidence.rows[evidence.rows.len() - third..])?);
    (first > 0.0).then(|| last / first)
}

fn for_seed(row: &StepRow<'_>, measure: BatchMeasure) -> Option<f64> {
    let seeds = row.batch().seeds.filter(|seeds| *seeds > 0)?;
    Some(measure.value(row)? as f64 / seeds as f64)
}
