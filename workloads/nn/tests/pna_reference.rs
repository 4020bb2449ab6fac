//! The PNA layer, model, pooling and optimizer against what PyTorch and PyTorch Geometric compute, within the
//! tolerances that come with the vectors.

use std::sync::Arc;

use crate::reference::{Case, builder, case, largest_difference, numbers};
use candle_core::{DType, Device, Tensor, Var};
use gnntop_data::graph::{Batch, Graph};
use gnntop_nn::kernels::{Segments, Workspaces, segment_max};
use gnntop_nn::learn::{Adam, AdamSettings, Learner, TargetScale};
use gnntop_nn::models::Parameter;
use gnntop_nn::models::pna::{DegreeScalers, DeviceBatch, Pna, PnaConfig, PnaConv};

/// In-degree histogram of the training set.
fn histogram(case: &Case) -> Vec<u64> {
    case.values("deg_hist").into_iter().map(|value| value as u64).collect()
}

fn layer_matches(name: &str, dtype: DType) {
    let case = case(name);
    let x = Var::from_tensor(&case.get("x").to_dtype(dtype).unwrap()).unwrap();
    let (nodes, input) = x.dims2().unwrap();
    let output = case.get("out").dim(1).unwrap();
    let vars = case.vars("param.", dtype);
    let scalers = DegreeScalers { average_log_degree: case.values("delta")[0] };
    let layer = PnaConv::new(input, output, scalers, builder(&vars, dtype)).unwrap();
    let out = layer.forward(&x, &case.adjacency(nodes), &Workspaces::default(), false).unwrap();
    case.check("out", &out);
    let objective = (out * case.get("grad_out").to_dtype(dtype).unwrap()).unwrap().sum_all().unwrap();
    let gradients = objective.backward().unwrap();
    for (name, var) in &vars {
        case.check(&format!("grad.param.{name}"), gradients.get(var).unwrap());
    }
    let of_x = gradients.get(&x).unwrap();
    if name.ends_with("molecules") {
        // Equal atoms tie, and who gets the gradient is a convention; the sum over all nodes is not.
        let expected = Tensor::sum(case.get("grad.x.f64"), 0).unwrap();
        let sums = of_x.to_dtype(DType::F64).unwrap().sum(0).unwrap();
        let tolerance = case.manifest["grad.x"]["tol"].as_f64().unwrap() * (nodes as f64).sqrt();
        assert!(largest_difference(&numbers(&sums), &numbers(&expected)) <= tolerance);
    } else {
        case.check("grad.x", of_x);
    }
}

#[test]
fn the_layer_matches_on_a_directed_multigraph() {
    layer_matches("pna_conv.multi", DType::F32);
    layer_matches("pna_conv.multi", DType::F64);
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn the_layer_matches_on_a_batch_of_graphs() {
    layer_matches("pna_conv.batch", DType::F32);
    layer_matches("pna_conv.batch", DType::F64);
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn the_layer_matches_on_real_molecules() {
    layer_matches("pna_conv.molecules", DType::F32);
    layer_matches("pna_conv.molecules", DType::F64);
}

fn scalers_match(name: &str) {
    let case = case(name);
    let config = PnaConfig::study().with_degrees(&histogram(&case));
    assert!((config.average_log_degree - case.values("delta")[0]).abs() <= 2e-7);
    let scalers = DegreeScalers { average_log_degree: config.average_log_degree };
    let adjacency = case.adjacency(case.get("amp").dim(0).unwrap());
    let degrees = || (0..adjacency.nodes()).map(|node| adjacency.in_degree(node));
    let amplification: Vec<f64> = degrees().map(|degree| scalers.amplification(degree)).collect();
    let attenuation: Vec<f64> = degrees().map(|degree| scalers.attenuation(degree)).collect();
    assert!(largest_difference(&amplification, &case.values("amp.f64")) < 1e-6);
    assert!(largest_difference(&attenuation, &case.values("att.f64")) < 1e-6);
}

#[test]
fn the_degree_scalers_match() {
    scalers_match("pna_conv.multi");
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn the_degree_scalers_match_on_batches() {
    scalers_match("pna_conv.batch");
    scalers_match("pna_conv.molecules");
}

/// The graphs of a case with `batch` (graph of each node, ascending), a feature matrix and targets.
fn graphs(case: &Case) -> Vec<Graph> {
    let (batch, y) = (case.indices("batch"), case.values("y"));
    let x = case.get("x").to_vec2::<f32>().unwrap();
    let mut first = vec![u32::MAX; y.len()];
    let mut graphs: Vec<Graph> = y.iter().map(|&y| Graph { y: y as f32, ..Graph::default() }).collect();
    for (node, (&graph, row)) in batch.iter().zip(&x).enumerate() {
        first[graph as usize] = first[graph as usize].min(node as u32);
        graphs[graph as usize].nodes += 1;
        graphs[graph as usize].features.extend(row);
    }
    for (source, target) in case.edges() {
        let graph = batch[source as usize] as usize;
        graphs[graph].edges.push((source - first[graph], target - first[graph]));
    }
    graphs
}

#[test]
fn five_steps_of_training_match() {
    let case = case("model_pna");
    let config = PnaConfig { hidden: 8, layers: 4, ..PnaConfig::study() }.with_degrees(&histogram(&case));
    let scale = TargetScale { mean: 0.0, deviation: 1.0 };
    let build = |vb| Pna::new(&config, vb);
    let mut learner = Learner::build(&Device::Cpu, AdamSettings::default(), 1, build).unwrap();
    assert_eq!(learner.parameters().values(), case.count("init."));
    learner.parameters().load(&case.with_prefix("init.")).unwrap();
    let graphs = graphs(&case);
    let mut batch = Batch::new();
    batch.assemble(&graphs.iter().collect::<Vec<_>>()).unwrap();
    let batch = DeviceBatch::new(&batch, DType::F32, &Device::Cpu).unwrap();
    let out = learner.model().forward(&batch).unwrap().flatten_all().unwrap();
    case.check("out0", &out);
    let mut losses = Vec::new();
    for (step, &rate) in case.values("lr").iter().enumerate() {
        let loss = scale.loss(&learner.model().forward(&batch).unwrap(), batch.targets()).unwrap();
        losses.push(loss.to_scalar::<f32>().unwrap());
        let gradients = loss.backward().unwrap();
        if step == 0 {
            for parameter in learner.parameters().list() {
                case.check(&format!("grad0.{}", parameter.name), gradients.get(&parameter.var).unwrap());
            }
        }
        learner.optimizer_step(&gradients, rate).unwrap();
    }
    case.check("loss", &Tensor::new(losses, &Device::Cpu).unwrap());
    for parameter in learner.parameters().list() {
        assert!(case.values(&format!("stable.{}", parameter.name)).iter().all(|&stable| stable == 1.0));
        case.check(&format!("final.{}", parameter.name), &parameter.var);
    }
}

fn pooled(case: &Case, input: &str, weights: &str) -> (Tensor, Tensor) {
    let batch = case.indices("batch");
    let count = case.indices("size")[0];
    let start = (0..=count).map(|graph| batch.partition_point(|&of| of < graph) as u32).collect();
    let segments = Arc::new(Segments::new(start, (0..batch.len() as u32).collect()).unwrap());
    let x = Var::from_tensor(case.get(input)).unwrap();
    let out = segment_max(&x, &segments).unwrap();
    let gradients = (&out * case.get(weights)).unwrap().sum_all().unwrap().backward().unwrap();
    (out, gradients.get(&x).unwrap().clone())
}

#[test]
fn max_pooling_matches() {
    let case = case("pools");
    let (out, gradient) = pooled(&case, "x", "max.grad_out");
    case.check("max.out", &out);
    case.check("max.grad.x", &gradient);
}

#[test]
fn max_pooling_with_ties_gives_the_whole_gradient_to_the_first() {
    let case = case("pools");
    let (out, gradient) = pooled(&case, "x_int", "maxties.grad_out");
    case.check("maxties.out", &out);
    let (x, gradient) = (case.get("x_int").to_vec2::<f32>().unwrap(), gradient.to_vec2::<f32>().unwrap());
    let upstream = case.get("maxties.grad_out").to_vec2::<f32>().unwrap();
    let out = out.to_vec2::<f32>().unwrap();
    let mut taken = vec![vec![false; x[0].len()]; out.len()];
    let mut ties = 0;
    for (node, &graph) in case.indices("batch").iter().enumerate() {
        for column in 0..x[0].len() {
            let (graph, holds) = (graph as usize, x[node][column] == out[graph as usize][column]);
            let first = holds && !taken[graph][column];
            taken[graph][column] |= holds;
            ties += usize::from(holds && !first);
            let expected = if first { upstream[graph][column] } else { 0.0 };
            assert_eq!(gradient[node][column], expected, "node {node}, column {column}");
        }
    }
    assert!(ties > 0, "the case has no ties");
}

#[test]
fn adam_matches() {
    let case = case("adam");
    for (name, weight_decay) in [("wd0.p", 0.0), ("wd0.0005.p", 0.0005)] {
        let var = Var::from_tensor(case.get("p0")).unwrap();
        let parameter = Parameter { name: "p".to_owned(), var: var.clone() };
        let mut adam = Adam::new(vec![parameter], AdamSettings { weight_decay, ..AdamSettings::default() }).unwrap();
        let mut history = Vec::new();
        for (step, &rate) in case.values("lr").iter().enumerate() {
            // The gradient of sum(p * g) is g.
            let gradient = case.get("grads").get(step).unwrap();
            let gradients = (var.as_tensor() * &gradient).unwrap().sum_all().unwrap().backward().unwrap();
            adam.step(&gradients, rate).unwrap();
            history.push(var.as_detached_tensor().copy().unwrap());
        }
        case.check(name, &Tensor::stack(&history, 0).unwrap());
    }
}
