//! Batches of sampled nodes through the loader: their content, and that it does not depend on who makes them.

use std::sync::{Arc, Mutex};

use gnntop_data::loading::{BatchId, LoaderObserver, LoaderSettings, Stage};
use gnntop_data::nodes::{Csr, Features, NodeDataset, Split};
use gnntop_data::sampling::{NodeBatch, NodeBatches, NodeLoader, SampleForm, SamplerSettings};

const NODES: u32 = 300;
const WIDTH: usize = 5;

/// Features and labels that tell nodes apart; node 0 is a hub, nodes from 290 on are isolated.
fn dataset() -> NodeDataset {
    let ring = (0..290u32).flat_map(|node| (1..12).map(move |step| ((node + step * step) % 290, node)));
    let hub = (0..290u32).map(|node| (node, 0));
    let values = (0..NODES as usize * WIDTH).map(|value| value as f32).collect();
    NodeDataset {
        origin: "test".to_owned(),
        graph: Arc::new(Csr::from_edges(NODES as usize, &ring.chain(hub).collect::<Vec<_>>()).unwrap()),
        features: Arc::new(Features::Dense { values, width: WIDTH }),
        labels: Arc::new((0..NODES).map(|node| node % 7).collect()),
        classes: 7,
        split: Split { train: (0..NODES).filter(|node| node % 3 != 0).collect(), ..Split::default() },
    }
}

fn sampler(form: SampleForm) -> SamplerSettings {
    SamplerSettings { fanouts: vec![4, 3], form, self_loops: false, seed: 5 }
}

fn settings(workers: usize) -> LoaderSettings {
    LoaderSettings { batch_size: 64, workers, seed: 3, ..LoaderSettings::default() }
}

fn loader(form: SampleForm, workers: usize) -> NodeLoader {
    let dataset = dataset();
    let batches = NodeBatches::new(&dataset, &dataset.split.train, sampler(form)).unwrap();
    NodeLoader::new(batches, settings(workers)).unwrap()
}

type Layer = (usize, usize, Vec<std::ops::Range<usize>>, Vec<u32>);

/// Everything in a batch, comparable.
fn content(batch: &NodeBatch) -> (Vec<u32>, Vec<u32>, Vec<f32>, Vec<Layer>) {
    let layers = batch.layers.iter().map(|layer| {
        let rows = (0..layer.nodes()).map(|node| layer.incoming(node)).collect();
        (layer.nodes(), layer.source_nodes(), rows, layer.sources().to_vec())
    });
    (batch.nodes.clone(), batch.labels.clone(), batch.features.clone(), layers.collect())
}

#[test]
fn batches_do_not_depend_on_the_number_of_workers() {
    for form in [SampleForm::Subgraph, SampleForm::Blocks] {
        let take = |workers| {
            let mut loader = loader(form, workers);
            (0..10).map(|_| content(&loader.next_batch().unwrap())).collect::<Vec<_>>()
        };
        let expected = take(0);
        for workers in 1..=4 {
            assert!(take(workers) == expected, "{workers} workers, {form:?}");
        }
    }
}

#[test]
fn a_batch_has_the_features_of_its_nodes_and_the_labels_of_its_seeds() {
    for form in [SampleForm::Subgraph, SampleForm::Blocks] {
        let mut loader = loader(form, 2);
        assert_eq!(loader.batches_per_epoch(), 4);
        let mut seen = Vec::new();
        for index in 0..4 {
            let batch = loader.next_batch().unwrap();
            assert_eq!(batch.seeds, if index < 3 { 64 } else { 8 });
            assert_eq!((batch.width, batch.features.len()), (WIDTH, batch.nodes.len() * WIDTH));
            for (row, &node) in batch.features.chunks(WIDTH).zip(&batch.nodes) {
                assert_eq!((row[0], row[4]), ((node * 5) as f32, (node * 5 + 4) as f32));
            }
            let labels: Vec<u32> = batch.nodes[..batch.seeds].iter().map(|node| node % 7).collect();
            assert_eq!(batch.labels, labels);
            seen.extend_from_slice(&batch.nodes[..batch.seeds]);
            assert_eq!(batch.edges(), batch.layers.iter().map(|layer| layer.edges()).sum::<usize>());
            match form {
                SampleForm::Subgraph => {
                    assert_eq!(batch.layers.len(), 1);
                    assert!(Arc::ptr_eq(batch.adjacency(0), batch.adjacency(1)));
                    assert_eq!(batch.adjacency(0).nodes(), batch.nodes.len());
                }
                SampleForm::Blocks => {
                    assert_eq!(batch.adjacency(0).source_nodes(), batch.nodes.len());
                    assert_eq!(batch.adjacency(0).nodes(), batch.adjacency(1).source_nodes());
                    assert_eq!(batch.adjacency(1).nodes(), batch.seeds);
                }
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, dataset().split.train);
    }
}

#[test]
fn epochs_are_sampled_anew() {
    let dataset = dataset();
    let batches = NodeBatches::new(&dataset, &[5, 6, 7], sampler(SampleForm::Blocks)).unwrap();
    let mut loader = NodeLoader::new(batches, LoaderSettings { shuffle: false, ..settings(0) }).unwrap();
    let first = content(&loader.next_batch().unwrap());
    let second = content(&loader.next_batch().unwrap());
    assert_eq!(first.1, second.1);
    assert_ne!(first.3, second.3);
}

#[test]
fn memory_comes_back() {
    let mut loader = loader(SampleForm::Blocks, 0);
    let address = loader.next_batch().unwrap().features.as_ptr();
    let mut batch = loader.next_batch().unwrap();
    assert_eq!(batch.features.as_ptr(), address);
    let expected = batch.features.clone();
    let tensor = batch.take_features().unwrap();
    assert_eq!(tensor.dims(), [batch.nodes.len(), WIDTH]);
    assert_eq!(tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap(), expected);
    assert!(batch.take_features().is_err());
    batch.return_features(tensor).unwrap();
    drop(batch);
    assert_eq!(loader.next_batch().unwrap().features.as_ptr(), address);
}

#[test]
fn edges_that_someone_holds_on_to_stay_as_they_are() {
    let mut loader = loader(SampleForm::Blocks, 0);
    let first = loader.next_batch().unwrap();
    let held = Arc::clone(first.adjacency(0));
    let before = (held.nodes(), held.sources().to_vec());
    drop(first);
    let second = loader.next_batch().unwrap();
    assert!(!Arc::ptr_eq(second.adjacency(0), &held));
    assert_eq!((held.nodes(), held.sources().to_vec()), before);
    let address = Arc::as_ptr(second.adjacency(0));
    drop(second);
    assert_eq!(Arc::as_ptr(loader.next_batch().unwrap().adjacency(0)), address);
}

#[test]
fn sparse_features_are_the_same_batch() {
    let mut dataset = dataset();
    let batch = |dataset: &NodeDataset| {
        let batches = NodeBatches::new(dataset, &dataset.split.train, sampler(SampleForm::Blocks)).unwrap();
        content(&NodeLoader::new(batches, settings(1)).unwrap().next_batch().unwrap())
    };
    let dense = batch(&dataset);
    let values = dataset.features.to_dense();
    let row_start = (0..=NODES).map(|row| row * WIDTH as u32).collect();
    let column = (0..NODES).flat_map(|_| 0..WIDTH as u32).collect();
    dataset.features = Arc::new(Features::Sparse { row_start, column, value: values, width: WIDTH });
    assert!(batch(&dataset) == dense);
}

#[test]
fn data_that_does_not_fit_is_refused() {
    let refused = |dataset: &NodeDataset, targets: &[u32], fanouts: &[usize]| {
        let settings = SamplerSettings { fanouts: fanouts.to_vec(), ..sampler(SampleForm::Blocks) };
        NodeBatches::new(dataset, targets, settings).unwrap_err().to_string()
    };
    let good = dataset();
    assert_eq!(
        refused(&good, &[1], &[3, 0]),
        "the fan-out of hop 2 is 0, so no node would have neighbours; use at least 1, or fewer hops"
    );
    assert_eq!(refused(&good, &[1, 300], &[3]), "node 300 is a seed, but there are only 300 nodes (numbered from 0)");
    assert_eq!(refused(&good, &[1, 1], &[3]), "node 1 is listed twice as a seed; list each seed once");
    let labels = NodeDataset { labels: Arc::new(vec![0; 299]), ..good.clone() };
    assert_eq!(refused(&labels, &[1], &[3]), "the graph has 300 nodes, but 299 labels");
    let classes = NodeDataset { classes: 6, ..good.clone() };
    assert_eq!(refused(&classes, &[5, 6], &[3]), "node 6 has class 6, but there are only 6 classes (numbered from 0)");
    let features = Features::Dense { values: vec![0.0; 299 * WIDTH].into(), width: WIDTH };
    let features = NodeDataset { features: Arc::new(features), ..good.clone() };
    assert_eq!(refused(&features, &[1], &[3]), "the graph has 300 nodes, but features for 299");
    let none = NodeBatches::new(&good, &[], sampler(SampleForm::Blocks)).unwrap();
    let error = NodeLoader::new(none, settings(2)).unwrap_err().to_string();
    assert_eq!(error, "there are no training nodes to load");
}

#[test]
fn dropping_early_joins_the_workers() {
    for taken in [0, 1, 5] {
        let mut loader = loader(SampleForm::Subgraph, 4);
        (0..taken).for_each(|_| drop(loader.next_batch().unwrap()));
        drop(loader);
    }
}

#[derive(Default)]
struct Stages(Mutex<Vec<Stage>>);

impl LoaderObserver for Stages {
    fn batch(&self, _: BatchId, _: &mut dyn FnMut()) {
        panic!("no workers, no batches of theirs");
    }

    fn stage(&self, stage: Stage, work: &mut dyn FnMut()) {
        work();
        self.0.lock().unwrap().push(stage);
    }
}

#[test]
fn sampling_gathering_and_assembly_are_stages_of_their_own() {
    let dataset = dataset();
    let batches = NodeBatches::new(&dataset, &dataset.split.train, sampler(SampleForm::Blocks)).unwrap();
    let stages = Arc::new(Stages::default());
    let mut loader = NodeLoader::observed(batches, settings(0), Arc::clone(&stages)).unwrap();
    loader.next_batch().unwrap();
    assert_eq!(*stages.0.lock().unwrap(), [Stage::Sample, Stage::Gather, Stage::Assemble]);
}

#[test]
fn features_without_zeros_are_the_same_features() {
    let mut dataset = dataset();
    let Features::Dense { values, width } = dataset.features.as_ref() else { unreachable!() };
    let kept = |value: f32| if (value as u32).is_multiple_of(3) { value } else { 0.0 };
    let values: Vec<f32> = values.iter().map(|&value| kept(value)).collect();
    let rows = values.chunks(*width).map(|row| row.iter().enumerate().filter(|(_, value)| **value != 0.0));
    let (mut row_start, mut column, mut value) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        row.for_each(|(place, &entry)| {
            column.push(place as u32);
            value.push(entry);
        });
        row_start.push(value.len() as u32);
    }
    dataset.features = Arc::new(Features::Sparse { row_start, column, value, width: WIDTH });
    let batches = || NodeBatches::new(&dataset, &dataset.split.train, sampler(SampleForm::Blocks)).unwrap();
    let mut dense = NodeLoader::new(batches(), settings(0)).unwrap();
    let mut sparse = NodeLoader::new(batches().without_zeros(), settings(2)).unwrap();
    for _ in 0..4 {
        let (dense, mut sparse) = (dense.next_batch().unwrap(), sparse.next_batch().unwrap());
        assert!(sparse.features.is_empty());
        let matrix = sparse.sparse_features.take().unwrap();
        let (rows, mut values) = (matrix.by_row(), vec![0.0; matrix.rows() * WIDTH]);
        for row in 0..matrix.rows() {
            for entry in rows.start[row] as usize..rows.start[row + 1] as usize {
                values[row * WIDTH + rows.other[entry] as usize] = rows.value[entry];
            }
        }
        assert_eq!(values, dense.features);
        assert!(dense.sparse_features.is_none());
    }
}
