//! Generated graphs have the statistics they promise, and the accuracy they promise can be reached.

use gnntop_data::nodes::generate::{
    GenerateError, cora_like, cora_like_ceiling, reddit_like, reddit_like_ceiling, reddit_like_on_disk,
};
use gnntop_data::nodes::{Csr, Features, NodeDataset, read};

use crate::shared::shared;

fn reddit(nodes: usize, edges: usize, seed: u64) -> NodeDataset {
    reddit_like(nodes, edges, seed, &mut |_| {}).unwrap()
}

fn degrees(graph: &Csr) -> Vec<usize> {
    graph.row_start().windows(2).map(|row| (row[1] - row[0]) as usize).collect()
}

fn share_inside(dataset: &NodeDataset) -> f64 {
    let label = |node: u32| dataset.labels[node as usize];
    let nodes = 0..dataset.graph.nodes() as u32;
    let same =
        nodes.map(|node| dataset.graph.neighbours(node).iter().filter(|&&other| label(other) == label(node)).count());
    same.sum::<usize>() as f64 / dataset.graph.edges() as f64
}

/// Both directions of every edge, no loops, no duplicates, rows ascending.
fn assert_simple(graph: &Csr) {
    for node in 0..graph.nodes() as u32 {
        let row = graph.neighbours(node);
        assert!(row.windows(2).all(|pair| pair[0] < pair[1]), "row {node} is not ascending");
        for &other in row {
            assert_ne!(other, node);
            assert!(graph.neighbours(other).binary_search(&node).is_ok(), "{other} -> {node} has no way back");
        }
    }
}

/// Softmax regression on features averaged `hops` times over neighbourhoods with GCN's weights: a GCN without its hidden layer.
/// The test accuracy after a fixed number of steps.
fn linear_accuracy(dataset: &NodeDataset, hops: usize) -> f64 {
    let width = dataset.features.width();
    let mut x = dataset.features.to_dense();
    for row in x.chunks_mut(width) {
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|value| *value /= sum.max(1.0));
    }
    let scale: Vec<f32> = degrees(&dataset.graph).iter().map(|&degree| 1.0 / ((degree + 1) as f32).sqrt()).collect();
    for _ in 0..hops {
        let mut next = vec![0.0; x.len()];
        for node in 0..dataset.graph.nodes() {
            let target = &mut next[node * width..][..width];
            for other in dataset.graph.neighbours(node as u32).iter().map(|&other| other as usize).chain([node]) {
                let weight = scale[node] * scale[other];
                target.iter_mut().zip(&x[other * width..][..width]).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        x = next;
    }
    let classes = dataset.classes;
    let mut weights = vec![0.0f32; classes * width];
    let scores = |weights: &[f32], node: u32| -> Vec<f32> {
        let row = &x[node as usize * width..][..width];
        weights.chunks(width).map(|weight| weight.iter().zip(row).map(|(a, b)| a * b).sum()).collect()
    };
    let (steps, rate, decay) = (300, 100.0f32, 5e-5f32);
    for _ in 0..steps {
        let mut gradient: Vec<f32> = weights.iter().map(|weight| decay * weight).collect();
        for &node in &dataset.split.train {
            let scores = scores(&weights, node);
            let highest = scores.iter().copied().fold(f32::MIN, f32::max);
            let parts: Vec<f32> = scores.iter().map(|score| (score - highest).exp()).collect();
            let total: f32 = parts.iter().sum();
            for class in 0..classes {
                let target = f32::from(u8::from(dataset.labels[node as usize] as usize == class));
                let error = (parts[class] / total - target) / dataset.split.train.len() as f32;
                let row = &x[node as usize * width..][..width];
                gradient[class * width..][..width].iter_mut().zip(row).for_each(|(sum, value)| *sum += error * value);
            }
        }
        weights.iter_mut().zip(gradient).for_each(|(weight, gradient)| *weight -= rate * gradient);
    }
    let right = |&&node: &&u32| {
        let scores = scores(&weights, node);
        let best = (0..classes).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
        best == dataset.labels[node as usize] as usize
    };
    dataset.split.test.iter().filter(right).count() as f64 / dataset.split.test.len() as f64
}

#[test]
fn a_graph_like_cora_has_coras_numbers() {
    for seed in 0..3 {
        let cora = cora_like(seed);
        assert_eq!((cora.graph.nodes(), cora.graph.edges()), (2_708, 10_556));
        assert_simple(&cora.graph);
        let Features::Sparse { row_start, column, value, width } = &*cora.features else { panic!("not sparse") };
        assert_eq!((*width, column.len(), value.len(), row_start.len()), (1_433, 49_216, 49_216, 2_709));
        assert!(value.iter().all(|&value| value == 1.0));
        assert!(row_start.windows(2).all(|row| column[row[0] as usize..row[1] as usize].is_sorted_by(|a, b| a < b)));
        let mut classes = [0; 7];
        cora.labels.iter().for_each(|&label| classes[label as usize] += 1);
        assert_eq!((cora.classes, classes), (7, [351, 217, 418, 818, 426, 298, 180]));
        let mut train = [0; 7];
        cora.split.train.iter().for_each(|&node| train[cora.labels[node as usize] as usize] += 1);
        assert_eq!(train, [20; 7]);
        assert_eq!((cora.split.train.len(), cora.split.validation.len(), cora.split.test.len()), (140, 500, 1_000));
        assert_eq!((cora.split.validation[0], cora.split.test[0], cora.split.test[999]), (140, 1_708, 2_707));
        let degrees = degrees(&cora.graph);
        println!("seed {seed}: inside {:.3}, largest degree {:?}", share_inside(&cora), degrees.iter().max());
        assert!((share_inside(&cora) - 0.81).abs() < 0.025);
        assert_eq!(degrees.iter().min(), Some(&1));
        assert!((160..=176).contains(degrees.iter().max().unwrap()));
        let ones = degrees.iter().filter(|&&degree| degree == 1).count();
        assert!((470..=500).contains(&ones), "{ones} nodes of degree 1");
    }
}

/// Mean test accuracy on generated graphs, from words alone and with the graph.
fn accuracies_of_graphs_like_cora() -> (f64, f64) {
    let seeds = [0, 1, 2, 3, 4];
    let (mut words, mut graph) = (0.0, 0.0);
    for seed in seeds {
        let cora = cora_like(seed);
        let (own, averaged) = (linear_accuracy(&cora, 0), linear_accuracy(&cora, 2));
        let ceiling = cora_like_ceiling(seed);
        println!("seed {seed}: words alone {own:.3}, with the graph {averaged:.3}, ceiling {ceiling:.3}");
        assert!((0.80..0.90).contains(&ceiling) && averaged < ceiling + 0.01);
        words += own / seeds.len() as f64;
        graph += averaged / seeds.len() as f64;
    }
    println!("mean: words alone {words:.3}, with the graph {graph:.3}");
    assert!((0.55..0.65).contains(&words));
    assert!((0.78..0.83).contains(&graph));
    (words, graph)
}

#[test]
fn a_graph_like_cora_is_hard() {
    accuracies_of_graphs_like_cora();
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn a_graph_like_cora_is_as_hard_as_cora() {
    let (words, graph) = accuracies_of_graphs_like_cora();
    let cora = read(&shared("data/cora")).unwrap();
    let (own, averaged) = (linear_accuracy(&cora, 0), linear_accuracy(&cora, 2));
    println!("Cora itself: words alone {own:.3}, with the graph {averaged:.3}");
    assert!((words - own).abs() < 0.05 && (graph - averaged).abs() < 0.02);
}

#[test]
fn a_graph_like_reddit_has_the_promised_shape() {
    let (nodes, edges) = (3_000, 120_000);
    let reddit = reddit(nodes, edges, 1);
    assert_eq!((reddit.graph.nodes(), reddit.graph.edges(), reddit.classes), (nodes, edges, 41));
    assert_simple(&reddit.graph);
    let Features::Dense { values, width } = &*reddit.features else { panic!("not dense") };
    assert_eq!((*width, values.len()), (602, nodes * 602));
    let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() / values.len() as f64;
    assert!(mean.abs() < 0.005 && (square - (1.0 + 0.12f64.powi(2))).abs() < 0.01, "mean {mean}, square {square}");
    let mut degrees = degrees(&reddit.graph);
    degrees.sort_unstable();
    let (median, largest) = (degrees[nodes / 2], degrees[nodes - 1]);
    println!("inside {:.3}, degree median {median}, largest {largest}", share_inside(&reddit));
    assert!(median < 30 && largest > 250);
    assert!((0.42..0.62).contains(&share_inside(&reddit)));
    let split = &reddit.split;
    let sizes = [split.train.len(), split.validation.len(), split.test.len()];
    assert_eq!(sizes.iter().sum::<usize>(), nodes);
    assert!(
        sizes.iter().zip([0.66, 0.10, 0.24]).all(|(&size, share)| (size as f64 / nodes as f64 - share).abs() < 0.03)
    );
}

#[test]
fn any_size_gives_exactly_the_edges_asked_for() {
    for (nodes, edges) in
        [(0, 0), (1, 0), (2, 2), (2, 0), (10, 20), (10, 21), (41, 300), (500, 40_000), (100, 9_900), (4_000, 8)]
    {
        let reddit = reddit(nodes, edges, 7);
        assert_eq!((reddit.graph.nodes(), reddit.graph.edges()), (nodes, edges / 2 * 2));
        assert_simple(&reddit.graph);
    }
    for (nodes, edges) in [(0, 2), (1, 2), (10, 92), (100, 9_902)] {
        let error = reddit_like(nodes, edges, 7, &mut |_| {}).err().unwrap();
        assert_eq!(error, GenerateError::TooDense { nodes, edges });
    }
    let error = reddit_like(10, 1 << 33, 7, &mut |_| {}).err().unwrap();
    assert_eq!(error, GenerateError::TooLarge { nodes: 10, edges: 1 << 33 });
}

#[test]
fn a_seed_stands_for_its_graph_whatever_the_threads() {
    let same = |a: &NodeDataset, b: &NodeDataset| {
        a.graph == b.graph && a.features == b.features && a.labels == b.labels && a.split == b.split
    };
    assert!(same(&cora_like(4), &cora_like(4)));
    assert!(!same(&cora_like(4), &cora_like(5)));
    let on_threads = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| reddit(700, 20_000, 3))
    };
    assert!(same(&on_threads(1), &on_threads(3)));
    assert!(!same(&reddit(700, 20_000, 3), &reddit(700, 20_000, 4)));
}

#[test]
fn features_on_disk_are_those_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let of = |folder: &std::path::Path| reddit_like_on_disk(9_000, 20_000, 3, folder, &mut |_| {});
    let (there, here) = (of(folder.path()).unwrap(), reddit(9_000, 20_000, 3));
    assert_eq!((there.features.are_mapped(), here.features.are_mapped()), (true, false));
    assert!(there.features == here.features && there.graph == here.graph && there.labels == here.labels);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    let error = of(&folder.path().join("missing")).unwrap_err();
    assert!(matches!(error, GenerateError::Write { .. }) && error.to_string().contains("No such file"), "{error}");
}

#[test]
fn progress_rises_to_the_end() {
    let mut seen = Vec::new();
    reddit_like(2_000, 30_000, 1, &mut |share| seen.push(share)).unwrap();
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&1.0));
}

#[test]
fn the_ceiling_rises_with_what_is_known() {
    let graph = reddit(4_000, 60_000, 2);
    let ceiling = reddit_like_ceiling(&graph, 2).unwrap();
    println!("{ceiling:?}");
    assert!(ceiling.own_features + 0.1 < ceiling.one_hop);
    assert!(ceiling.one_hop < ceiling.neighbour_labels && ceiling.neighbour_labels < 1.0);
    assert!((0.6..0.85).contains(&ceiling.own_features));
    // With the wrong class means nothing is known.
    assert!(reddit_like_ceiling(&graph, 3).unwrap().own_features < 0.1);
    assert_eq!(reddit_like_ceiling(&cora_like(1), 1), None);
}

/// Time and memory of generating, in a process of its own: in `workloads/`, `cargo test --release -p gnntop-data --test it
/// data_generators -- --ignored --nocapture peers_scale` (or `full_scale`).
fn measured(nodes: usize, edges: usize) {
    let start = std::time::Instant::now();
    let mut marks = Vec::new();
    let reddit = reddit_like(nodes, edges, 1, &mut |share| marks.push((share, start.elapsed().as_secs_f32()))).unwrap();
    let seconds = start.elapsed().as_secs_f32();
    let drawn = marks.iter().rfind(|(share, _)| *share <= 0.7).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM unknown").to_owned();
    let mut degrees = degrees(&reddit.graph);
    degrees.sort_unstable();
    println!(
        "{}: {seconds:.2} s (edges {:.2} s), {peak}; degree median {}, largest {}, none {}; inside {:.3}; train {}",
        reddit.origin,
        drawn.1,
        degrees[nodes / 2],
        degrees[nodes - 1],
        degrees.iter().filter(|&&degree| degree == 0).count(),
        share_inside(&reddit),
        reddit.split.train.len(),
    );
    assert_eq!(reddit.graph.edges(), edges);
    let start = std::time::Instant::now();
    let ceiling = reddit_like_ceiling(&reddit, 1).unwrap();
    println!("{ceiling:?} in {:.2} s", start.elapsed().as_secs_f32());
    assert!(ceiling.own_features < ceiling.one_hop);
}

#[test]
#[ignore = "takes seconds and 300 MB"]
fn peers_scale() {
    measured(50_000, 10_000_000);
}

#[test]
#[ignore = "takes a minute and 2 GB"]
fn full_scale() {
    measured(232_965, 114_615_892);
}
