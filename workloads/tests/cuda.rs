//! Every operation and model on a GPU beside the CPU: the same numbers and gradients, up to the order of sums. Skipped
//! where no GPU is at hand; `GNNTOP_DEVICE` names another one than `cuda:0`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

#[path = "../nn/tests/multigraph/mod.rs"]
mod multigraph;

use std::ffi::OsString;
use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor};
use gnntop_data::graph::SparseMatrix;
use gnntop_data::graph::{Adjacency, Batch, EdgeOp, Endpoint, Graph, Reduce};
use gnntop_nn::kernels::{
    KernelFamily, Operand, Segments, dropout, edge_softmax, gather, sddmm, segment_max, sparse_linear_dropout, spmm,
};
use gnntop_nn::learn::{Adam, AdamSettings, LabelledRows, Learner, NodeInput, TargetScale, cross_entropy};
use gnntop_nn::models::gat::{Gat, GatConfig};
use gnntop_nn::models::gcn::{GcnConfig, NodeFeatures};
use gnntop_nn::models::pna::{DeviceBatch, Pna, PnaConfig};
use gnntop_nn::models::sage::{Sage, SageConfig};
use gnntop_nn::models::{NodeModel, Parameters, Pass, vig};
use gnntop_workloads::command::Workload;
use gnntop_workloads::launch::DeviceChoice;
use gnntop_workloads::train::{Observer, StepReport};
use gnntop_workloads::trainers::gcn::{Mode, Recipe};
use multigraph::{generator, numbers, random_divisor, random_graph, random_tensor, with_gradients};

const TYPES: [DType; 4] = [DType::F32, DType::F64, DType::BF16, DType::F16];
const REDUCTIONS: [Reduce; 4] = [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min];

/// The GPU, or nothing, with the reason printed.
fn gpu() -> Option<Device> {
    let name = std::env::var("GNNTOP_DEVICE").unwrap_or_else(|_| "cuda:0".to_owned());
    match name.parse::<DeviceChoice>().unwrap().open() {
        Ok(device) => Some(device),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

fn tolerance(dtype: DType, edges: usize) -> f64 {
    match dtype {
        DType::F64 => 1e-11,
        DType::F32 if edges > 1000 => 1e-3,
        DType::F32 => 2e-5,
        DType::F16 => 4e-3,
        _ => 3e-2,
    }
}

fn assert_near(found: &Tensor, expected: &Tensor, tolerance: f64, what: &str) {
    assert_eq!(found.dims(), expected.dims(), "{what}");
    let found = found.to_device(&Device::Cpu).unwrap();
    for (place, (found, expected)) in numbers(&found).into_iter().zip(numbers(expected)).enumerate() {
        let same = (found - expected).abs() <= tolerance * (1.0 + expected.abs());
        assert!(same, "{what}, element {place}: {found} instead of {expected}");
    }
}

/// Compares output and gradients on the GPU with those on the CPU; twice on the GPU, which must give the same bits.
fn same(
    device: &Device,
    inputs: &[Tensor],
    tolerance: f64,
    what: &str,
    function: impl Fn(&[Tensor]) -> Result<Tensor>,
) {
    let shape = function(inputs).unwrap();
    let upstream = random_tensor(&mut generator(99), shape.dims(), shape.dtype());
    let expected = with_gradients(inputs, Some(&upstream), &function);
    let moved: Vec<Tensor> = inputs.iter().map(|input| input.to_device(device).unwrap()).collect();
    let upstream = upstream.to_device(device).unwrap();
    let [found, again] = [0, 1].map(|_| with_gradients(&moved, Some(&upstream), &function));
    assert_near(&found.0, &expected.0, tolerance, what);
    for (index, (found, expected)) in found.1.iter().zip(&expected.1).enumerate() {
        assert_near(found, expected, tolerance, &format!("gradient {index} of {what}"));
    }
    let all = |result: &(Tensor, Vec<Tensor>)| {
        let tensors = std::iter::once(&result.0).chain(&result.1);
        tensors.flat_map(|tensor| numbers(&tensor.to_device(&Device::Cpu).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(all(&found), all(&again), "{what} differs from run to run");
}

/// A block, a whole graph, one with hubs that are computed in parts, and one without edges.
fn graphs() -> Vec<Arc<Adjacency>> {
    let mut rng = generator(7);
    vec![
        random_graph(&mut rng, 310, 170, 0),
        random_graph(&mut rng, 240, 240, 5000),
        multigraph::adjacency(Vec::new(), 5, 3),
    ]
}

#[test]
fn spmm_of_every_operator_and_reduction() {
    let Some(device) = gpu() else { return };
    let mut rng = generator(1);
    let operators = [EdgeOp::Add, EdgeOp::Sub, EdgeOp::Mul, EdgeOp::Div];
    let shapes: [(&[usize], &[usize]); 5] =
        [(&[5], &[5]), (&[8], &[1]), (&[3, 4], &[3]), (&[64], &[1]), (&[602], &[1])];
    for graph in graphs() {
        for (dtype, reduce) in TYPES.iter().flat_map(|dtype| REDUCTIONS.map(|reduce| (*dtype, reduce))) {
            let tolerance = tolerance(dtype, graph.edges());
            for (left, right) in shapes {
                let shape = |rows: usize, dims: &[usize]| [&[rows], dims].concat();
                let x = random_tensor(&mut rng, &shape(graph.source_nodes(), left), dtype);
                let y = random_divisor(&mut rng, &shape(graph.edges(), right), dtype);
                same(
                    &device,
                    std::slice::from_ref(&x),
                    tolerance,
                    &format!("{reduce:?} {left:?} {dtype:?}"),
                    |inputs| spmm(&graph, EdgeOp::CopyLhs, reduce, Some(&inputs[0]), None),
                );
                for op in operators {
                    let what = format!("{reduce:?} of {op:?} {left:?} {right:?} {dtype:?}");
                    same(&device, &[x.clone(), y.clone()], tolerance, &what, |inputs| {
                        spmm(&graph, op, reduce, Some(&inputs[0]), Some(&inputs[1]))
                    });
                }
            }
        }
    }
}

#[test]
fn sddmm_gather_softmax_and_attention() {
    let Some(device) = gpu() else { return };
    let mut rng = generator(2);
    let ends = [Endpoint::Source, Endpoint::Destination, Endpoint::Edge];
    for graph in graphs() {
        let count = |at: Endpoint| match at {
            Endpoint::Source => graph.source_nodes(),
            Endpoint::Destination => graph.nodes(),
            Endpoint::Edge => graph.edges(),
        };
        let pairs = ends.iter().flat_map(|left| ends.map(|right| (*left, right)));
        for ((left, right), dtype) in pairs.flat_map(|pair| TYPES.map(|dtype| (pair, dtype))) {
            let tolerance = tolerance(dtype, graph.edges());
            let lhs = random_tensor(&mut rng, &[count(left), 2, 16], dtype);
            let rhs = random_divisor(&mut rng, &[count(right), 2, 16], dtype);
            for op in [EdgeOp::Add, EdgeOp::Sub, EdgeOp::Mul, EdgeOp::Div, EdgeOp::Dot] {
                let what = format!("{op:?} of each {left} and {right} {dtype:?}");
                same(&device, &[lhs.clone(), rhs.clone()], tolerance, &what, |inputs| {
                    let (lhs, rhs) = (Operand { rows: &inputs[0], at: left }, Operand { rows: &inputs[1], at: right });
                    sddmm(&graph, op, lhs, Some(rhs))
                });
            }
            same(&device, &[lhs], tolerance, "gather", |inputs| gather(&graph, &inputs[0], left));
        }
        for (dtype, heads) in TYPES.iter().flat_map(|dtype| [1, 3, 8].map(|heads| (*dtype, heads))) {
            let tolerance = tolerance(dtype, graph.edges());
            let logits = random_tensor(&mut rng, &[graph.edges(), heads], dtype);
            same(&device, &[logits], tolerance, "softmax", |inputs| edge_softmax(&graph, &inputs[0]));
            let scores =
                [graph.source_nodes(), graph.nodes()].map(|nodes| random_tensor(&mut rng, &[nodes, heads], dtype));
            same(&device, &scores, tolerance, "attention", |scores| {
                KernelFamily::Spmm.attention(&graph, &scores[0], &scores[1], 0.2)
            });
        }
    }
}

#[test]
fn dropout_segment_maxima_sparse_products_and_losses() {
    let Some(device) = gpu() else { return };
    let mut rng = generator(3);
    for (dtype, length) in TYPES.iter().flat_map(|dtype| [1, 7, 100_003].map(|length| (*dtype, length))) {
        let x = random_tensor(&mut rng, &[length], dtype);
        same(&device, &[x], 0.0, "dropout", |inputs| dropout(&inputs[0], 0.5, 77));
    }
    for dtype in [DType::F32, DType::F64] {
        let starts: Vec<u32> = (0..=50).map(|segment| segment * 20).collect();
        let segments = Arc::new(Segments::new(starts, (0..1000).rev().collect()).unwrap());
        let rows = (random_tensor(&mut rng, &[1000, 65], dtype) * 3.0).unwrap().round().unwrap();
        same(&device, &[rows], 0.0, "segment maxima", |inputs| segment_max(&inputs[0], &segments));
        let logits = random_tensor(&mut rng, &[500, 41], dtype);
        let labels: Vec<u32> = (0..128).map(|index| index * 7 % 41).collect();
        let labelled = LabelledRows::new((0..128).map(|index| index * 3 % 200), &labels).unwrap();
        same(&device, &[logits], tolerance(dtype, 0), "cross-entropy", |inputs| cross_entropy(&inputs[0], &labelled));
        let x = random_tensor(&mut rng, &[777], dtype);
        same(&device, &[x], tolerance(dtype, 0), "gelu", |inputs| vig::gelu(&inputs[0]));
        let x = random_tensor(&mut rng, &[2 * 32 * 32, 7], dtype);
        let grid = vig::Grid { height: 32, width: 32 };
        same(&device, &[x], tolerance(dtype, 0), "neighbours on a grid", |inputs| {
            vig::neighbour_sum(&inputs[0], grid, &Default::default())
        });
    }
    let dense = random_tensor(&mut rng, &[300, 1433], DType::F32);
    let kept = dense.gt(0.9f32).unwrap().to_dtype(DType::F32).unwrap();
    let matrix = Arc::new(SparseMatrix::from_dense(&(dense * kept).unwrap()).unwrap());
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        let weight = random_tensor(&mut rng, &[16, 1433], dtype);
        same(&device, &[weight], tolerance(dtype, 0), "sparse product", |inputs| {
            sparse_linear_dropout(&matrix, &inputs[0], 0.5, 3)
        });
    }
}

/// Values of all parameters.
fn values(parameters: &Parameters) -> Vec<f64> {
    let cpu = |tensor: &Tensor| numbers(&tensor.to_device(&Device::Cpu).unwrap());
    parameters.list().iter().flat_map(|parameter| cpu(parameter.var.as_tensor())).collect()
}

fn assert_learnt_alike(cpu: &Parameters, gpu: &Parameters, what: &str) {
    let (expected, found) = (values(cpu), values(gpu));
    assert_eq!(expected.len(), found.len());
    let worst = expected.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 2e-3, "{what}: parameters are {worst} apart after some steps");
}

#[test]
fn adam_takes_the_same_steps() {
    let Some(device) = gpu() else { return };
    let run = |device: &Device| {
        let parameters = Parameters::new(1);
        let vb = parameters.var_builder(DType::F32, device);
        let init = candle_nn::Init::Uniform { lo: -1.0, up: 1.0 };
        let tensors = [5, 10_000, 64].map(|length| vb.get_with_hints(length, &format!("p{length}"), init).unwrap());
        let settings = AdamSettings { weight_decay: 0.01, ..AdamSettings::default() };
        let mut adam = Adam::new(parameters.list(), settings).unwrap();
        for _ in 0..5 {
            let losses = tensors.iter().map(|tensor| tensor.sqr().unwrap().sum_all().unwrap());
            let loss = losses.reduce(|a, b| (a + b).unwrap()).unwrap();
            let gradients = loss.backward().unwrap();
            assert!(adam.are_finite(&gradients).unwrap());
            adam.step(&gradients, 0.1).unwrap();
        }
        let infinite = tensors[0].affine(f64::INFINITY, 0.0).unwrap().sum_all().unwrap().backward().unwrap();
        assert!(!adam.are_finite(&infinite).unwrap());
        parameters
    };
    assert_learnt_alike(&run(&Device::Cpu), &run(&device), "adam");
}

/// Some steps on a whole graph.
fn node_steps<M: NodeModel>(mut trainer: Learner<M>, graph: &Arc<Adjacency>, features: &Tensor) -> Parameters {
    let labels: Vec<u32> = (0..graph.nodes() as u32).map(|node| node % 5).collect();
    let labelled = LabelledRows::new(0..graph.nodes() as u32, &labels).unwrap();
    for seed in 0..3 {
        let input = NodeInput { features: features.into(), layers: std::slice::from_ref(graph), labelled: &labelled };
        let outcome = trainer.forward(&input, Pass::Train { seed }).unwrap();
        let gradients = outcome.loss.backward().unwrap();
        trainer.optimizer_step(&gradients, 1e-3).unwrap();
    }
    trainer.parameters().clone()
}

#[test]
fn graphsage_and_gat_learn_the_same() {
    let Some(device) = gpu() else { return };
    let graph = random_graph(&mut generator(4), 240, 240, 1500);
    let features = random_tensor(&mut generator(5), &[240, 33], DType::F32);
    let [cpu, moved] = [Device::Cpu, device].map(|device| (features.to_device(&device).unwrap(), device));
    let config = SageConfig { in_features: 33, hidden: 16, classes: 5, layers: 2, ..SageConfig::default() };
    let [a, b] = [&cpu, &moved].map(|(features, device)| {
        node_steps(Learner::<Sage>::new(device, &config, AdamSettings::default(), 1).unwrap(), &graph, features)
    });
    assert_learnt_alike(&a, &b, "GraphSAGE");
    for published in [GatConfig::pyg(), GatConfig::dgl()] {
        let config = GatConfig { in_features: 33, hidden: 8, heads: 3, classes: 5, layers: 2, ..published };
        let [a, b] = [&cpu, &moved].map(|(features, device)| {
            node_steps(Learner::<Gat>::new(device, &config, AdamSettings::default(), 1).unwrap(), &graph, features)
        });
        assert_learnt_alike(&a, &b, "GAT");
    }
}

#[test]
fn gcn_learns_the_same_in_every_precision() {
    let Some(device) = gpu() else { return };
    use gnntop_nn::models::gcn::LoopedGraph;
    use gnntop_workloads::trainers::gcn::Trainer;
    let graph = random_graph(&mut generator(6), 240, 240, 1500);
    let dense = random_tensor(&mut generator(7), &[240, 50], DType::F32).relu().unwrap();
    let sparse = NodeFeatures::Sparse(SparseMatrix::from_dense(&dense).unwrap().into());
    let labels: Vec<u32> = (0..100).map(|node| node % 5).collect();
    let labelled = LabelledRows::new(0..100, &labels).unwrap();
    let recipe = Recipe {
        model: GcnConfig::reference(50, 5),
        learning_rate: 1e-3,
        weight_decay: 5e-4,
        decays_first_layer_only: true,
    };
    for mode in [Mode::Compiled, Mode::SampledBf16, Mode::SampledFp16] {
        let run = |device: &Device| {
            let mut trainer = Trainer::new(device, &recipe, mode, KernelFamily::Spmm, 1).unwrap();
            let normalise = || LoopedGraph::new(&graph)?.normalised(None, DType::F32, device);
            for _ in 0..3 {
                trainer.step(&sparse, &labelled, normalise, |_| Ok(())).unwrap();
            }
            trainer.learner().parameters().clone()
        };
        assert_learnt_alike(&run(&Device::Cpu), &run(&device), mode.name());
    }
}

#[test]
fn pna_learns_the_same() {
    let Some(device) = gpu() else { return };
    let ring = |nodes: u32| {
        let edges = (0..nodes).flat_map(|node| [(node, (node + 1) % nodes), ((node + 1) % nodes, node)]).collect();
        let features = (0..nodes * 9).map(|index| (index * 7 % 5) as f32).collect();
        Graph { nodes: nodes as usize, features, edges, y: nodes as f32 }
    };
    let graphs: Vec<Graph> = (3..20).map(ring).collect();
    let mut batch = Batch::new();
    batch.assemble(&graphs.iter().collect::<Vec<_>>()).unwrap();
    for plain in [false, true] {
        let config = PnaConfig { layers: 3, hidden: 16, plain, ..PnaConfig::default() };
        let run = |device: &Device| {
            let scale = TargetScale { mean: 10.0, deviation: 5.0 };
            let build = |vb| Pna::new(&config, vb);
            let mut learner = Learner::build(device, AdamSettings::default(), 1, build).unwrap();
            let batch = DeviceBatch::new(&batch, DType::F32, device).unwrap();
            for _ in 0..3 {
                let predictions = learner.model().forward(&batch).unwrap();
                let gradients = scale.loss(&predictions, batch.targets()).unwrap().backward().unwrap();
                learner.optimizer_step(&gradients, 1e-3).unwrap();
            }
            learner.parameters().clone()
        };
        assert_learnt_alike(&run(&Device::Cpu), &run(&device), "PNA");
    }
}

#[test]
fn vig_learns_the_same() {
    let Some(device) = gpu() else { return };
    use gnntop_nn::models::vig::{Form, Mode, Vig, VigConfig};
    let config = VigConfig { blocks: 2, hidden: 16, ffn: 24, ..VigConfig::default() };
    let pixels = random_tensor(&mut generator(8), &[2 * config.grid.nodes(), 3], DType::F32);
    let labelled = LabelledRows::new(0..2, &[3, 7]).unwrap();
    let run = |device: &Device| {
        let parameters = Parameters::new(1);
        let model = Vig::new(&config, Form::Plain, parameters.var_builder(DType::F32, device)).unwrap();
        let mut adam = Adam::new(parameters.list(), AdamSettings::default()).unwrap();
        let pixels = pixels.to_device(device).unwrap();
        for _ in 0..2 {
            let loss = cross_entropy(&model.forward(&pixels, Mode::Train).unwrap(), &labelled).unwrap();
            adam.step(&loss.backward().unwrap(), 1e-4).unwrap();
        }
        parameters
    };
    assert_learnt_alike(&run(&Device::Cpu), &run(&device), "ViG");
}

/// Notes the losses.
#[derive(Default)]
struct Losses(Vec<f64>);

impl Observer for Losses {
    fn step(&mut self, report: &StepReport) {
        self.0.push(report.loss);
    }
}

/// What the trainings do beside computing: batches that go ahead, steps that are captured.
#[test]
fn trainings_by_name_have_the_losses_of_the_cpu() {
    if gpu().is_none() {
        return;
    }
    let gpu = std::env::var("GNNTOP_DEVICE").unwrap_or_else(|_| "cuda:0".to_owned());
    for (name, options, tolerance) in [
        ("gcn", "--mode compiled --runs 2 --epochs 12", 1e-3),
        ("gcn", "--mode compiled --plain --recipe study --runs 1 --epochs 12", 1e-3),
        ("gcn", "--mode compiled --kernels scatter --runs 1 --epochs 12", 1e-3),
        ("pna", "--graphs 200 --batch-size 32 --layers 2 --hidden 16 --epochs 2", 1e-3),
        ("vig", "--images 24 --batch-size 4 --blocks 2 --epochs 2", 1e-2),
    ] {
        let [expected, found] = ["cpu", gpu.as_str()].map(|device| {
            let folder = tempfile::tempdir().unwrap();
            let mut words: Vec<_> = options.split_whitespace().map(OsString::from).collect();
            words.extend(["--device".into(), device.into(), "--record".into(), folder.path().join("a.gnntop").into()]);
            let mut losses = Losses::default();
            Workload::parse(name, &words).unwrap().run(&mut losses).unwrap();
            losses.0
        });
        assert_eq!(found.len(), expected.len(), "{name} {options}");
        for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let same = (found - expected).abs() <= tolerance * (1.0 + expected.abs());
            assert!(same, "{name} {options}, step {step}: {found} instead of {expected}");
        }
    }
}
