//! The program's lines that wait for an all-reduce, from sampled stacks.

use gnntop_wire::phase::ALL_REDUCE;

use crate::findings::finding::Finding;
use crate::findings::sampled_places::SampledPlaces;
use crate::store::Store;

/// Where stacks of an all-reduce are: in its phase, or under the span of a backward pass that sends gradients meanwhile.
const SAMPLED_IN: [&str; 2] = [ALL_REDUCE, "backward and all-reduce"];

/// Adds them to a finding, if stacks were sampled.
pub(super) fn add(store: &Store, finding: Finding) -> Finding {
    finding.with_evidence_lines(|facts| {
        let lines = SAMPLED_IN.map(|part| SampledPlaces::in_phase(store, part).lines(facts, part));
        lines.into_iter().flatten().collect::<Vec<String>>()
    })
}
