//! Whole steps of sampled training, phase by phase: GraphSAGE and GAT of study 2 on a heavy-tailed graph of 50,000 nodes
//! and 10 million directed edges with 602 features, fan-out 10, 10, 10, without loader threads.
//!
//! `cd workloads && cargo bench -p gnntop-nn --bench sampled` prints medians; parts of a name choose: `-- sage fast 512`. The
//! second line of each is the time on a CPU of all threads together: on a machine that others use as well, it says more.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use candle_core::Device;
use gnntop_data::loading::{LoaderObserver, LoaderSettings, Stage};
use gnntop_data::nodes::NodeDataset;
use gnntop_data::nodes::generate::reddit_like;
use gnntop_data::sampling::{NodeBatches, NodeLoader, SampleForm, SamplerSettings};
use gnntop_nn::kernels::{KernelFamily, MatmulPrecision};
use gnntop_nn::learn::{AdamSettings, LabelledRows, Learner, NodeInput};
use gnntop_nn::models::gat::{Gat, GatConfig};
use gnntop_nn::models::sage::{Sage, SageConfig};
use gnntop_nn::models::{FeatureRows, FeatureTable, NodeModel, Pass};
use gnntop_nn::subnormals::{Subnormals, set_subnormals};

const STEPS: u64 = 8;

/// Columns of the table.
const PHASES: [&str; 6] = ["sample", "gather", "forward", "backward", "optimizer", "step"];

/// Seconds since the start, and seconds that all threads of this process have spent on a CPU (Linux; else 0).
fn now(start: Instant) -> [f64; 2] {
    let on_cpu = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    [start.elapsed().as_secs_f64(), tasks.filter_map(on_cpu).sum::<f64>() / 1e9]
}

/// Adds up the time of the loader's stages in one step.
struct Stages {
    start: Instant,
    /// Of sampling (with putting the batch together) and of gathering.
    spent: Mutex<[[f64; 2]; 2]>,
}

impl LoaderObserver for Stages {
    fn stage(&self, stage: Stage, work: &mut dyn FnMut()) {
        let begin = now(self.start);
        work();
        let end = now(self.start);
        let spent = &mut self.spent.lock().unwrap()[usize::from(stage == Stage::Gather)];
        (0..2).for_each(|clock| spent[clock] += end[clock] - begin[clock]);
    }
}

/// Times of each phase, step by step.
#[derive(Default)]
struct Rows(Vec<[[f64; 2]; 6]>);

impl Rows {
    /// Median in milliseconds; the first two steps are warm-up.
    fn median(&self, phase: usize, clock: usize) -> f64 {
        let mut times: Vec<f64> = self.0[2..].iter().map(|row| row[phase][clock] * 1e3).collect();
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn print(&self, name: &str, batch: usize) {
        for (clock, label) in ["", "  on a CPU"].into_iter().enumerate() {
            let cells: Vec<String> = (0..6).map(|phase| format!("{:>10.2}", self.median(phase, clock))).collect();
            let rate = format!("{:>10.0}", batch as f64 / self.median(5, 0) * 1e3);
            let (name, rate) = if clock == 0 { (name, rate) } else { (label, String::new()) };
            println!("{name:<28}{}{rate}", cells.concat());
        }
    }
}

/// A form of sample and whether the graph has self-loops.
#[derive(Clone, Copy)]
struct Sampling {
    form: SampleForm,
    self_loops: bool,
}

fn measure<M: NodeModel>(dataset: &NodeDataset, mut trainer: Learner<M>, sampling: Sampling, batch: usize) -> Rows {
    let Sampling { form, self_loops } = sampling;
    let sampler = SamplerSettings { form, self_loops, ..SamplerSettings::default() };
    let batches = NodeBatches::new(dataset, &dataset.split.train, sampler).unwrap();
    let in_place = trainer.model().reads_in_place();
    let batches = if in_place.is_some() { batches.without_features() } else { batches };
    let table = FeatureTable::new(&dataset.features, in_place.unwrap_or_default()).unwrap();
    let stages = Arc::new(Stages { start: Instant::now(), spent: Mutex::default() });
    let settings = LoaderSettings { batch_size: batch, workers: 0, prefetch: 1, seed: 1, ..LoaderSettings::default() };
    let mut loader = NodeLoader::observed(batches, settings, Arc::clone(&stages)).unwrap();
    let mut rows = Rows::default();
    let start = stages.start;
    for seed in 0..STEPS {
        let begin = now(start);
        let mut batch = loader.next_batch().unwrap();
        let [sample, gather] = std::mem::take(&mut *stages.spent.lock().unwrap());
        let loaded = now(start);
        let labelled = LabelledRows::new(0..batch.seeds as u32, &batch.labels).unwrap();
        let features = in_place.is_none().then(|| batch.take_features().unwrap());
        let table = FeatureRows::InPlace { table: &table, nodes: &batch.nodes };
        let input = NodeInput {
            features: features.as_ref().map_or(table, FeatureRows::from),
            layers: &batch.layers,
            labelled: &labelled,
        };
        let outcome = trainer.forward(&input, Pass::Train { seed }).unwrap();
        let forward = now(start);
        let gradients = outcome.loss.backward().unwrap();
        let backward = now(start);
        trainer.optimizer_step(&gradients, 5e-3).unwrap();
        let optimizer = now(start);
        drop((outcome, gradients));
        features.map_or(Ok(()), |features| batch.return_features(features)).unwrap();
        let end = now(start);
        let between = |begin: [f64; 2], end: [f64; 2]| [end[0] - begin[0], end[1] - begin[1]];
        rows.0.push([
            sample,
            gather,
            between(loaded, forward),
            between(forward, backward),
            between(backward, optimizer),
            between(begin, end),
        ]);
    }
    rows
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let chosen = |name: &str| wanted.iter().all(|word| name.contains(word.as_str()));
    set_subnormals(Subnormals::Flush);
    let dataset = reddit_like(50_000, 10_000_000, 1, &mut |_| ()).unwrap();
    println!("{:<28}{}", "medians in ms", PHASES.map(|phase| format!("{phase:>10}")).concat() + "   seeds/s");
    let adam = AdamSettings { weight_decay: 5e-4, ..AdamSettings::default() };
    for form in [SampleForm::Blocks, SampleForm::Subgraph] {
        for (kind, plain, kernels, matmul_precision) in [
            ("fast", false, KernelFamily::Spmm, MatmulPrecision::F32),
            ("fast-bf16", false, KernelFamily::Spmm, MatmulPrecision::Bf16),
            ("plain", true, KernelFamily::Spmm, MatmulPrecision::F32),
            ("plain-scatter", true, KernelFamily::Scatter, MatmulPrecision::F32),
        ] {
            if matmul_precision.check().is_err() {
                continue;
            }
            for batch in [512, 1024] {
                let name = |model: &str| {
                    let form = if form == SampleForm::Blocks { "blocks" } else { "subgraph" };
                    format!("{model} {form} {kind} {batch}")
                };
                let sampling = |self_loops| Sampling { form, self_loops };
                if chosen(&name("sage")) {
                    let config = SageConfig { plain, kernels, matmul_precision, ..SageConfig::default() };
                    let trainer = Learner::<Sage>::new(&Device::Cpu, &config, adam, 1).unwrap();
                    measure(&dataset, trainer, sampling(false), batch).print(&name("sage"), batch);
                }
                let variants = [("gat-dgl", GatConfig::dgl(), true), ("gat-pyg", GatConfig::pyg(), false)];
                for (model, variant, self_loops) in variants {
                    if chosen(&name(model)) {
                        let config = GatConfig { plain, kernels, matmul_precision, ..variant };
                        let trainer = Learner::<Gat>::new(&Device::Cpu, &config, adam, 1).unwrap();
                        measure(&dataset, trainer, sampling(self_loops), batch).print(&name(model), batch);
                    }
                }
            }
        }
    }
}
