//! Work that a graph library does again each time though once is enough, by the functions that sampled stacks go through.

use gnntop_wire::phase::{DATA_WAIT, FORWARD};

use super::finding::Finding;
use super::number::Number;
use super::sampled_places::stacks_through;
use crate::figures::count;
use crate::store::Store;

/// Worth a word from this share of a phase's stacks, and this many.
const LEAST_SHARE: f64 = 0.15;
const FEWEST: u64 = 5;

/// Work in a phase, and what to do instead.
struct RepeatedWork {
    phase: &'static str,
    /// Whether a frame is of this work: its function and file.
    is_it: fn(&str, &str) -> bool,
    advice: &'static str,
}

/// What prepares a graph for a layer, and gives the same for the same graph (`torch_geometric.utils`).
const PREPARES: [&str; 9] = [
    "add_remaining_self_loops",
    "add_self_loops",
    "coalesce",
    "degree",
    "get_laplacian",
    "remove_self_loops",
    "sort_edge_index",
    "to_dense_adj",
    "to_undirected",
];

const REPEATED: [RepeatedWork; 3] = [
    RepeatedWork {
        phase: FORWARD,
        is_it: |function, file| function == "gcn_norm" && file.starts_with("torch_geometric/"),
        advice: "normalise the graph once: GCNConv(cached=True) if it stays the same, or the transform GCNNorm and GCNConv(normalize=False)",
    },
    RepeatedWork {
        phase: FORWARD,
        is_it: |function, file| PREPARES.contains(&function) && file.starts_with("torch_geometric/utils/"),
        advice: "do this once if the graph stays the same: before the loop, or in a transform",
    },
    // In what a dataset's items are made of. What is drawn at random has to be drawn again.
    RepeatedWork {
        phase: DATA_WAIT,
        is_it: |function, file| {
            file.starts_with("torch_geometric/transforms/")
                && function.ends_with(".forward")
                && !["Compose", "Random"].iter().any(|start| function.starts_with(start))
        },
        advice: "compute this once for each graph: pass it to the dataset as pre_transform, which stores its results, instead of transform",
    },
];

/// Adds such work in this phase, with what to do about it.
pub(super) fn describe(store: &Store, phase: &str, finding: Finding) -> Finding {
    let found = REPEATED.iter().filter(|work| work.phase == phase).filter_map(|work| {
        let is_it = |frame: &str| parts(frame).is_some_and(|(function, file)| (work.is_it)(function, file));
        Some((work, stacks_through(store, phase, is_it)?))
    });
    // Of equally many the first: it calls the others.
    let Some((work, found)) = found.rev().max_by_key(|(_, found)| found.stacks) else { return finding };
    if found.stacks < FEWEST || (found.stacks as f64) < LEAST_SHARE * found.all as f64 {
        return finding;
    }
    finding
        .with_evidence_from(|facts| {
            let stacks = facts.about(&found.function, |facts| facts.count(Number::Stacks, found.stacks));
            format!("{stacks} of {} stacks sampled in {phase} are in {}", count(found.all), found.function)
        })
        .with_advice(work.advice)
}

/// Function and file of a frame such as `gcn_norm (torch_geometric/nn/conv/gcn_conv.py:99)`.
fn parts(frame: &str) -> Option<(&str, &str)> {
    let (function, file) = frame.strip_suffix(')')?.split_once(" (")?;
    Some((function, file))
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::planned::StepPlan;
    use gnntop_fixtures::{MS, START_NS};
    use gnntop_wire::{Event, StackSample, TrackRole};

    use crate::findings::tests::{store_of, stream};
    use crate::findings::{Finding, FindingKind, Judgement};

    /// What is found where these stacks were sampled, innermost frame last.
    fn found(phases: Vec<(&'static str, u64)>, kind: FindingKind, paths: &[(&[&str], u64)]) -> Finding {
        let mut stream = stream(200, |_| StepPlan { phases: phases.clone(), ..StepPlan::default() }, &[]);
        let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
        for (frames, count) in paths {
            let path = stream.path(frames);
            let event = StackSample { path, t_ns: START_NS, count: *count, is_repeat: false };
            stream.event(track, Event::StackSample(event));
        }
        let found = Judgement::for_steps(&store_of(stream), 0..u64::MAX).findings.found;
        found.into_iter().find(|finding| finding.kind == kind).unwrap()
    }

    #[test]
    fn normalising_the_same_graph_in_each_step_is_named() {
        let conv = ["forward", "Net.forward (net.py:14)", "GCNConv.forward (torch_geometric/nn/conv/gcn_conv.py:241)"];
        let in_norm = |line| [&conv[..], &[line]].concat();
        let norm = [99, 111].map(|line| format!("gcn_norm (torch_geometric/nn/conv/gcn_conv.py:{line})"));
        let [early, late] = norm.each_ref().map(|norm| in_norm(norm.as_str()));
        let run = |stacks| {
            let paths = [(&early[..], stacks), (&late[..], stacks), (&conv[..], 60)];
            found(vec![("forward", 30 * MS), ("backward", 9 * MS)], FindingKind::Bound, &paths)
        };
        let it = run(10);
        let said = "20 of 80 stacks sampled in forward are in gcn_norm (torch_geometric/nn/conv/gcn_conv.py)";
        assert!(it.evidence.iter().any(|line| line == said), "{it:#?}");
        assert!(it.advice[0].contains("cached=True"), "{it:#?}");
        assert!(!run(3).advice[0].contains("cached=True"), "a tenth");
    }

    #[test]
    fn what_prepares_a_graph_is_named_unless_it_is_a_part_of_more() {
        let own = ["forward", "Net.forward (net.py:14)"];
        let loops = "add_remaining_self_loops (torch_geometric/utils/loop.py:650)";
        let run = |inner: &[&str]| {
            let path = [&own[..], inner].concat();
            found(vec![("forward", 30 * MS), ("backward", 9 * MS)], FindingKind::Bound, &[(&path, 40), (&own, 9)])
        };
        let it = run(&[
            "to_undirected (torch_geometric/utils/undirected.py:70)",
            "coalesce (torch_geometric/utils/_coalesce.py:9)",
        ]);
        assert!(it.evidence[0].contains("40 of 49 stacks sampled in forward are in to_undirected"), "{it:#?}");
        assert!(it.advice[0].starts_with("do this once if the graph"), "{it:#?}");
        let norm = run(&["gcn_norm (torch_geometric/nn/conv/gcn_conv.py:99)", loops]);
        assert!(norm.evidence[0].contains("gcn_norm") && norm.advice[0].contains("cached=True"), "{norm:#?}");
        let other = run(&["to_undirected (networkx/convert.py:70)"]);
        assert!(other.advice[0].starts_with("make Net.forward (net.py:14) cheaper"), "{other:#?}");
    }

    #[test]
    fn transforms_of_each_item_are_named_and_random_ones_are_not() {
        let own = ["data wait", "main (train.py:9)", "Dataset.__getitem__ (torch_geometric/data/dataset.py:1)"];
        let compose = "Compose.forward (torch_geometric/transforms/compose.py:24)";
        let run = |transform: &str| {
            let path = [&own[..], &[compose, transform]].concat();
            found(vec![("data wait", 30 * MS), ("forward", 9 * MS)], FindingKind::DataBound, &[(&path, 40), (&own, 9)])
        };
        let it = run("AddRandomWalkPE.forward (torch_geometric/transforms/add_positional_encoding.py:50)");
        assert!(it.advice[0].contains("pre_transform"), "{it:#?}");
        assert!(
            it.evidence[0].starts_with("40 of 49 stacks sampled in data wait are in AddRandomWalkPE.forward"),
            "{it:#?}"
        );
        let random = run("RandomJitter.forward (torch_geometric/transforms/random_jitter.py:30)");
        assert!(!random.advice[0].contains("pre_transform"), "{random:#?}");
    }
}
