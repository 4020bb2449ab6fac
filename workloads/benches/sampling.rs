//! The cost of sampled training before the model: neighbour sampling, feature gather, and whole batches through the
//! loader, on a heavy-tailed graph of 50,000 nodes and 10 million directed edges with 602 features, fan-out 10, 10, 10.
//!
//! `cargo bench -p gnntop-workloads --bench sampling` prints medians. Threads either work on a batch each, as loader
//! workers do, or together on one batch, as without workers.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use gnntop_workloads::kernels::Adjacency;
use gnntop_workloads::loading::{BatchId, LoaderSettings};
use gnntop_workloads::nodes::generate::reddit_like;
use gnntop_workloads::nodes::{Csr, Features, NodeDataset};
use gnntop_workloads::sampling::{
    NeighbourSampler, NodeBatches, NodeLoader, Sample, SampleForm, SamplerSettings, gather_features,
};

const NODES: usize = 50_000;
const EDGES: usize = 10_000_000;
const WIDTH: usize = 602;
const REPEATS: usize = 5;

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// Seeds of batch `index`: no node twice.
fn seeds(count: usize, index: u64) -> Vec<u32> {
    (0..count).map(|seed| ((index as usize * count + seed) * 4999 % NODES) as u32).collect()
}

fn settings(form: SampleForm) -> SamplerSettings {
    SamplerSettings { form, ..SamplerSettings::default() }
}

/// Samples `batches` batches; the edges in all.
fn sample(sampler: &mut NeighbourSampler, size: usize, first: u64, batches: u64, out: &mut Sample) -> usize {
    let batch = |index| {
        sampler.sample(&seeds(size, index), BatchId { epoch: 0, index }, out).unwrap();
        out.edges()
    };
    (first..first + batches).map(batch).sum()
}

const BATCHES: u64 = 40;

/// One batch a thread: seconds, and edges.
fn apart(graph: &Arc<Csr>, form: SampleForm, size: usize, threads: u64) -> (f64, usize) {
    let sampler = NeighbourSampler::new(Arc::clone(graph), settings(form)).unwrap();
    let mut workers: Vec<_> = (0..threads).map(|_| (sampler.clone(), Sample::default())).collect();
    let mut edges = 0;
    let mut run = || {
        let begin = Instant::now();
        let each = BATCHES / threads;
        std::thread::scope(|scope| {
            let mut started = Vec::new();
            for (thread, (sampler, out)) in workers.iter_mut().enumerate() {
                started.push(scope.spawn(move || sample(sampler, size, thread as u64 * each, each, out)));
            }
            edges = started.into_iter().map(|worker| worker.join().unwrap()).sum();
        });
        begin.elapsed()
    };
    run();
    (median((0..REPEATS).map(|_| run()).collect()), edges)
}

/// All threads on one batch.
fn together(graph: &Arc<Csr>, form: SampleForm, size: usize, threads: usize) -> (f64, usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut sampler = NeighbourSampler::new(Arc::clone(graph), settings(form)).unwrap();
    sampler.set_use_all_threads(true);
    let mut out = Sample::default();
    let mut edges = 0;
    let mut run = || {
        let begin = Instant::now();
        edges = pool.install(|| sample(&mut sampler, size, 0, BATCHES, &mut out));
        begin.elapsed()
    };
    run();
    (median((0..REPEATS).map(|_| run()).collect()), edges)
}

fn sampling(graph: &Arc<Csr>) {
    println!("sampling                          ms/batch   edges/batch   M edges/s   seeds/s");
    for form in [SampleForm::Subgraph, SampleForm::Blocks] {
        for size in [512, 1024] {
            let report = |how: &str, (seconds, edges): (f64, usize)| {
                let (batch_ms, per_batch) = (seconds * 1e3 / BATCHES as f64, edges / BATCHES as usize);
                let (rate, seed_rate) = (edges as f64 / seconds / 1e6, (BATCHES as usize * size) as f64 / seconds);
                let form = format!("{form:?}");
                println!("{form:<9}{size:>5}  {how:<17}{batch_ms:>8.2}{per_batch:>14}{rate:>12.1}{seed_rate:>10.0}");
            };
            report("1 thread", apart(graph, form, size, 1));
            report("2 threads, apart", apart(graph, form, size, 2));
            report("2 together", together(graph, form, size, 2));
        }
    }
}

/// Gathering the rows of a batch of 1024 seeds; bytes are counted once read and once written.
fn gathering(graph: &Arc<Csr>, features: &Features) {
    let mut sampler = NeighbourSampler::new(Arc::clone(graph), settings(SampleForm::Blocks)).unwrap();
    let mut samples = vec![Sample::default(); 2];
    for (index, out) in samples.iter_mut().enumerate() {
        sample(&mut sampler, 1024, index as u64, 1, out);
    }
    let bytes = samples[0].nodes.len() * WIDTH * 4;
    println!("\ngather of {} rows of {WIDTH} f32, {:.0} MB", samples[0].nodes.len(), bytes as f64 / 1e6);
    let mut out = Vec::new();
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut run = || {
            let begin = Instant::now();
            pool.install(|| gather_features(features, &samples[0].nodes, &mut out, threads > 1));
            begin.elapsed()
        };
        run();
        let seconds = median((0..3 * REPEATS).map(|_| run()).collect());
        println!("{threads} threads: {:.2} ms, {:.1} GB/s", seconds * 1e3, 2.0 * bytes as f64 / seconds / 1e9);
    }
    let mut layers = vec![Adjacency::default(); samples[0].layers.len()];
    let mut run = || {
        let mut edges = samples[0].layers.clone();
        let begin = Instant::now();
        for (adjacency, edges) in layers.iter_mut().zip(&mut edges) {
            adjacency.rebuild(&mut edges.row_start, &mut edges.source, edges.sources).unwrap();
        }
        begin.elapsed()
    };
    run();
    let seconds = median((0..3 * REPEATS).map(|_| run()).collect());
    println!("adjacencies of its {} edges: {:.2} ms", samples[0].edges(), seconds * 1e3);
}

fn loading(dataset: &NodeDataset) {
    println!("\nloader                            ms/batch   M edges/s   seeds/s");
    for form in [SampleForm::Subgraph, SampleForm::Blocks] {
        for (batch_size, workers) in [(512, 0), (512, 1), (512, 2), (1024, 0), (1024, 1), (1024, 2)] {
            let batches = NodeBatches::new(dataset, &dataset.split.train, settings(form)).unwrap();
            let settings = LoaderSettings { batch_size, workers, ..LoaderSettings::default() };
            let mut loader = NodeLoader::new(batches, settings).unwrap();
            // As many as every queue and hand holds, so that what was made ahead is not counted.
            (0..3 * workers.max(1)).for_each(|_| drop(loader.next_batch().unwrap()));
            let begin = Instant::now();
            let edges: usize = (0..BATCHES / 2).map(|_| loader.next_batch().unwrap().edges()).sum();
            let seconds = begin.elapsed().as_secs_f64();
            let (ms, rate) = (seconds * 2e3 / BATCHES as f64, edges as f64 / seconds / 1e6);
            let seed_rate = (BATCHES as usize / 2 * batch_size) as f64 / seconds;
            let form = format!("{form:?}");
            println!("{form:<9}{batch_size:>5}  {workers} workers        {ms:>8.2}{rate:>12.1}{seed_rate:>10.0}");
        }
    }
}

fn main() {
    let dataset = reddit_like(NODES, EDGES, 1, &mut |_| ()).unwrap();
    let degree = |node| dataset.graph.neighbours(node).len();
    let largest = (0..NODES as u32).map(degree).max().unwrap();
    println!("{} nodes, {} edges, largest in-degree {largest}\n", dataset.graph.nodes(), dataset.graph.edges());
    sampling(&dataset.graph);
    gathering(&dataset.graph, &dataset.features);
    loading(&dataset);
}
