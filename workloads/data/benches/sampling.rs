//! The cost of sampled training before the model: neighbour sampling, feature gather, and whole batches through the
//! loader, on a heavy-tailed graph of 50,000 nodes and 10 million directed edges with 602 features, fan-out 10, 10, 10.
//!
//! `cd workloads && cargo bench -p gnntop-data --bench sampling` prints medians. Threads either work on a batch each, as
//! loader workers do, or together on one batch, as without workers.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use gnntop_data::graph::Adjacency;
use gnntop_data::loading::{BatchId, LoaderSettings};
use gnntop_data::nodes::generate::reddit_like;
use gnntop_data::nodes::{Csr, Features, NodeDataset};
use gnntop_data::sampling::{
    NeighbourSampler, NodeBatches, NodeLoader, Sample, SampleForm, SampledEdges, SamplerSettings, gather_features,
};

const NODES: usize = 50_000;
const EDGES: usize = 10_000_000;
const WIDTH: usize = 602;
const REPEATS: usize = 61;

/// Seconds of a run: the median, and the best, which other work on the machine disturbs least.
#[derive(Clone, Copy)]
struct Times {
    median: f64,
    best: f64,
}

/// Runs once to warm up, then measures.
fn measure(mut run: impl FnMut()) -> Times {
    run();
    let timed = |_| {
        let begin = Instant::now();
        run();
        begin.elapsed()
    };
    let mut times: Vec<Duration> = (0..REPEATS).map(timed).collect();
    times.sort_unstable();
    Times { median: times[REPEATS / 2].as_secs_f64(), best: times[0].as_secs_f64() }
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

/// Batches a run.
const BATCHES: u64 = 2;

/// One batch a thread: times, and edges.
fn separate_tasks(graph: &Arc<Csr>, form: SampleForm, size: usize, threads: u64) -> (Times, usize) {
    let sampler = NeighbourSampler::new(Arc::clone(graph), settings(form)).unwrap();
    let mut workers: Vec<_> = (0..threads).map(|_| (sampler.clone(), Sample::default())).collect();
    let mut edges = 0;
    let times = measure(|| {
        let each = BATCHES / threads;
        std::thread::scope(|scope| {
            let mut started = Vec::new();
            for (thread, (sampler, out)) in workers.iter_mut().enumerate() {
                started.push(scope.spawn(move || sample(sampler, size, thread as u64 * each, each, out)));
            }
            edges = started.into_iter().map(|worker| worker.join().unwrap()).sum();
        });
    });
    (times, edges)
}

/// All threads on one batch.
fn shared_task(graph: &Arc<Csr>, form: SampleForm, size: usize, threads: usize) -> (Times, usize) {
    let mut sampler = NeighbourSampler::new(Arc::clone(graph), settings(form)).unwrap();
    sampler.set_use_all_threads(true);
    let mut out = Sample::default();
    let mut edges = 0;
    let pool = pool(threads);
    let times = measure(|| edges = pool.install(|| sample(&mut sampler, size, 0, BATCHES, &mut out)));
    (times, edges)
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn sampling(graph: &Arc<Csr>) {
    println!("sampling                            ms a batch     edges    million edges/s   seeds/s");
    println!("                                 median   best              median    best    median");
    for form in [SampleForm::Subgraph, SampleForm::Blocks] {
        for size in [512, 1024] {
            let report = |how: &str, (times, edges): (Times, usize)| {
                let (median, best) = (times.median * 1e3 / BATCHES as f64, times.best * 1e3 / BATCHES as f64);
                let per_batch = edges / BATCHES as usize;
                let (rate, best_rate) = (edges as f64 / times.median / 1e6, edges as f64 / times.best / 1e6);
                let seed_rate = (BATCHES as usize * size) as f64 / times.median;
                let (form, how) = (format!("{form:?}"), format!("{how:<17}"));
                println!(
                    "{form:<9}{size:>5}  {how}{median:>7.2}{best:>7.2}{per_batch:>10}{rate:>10.1}{best_rate:>8.1}{seed_rate:>10.0}"
                );
            };
            report("1 thread", separate_tasks(graph, form, size, 1));
            report("2 threads, apart", separate_tasks(graph, form, size, 2));
            report("2 together", shared_task(graph, form, size, 2));
        }
    }
}

/// Gathering the rows of a batch of 1024 seeds, and making its adjacencies. Bytes are counted once read, once written.
fn gathering(graph: &Arc<Csr>, features: &Features) {
    let mut sampler = NeighbourSampler::new(Arc::clone(graph), settings(SampleForm::Blocks)).unwrap();
    let mut batch = Sample::default();
    sample(&mut sampler, 1024, 0, 1, &mut batch);
    let bytes = batch.nodes.len() * WIDTH * 4;
    println!("\ngather of {} rows of {WIDTH} f32, {:.0} MB", batch.nodes.len(), bytes as f64 / 1e6);
    let mut out = Vec::new();
    for threads in [1, 2] {
        let pool = pool(threads);
        let times = measure(|| pool.install(|| gather_features(features, &batch.nodes, &mut out, threads > 1)));
        let rate = |seconds: f64| 2.0 * bytes as f64 / seconds / 1e9;
        let (median, best) = (rate(times.median), rate(times.best));
        println!("{threads} threads: {:.2} ms, {median:.1} GB/s (best {best:.1})", times.median * 1e3);
    }
    // Rebuilding swaps its edges in and the old ones out: with the same on both sides every run does the same.
    let mut edges = batch.layers.clone();
    let adjacency = |layer: SampledEdges| Adjacency::bipartite(layer.row_start, layer.source, layer.sources).unwrap();
    let mut layers: Vec<Adjacency> = edges.iter().cloned().map(adjacency).collect();
    let times = measure(|| {
        for (adjacency, edges) in layers.iter_mut().zip(&mut edges) {
            adjacency.rebuild(&mut edges.row_start, &mut edges.source, edges.sources).unwrap();
        }
    });
    println!("adjacencies of its {} edges: {:.2} ms (best {:.2})", batch.edges(), times.median * 1e3, times.best * 1e3);
}

fn loading(dataset: &NodeDataset) {
    const LOADED: usize = 20;
    println!("\nloader                  ms a batch   million edges/s   seeds/s");
    for form in [SampleForm::Subgraph, SampleForm::Blocks] {
        for (batch_size, workers) in [(512, 0), (512, 1), (512, 2), (1024, 0), (1024, 1), (1024, 2)] {
            let batches = NodeBatches::new(dataset, &dataset.split.train, settings(form)).unwrap();
            let settings = LoaderSettings { batch_size, workers, ..LoaderSettings::default() };
            let mut loader = NodeLoader::new(batches, settings).unwrap();
            // As many as all queues and workers hold, so that batches made ahead do not count.
            (0..3 * workers.max(1)).for_each(|_| drop(loader.next_batch().unwrap()));
            let begin = Instant::now();
            let edges: usize = (0..LOADED).map(|_| loader.next_batch().unwrap().edges()).sum();
            let seconds = begin.elapsed().as_secs_f64();
            let (ms, rate) = (seconds * 1e3 / LOADED as f64, edges as f64 / seconds / 1e6);
            let seed_rate = (LOADED * batch_size) as f64 / seconds;
            let form = format!("{form:?}");
            println!("{form:<9}{batch_size:>5}  {workers} workers{ms:>10.2}{rate:>18.1}{seed_rate:>10.0}");
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
