//! Neighbour sampling: that both forms hold what they say, that the choice is uniform, and that odd graphs do no harm.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gnntop_data::loading::BatchId;
use gnntop_data::nodes::Csr;
use gnntop_data::sampling::{NeighbourSampler, Sample, SampleError, SampleForm, SampledEdges, SamplerSettings};
use proptest::prelude::*;

const FORMS: [SampleForm; 2] = [SampleForm::Subgraph, SampleForm::Blocks];

fn batch(index: u64) -> BatchId {
    BatchId { epoch: 0, index }
}

fn settings(fanouts: &[usize], form: SampleForm) -> SamplerSettings {
    SamplerSettings { fanouts: fanouts.to_vec(), form, self_loops: false, seed: 11 }
}

fn sampler(graph: &Csr, settings: SamplerSettings) -> NeighbourSampler {
    NeighbourSampler::new(Arc::new(graph.clone()), settings).unwrap()
}

fn sampled(graph: &Csr, settings: SamplerSettings, seeds: &[u32], index: u64) -> Sample {
    let mut sample = Sample::default();
    sampler(graph, settings).sample(seeds, batch(index), &mut sample).unwrap();
    sample
}

/// `count` of something by value.
fn multiset(values: &[u32]) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    values.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
    counts
}

/// What a node can choose from.
fn candidates(graph: &Csr, self_loops: bool, node: u32) -> Vec<u32> {
    graph.neighbours(node).iter().copied().chain(self_loops.then_some(node)).collect()
}

/// The rows of a sampled layer, sources as numbered in the graph.
fn rows(sample: &Sample, edges: &SampledEdges) -> Vec<Vec<u32>> {
    let row = |bounds: &[u32]| {
        let local = &edges.source[bounds[0] as usize..bounds[1] as usize];
        local.iter().map(|&source| sample.nodes[source as usize]).collect()
    };
    edges.row_start.windows(2).map(row).collect()
}

/// That `row` is a choice of min(fanout, degree) of the edges into `node`, none taken twice.
fn check_row(graph: &Csr, settings: &SamplerSettings, hop: usize, node: u32, row: &[u32]) {
    let all = candidates(graph, settings.self_loops, node);
    assert_eq!(row.len(), all.len().min(settings.fanouts[hop]), "node {node}");
    let available = multiset(&all);
    for (source, count) in multiset(row) {
        assert!(count <= available.get(&source).copied().unwrap_or(0), "node {node} has {count} edges from {source}");
    }
}

/// Numbers nodes as they appear, the plain way.
#[derive(Default)]
struct Numbering {
    of: HashMap<u32, u32>,
    nodes: Vec<u32>,
}

impl Numbering {
    fn number(&mut self, node: u32) -> u32 {
        let next = self.nodes.len() as u32;
        *self.of.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            next
        })
    }
}

/// Follows the sample hop by hop with the plainest data structures: every hop must expand the right nodes, and every
/// source must have the number that its first appearance gives it.
fn check(graph: &Csr, settings: &SamplerSettings, seeds: &[u32], sample: &Sample) {
    let mut numbering = Numbering::default();
    for &seed in seeds {
        numbering.number(seed);
    }
    let hops = settings.fanouts.len();
    let mut expanded = 0;
    for hop in 0..hops {
        let reached = numbering.nodes.len();
        let (edges, first) = match settings.form {
            SampleForm::Subgraph => (&sample.layers[0], expanded),
            SampleForm::Blocks => (&sample.layers[hops - 1 - hop], 0),
        };
        let rows = rows(sample, edges);
        for (target, row) in rows.iter().enumerate().take(reached).skip(first) {
            check_row(graph, settings, hop, numbering.nodes[target], row);
            let local = &edges.source[edges.row_start[target] as usize..edges.row_start[target + 1] as usize];
            let expected: Vec<u32> = row.iter().map(|&source| numbering.number(source)).collect();
            assert_eq!(local, expected);
        }
        if settings.form == SampleForm::Blocks {
            assert_eq!((edges.targets(), edges.sources), (reached, numbering.nodes.len()));
        }
        expanded = reached;
    }
    assert_eq!(sample.nodes, numbering.nodes);
    assert_eq!(sample.seeds, seeds.len());
    if settings.form == SampleForm::Subgraph {
        let edges = &sample.layers[0];
        assert_eq!((sample.layers.len(), edges.targets(), edges.sources), (1, sample.nodes.len(), sample.nodes.len()));
        assert!(edges.row_start[expanded..].iter().all(|&start| start as usize == edges.source.len()));
    } else {
        assert_eq!(sample.layers.len(), hops);
    }
}

/// `nodes` nodes, each with the same number of in-neighbours, other nodes all.
fn regular(nodes: u32, degree: u32) -> Csr {
    let into = |node: u32| (1..=degree).map(move |step| ((node + step * 7) % nodes, node));
    Csr::from_edges(nodes as usize, &(0..nodes).flat_map(into).collect::<Vec<_>>()).unwrap()
}

/// Node 0 with an edge from each of the nodes `1..=leaves`.
fn star(leaves: u32) -> Csr {
    Csr::from_edges(leaves as usize + 1, &(1..=leaves).map(|leaf| (leaf, 0)).collect::<Vec<_>>()).unwrap()
}

#[test]
fn both_forms_follow_the_hops() {
    let graph = regular(500, 23);
    for form in FORMS {
        for self_loops in [false, true] {
            let settings = SamplerSettings { self_loops, ..settings(&[10, 5, 3], form) };
            let seeds: Vec<u32> = (0..40).map(|seed| seed * 11 % 500).collect();
            let sample = sampled(&graph, settings.clone(), &seeds, 0);
            check(&graph, &settings, &seeds, &sample);
            assert!(sample.nodes.len() > 300);
        }
    }
}

#[test]
fn unlimited_fanouts_give_the_whole_neighbourhood() {
    // 0 <- 1 <- 2 <- 3, 0 <- 2, and 4 apart.
    let graph = Csr::from_edges(5, &[(1, 0), (2, 0), (2, 1), (3, 2)]).unwrap();
    let all = [usize::MAX; 2];
    let subgraph = sampled(&graph, settings(&all, SampleForm::Subgraph), &[0, 4], 0);
    assert_eq!(subgraph.nodes, [0, 4, 1, 2, 3]);
    let edges = SampledEdges { row_start: vec![0, 2, 2, 3, 4, 4], source: vec![2, 3, 3, 4], sources: 5 };
    assert_eq!(subgraph.layers, [edges]);
    let blocks = sampled(&graph, settings(&all, SampleForm::Blocks), &[0, 4], 0);
    assert_eq!(blocks.nodes, [0, 4, 1, 2, 3]);
    let outer = SampledEdges { row_start: vec![0, 2, 2, 3, 4], source: vec![2, 3, 3, 4], sources: 5 };
    let inner = SampledEdges { row_start: vec![0, 2, 2], source: vec![2, 3], sources: 4 };
    assert_eq!(blocks.layers, [outer, inner]);
    assert_eq!((subgraph.edges(), blocks.edges()), (4, 6));
}

#[test]
fn self_loops_are_one_more_edge_to_choose() {
    // Node 0 has a loop already; node 2 has no edges.
    let graph = Csr::from_edges(3, &[(0, 0), (1, 0), (0, 1)]).unwrap();
    let settings = SamplerSettings { self_loops: true, ..settings(&[usize::MAX], SampleForm::Blocks) };
    let sample = sampled(&graph, settings, &[2, 0, 1], 0);
    assert_eq!(rows(&sample, &sample.layers[0]), [vec![2], vec![0, 1, 0], vec![0, 1]]);
}

#[test]
fn isolated_nodes_have_empty_rows() {
    let graph = Csr::from_edges(4, &[(0, 3)]).unwrap();
    for form in FORMS {
        let sample = sampled(&graph, settings(&[2, 2], form), &[1, 2], 0);
        assert_eq!((sample.nodes.as_slice(), sample.edges()), (&[1, 2][..], 0));
        assert!(sample.layers.iter().all(|edges| edges.row_start == [0, 0, 0] && edges.sources == 2));
    }
}

#[test]
fn no_seeds_give_the_empty_sample() {
    for form in FORMS {
        let sample = sampled(&regular(10, 3), settings(&[2, 2], form), &[], 0);
        assert_eq!((sample.nodes.len(), sample.seeds, sample.edges()), (0, 0, 0));
        assert!(sample.layers.iter().all(|edges| edges.row_start == [0]));
    }
}

#[test]
fn senseless_requests_are_refused() {
    let graph = Arc::new(regular(10, 3));
    let refused = |fanouts: &[usize]| {
        NeighbourSampler::new(Arc::clone(&graph), settings(fanouts, SampleForm::Blocks)).unwrap_err()
    };
    assert_eq!(refused(&[]), SampleError::NoFanouts);
    assert_eq!(refused(&[10, 0]), SampleError::ZeroFanout { hop: 2 });
    let mut sampler = sampler(&graph, settings(&[2], SampleForm::Blocks));
    let mut sample = Sample::default();
    let mut failed = |seeds: &[u32]| sampler.sample(seeds, batch(0), &mut sample).unwrap_err();
    assert_eq!(failed(&[1, 10]), SampleError::SeedOutOfRange { node: 10, nodes: 10 });
    assert_eq!(failed(&[1, 2, 1]), SampleError::DuplicateSeed { node: 1 });
    sampler.sample(&[1, 2], batch(0), &mut sample).unwrap();
    check(&graph, &settings(&[2], SampleForm::Blocks), &[1, 2], &sample);
}

/// Chi-square of `counts` against equal shares, in standard deviations from its mean.
fn deviation(counts: &[u64]) -> f64 {
    let share = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let square: f64 = counts.iter().map(|&count| (count as f64 - share).powi(2) / share).sum();
    let freedom = (counts.len() - 1) as f64;
    (square - freedom) / (2.0 * freedom).sqrt()
}

/// How often each subset of `fanout` of a star's leaves is drawn, by bit mask.
fn subsets(leaves: u32, fanout: usize, draws: u64) -> HashMap<u64, u64> {
    let mut sampler = sampler(&star(leaves), settings(&[fanout], SampleForm::Blocks));
    let mut sample = Sample::default();
    let mut counts = HashMap::new();
    for index in 0..draws {
        sampler.sample(&[0], batch(index), &mut sample).unwrap();
        let mask = sample.nodes[1..].iter().fold(0, |mask, leaf| mask | 1u64 << (leaf - 1));
        assert_eq!(mask.count_ones() as usize, fanout);
        *counts.entry(mask).or_insert(0) += 1;
    }
    counts
}

#[test]
fn every_subset_is_equally_likely() {
    // Leaves, fan-out, number of subsets; the last two are large enough to be drawn by marking.
    for (leaves, fanout, number) in [(6, 3, 20), (7, 2, 21), (9, 8, 9), (2, 1, 2), (34, 33, 34), (42, 40, 861)] {
        let counts = subsets(leaves, fanout, 40_000);
        assert_eq!(counts.len(), number);
        let counts: Vec<u64> = counts.into_values().collect();
        assert!(deviation(&counts).abs() < 4.0, "{fanout} of {leaves}: {}", deviation(&counts));
    }
}

#[test]
fn nodes_that_are_worked_on_together_choose_independently() {
    // 40 nodes of 8 in-neighbours each, in one batch: counts of (position chosen by one, position chosen by the next).
    let graph = regular(40, 8);
    let mut sampler = sampler(&graph, settings(&[1], SampleForm::Blocks));
    let seeds: Vec<u32> = (0..40).collect();
    let mut sample = Sample::default();
    let mut counts = vec![0u64; 64];
    for index in 0..4000 {
        sampler.sample(&seeds, batch(index), &mut sample).unwrap();
        let rows = rows(&sample, &sample.layers[0]);
        let position = |node: u32| graph.neighbours(node).binary_search(&rows[node as usize][0]).unwrap();
        (0..39).for_each(|node| counts[position(node) * 8 + position(node + 1)] += 1);
    }
    assert!(deviation(&counts).abs() < 4.0, "{}", deviation(&counts));
}

#[test]
fn a_hub_is_sampled_uniformly() {
    let leaves = 100_000;
    let graph = star(leaves);
    for (fanout, draws) in [(10, 4000), (1000, 40)] {
        let mut sampler = sampler(&graph, settings(&[fanout], SampleForm::Subgraph));
        let mut sample = Sample::default();
        let mut counts = vec![0u64; 100];
        for index in 0..draws {
            sampler.sample(&[0], batch(index), &mut sample).unwrap();
            // That no leaf is there twice: they are all numbered.
            assert_eq!(sample.nodes.len(), fanout + 1);
            sample.nodes[1..].iter().for_each(|leaf| counts[((leaf - 1) / 1000) as usize] += 1);
        }
        assert!(deviation(&counts).abs() < 4.0, "{fanout}: {}", deviation(&counts));
    }
}

#[test]
fn duplicate_edges_are_chosen_as_often_as_there_are() {
    // Two of four edges come from node 1: it is missing in 1 of 6 draws, single in 4 and double in 1.
    let graph = Csr::from_edges(4, &[(1, 0), (1, 0), (2, 0), (3, 0)]).unwrap();
    let mut sampler = sampler(&graph, settings(&[2], SampleForm::Blocks));
    let mut sample = Sample::default();
    let mut counts = [0u64; 3];
    for index in 0..30_000 {
        sampler.sample(&[0], batch(index), &mut sample).unwrap();
        let row = &rows(&sample, &sample.layers[0])[0];
        counts[row.iter().filter(|&&source| source == 1).count()] += 1;
    }
    let expected = [5000.0, 20_000.0, 5000.0];
    let square: f64 = counts.iter().zip(expected).map(|(&count, share)| (count as f64 - share).powi(2) / share).sum();
    assert!(square < 13.8, "chi-square with 2 degrees of freedom, 0.1 %: {square} of {counts:?}");
}

#[test]
fn the_batch_and_the_seed_decide_the_choice() {
    let graph = regular(200, 50);
    let seeds: Vec<u32> = (0..20).collect();
    for form in FORMS {
        let once = sampled(&graph, settings(&[5, 5], form), &seeds, 3);
        assert_eq!(once, sampled(&graph, settings(&[5, 5], form), &seeds, 3));
        assert_ne!(once, sampled(&graph, settings(&[5, 5], form), &seeds, 4));
        let other = SamplerSettings { seed: 12, ..settings(&[5, 5], form) };
        assert_ne!(once, sampled(&graph, other, &seeds, 3));
        // What was sampled before leaves no trace.
        let mut used = sampler(&graph, settings(&[5, 5], form));
        let mut again = Sample::default();
        used.sample(&[150, 7], batch(8), &mut again).unwrap();
        used.sample(&seeds, batch(3), &mut again).unwrap();
        assert_eq!(again, once);
    }
}

#[test]
fn threads_change_nothing() {
    let graph = regular(4000, 37);
    let seeds: Vec<u32> = (0..700).collect();
    for form in FORMS {
        let expected = sampled(&graph, settings(&[10, 40, 3], form), &seeds, 1);
        for threads in [1, 2, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut sampler = sampler(&graph, settings(&[10, 40, 3], form));
            sampler.set_use_all_threads(true);
            let mut sample = Sample::default();
            pool.install(|| sampler.sample(&seeds, batch(1), &mut sample)).unwrap();
            assert!(sample == expected, "{threads} threads, {form:?}");
        }
    }
}

#[test]
fn the_memory_is_used_again() {
    let graph = regular(4000, 37);
    let mut sampler = sampler(&graph, settings(&[10, 10], SampleForm::Blocks));
    let mut sample = Sample::default();
    sampler.sample(&(0..400).collect::<Vec<_>>(), batch(0), &mut sample).unwrap();
    let addresses = |sample: &Sample| sample.layers.iter().map(|edges| edges.source.as_ptr()).collect::<Vec<_>>();
    let before = addresses(&sample);
    sampler.sample(&(400..500).collect::<Vec<_>>(), batch(1), &mut sample).unwrap();
    assert_eq!(addresses(&sample), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_multigraph_is_sampled_as_the_plain_way_says(
        edges in proptest::collection::vec((0u32..30, 0u32..30), 0..300),
        fanouts in proptest::collection::vec(prop_oneof![1usize..8, 30usize..40, Just(usize::MAX)], 1..4),
        seeds in proptest::collection::hash_set(0u32..30, 0..30),
        subgraph: bool,
        self_loops: bool,
        seed: u64,
    ) {
        let graph = Csr::from_edges(30, &edges).unwrap();
        let form = if subgraph { SampleForm::Subgraph } else { SampleForm::Blocks };
        let settings = SamplerSettings { fanouts, form, self_loops, seed };
        let seeds: Vec<u32> = seeds.into_iter().collect();
        let sample = sampled(&graph, settings.clone(), &seeds, 5);
        check(&graph, &settings, &seeds, &sample);
    }
}
