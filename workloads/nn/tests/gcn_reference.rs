//! The GCN layer and model against what PyTorch Geometric computes, within the tolerances that come with the vectors.

use std::sync::Arc;

use crate::reference::{Case, builder, case};
use crate::shared::shared;
use candle_core::{DType, Device, Tensor, Var};
use gnntop_data::graph::Adjacency;
use gnntop_data::graph::SparseMatrix;
use gnntop_data::nodes::{self, Features, NodeDataset};
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::{Accuracy, AdamSettings, LabelledRows, Learner, cross_entropy};
use gnntop_nn::models::gcn::{Computation, Finish, Gcn, GcnConfig, GcnConv, LoopedGraph, NodeFeatures, Normalised};

const FAMILIES: [KernelFamily; 2] = [KernelFamily::Scatter, KernelFamily::Spmm];

/// Edge weights of a case in the order of [`Case::adjacency`].
fn weights(case: &Case, dtype: DType) -> Option<(Var, Tensor)> {
    let weight = Var::from_tensor(&case.tensors.get("edge_weight")?.to_dtype(dtype).unwrap()).unwrap();
    let order = case.edge_order();
    let index = Tensor::from_slice(&order, order.len(), &Device::Cpu).unwrap();
    let ordered = weight.index_select(&index, 0).unwrap();
    Some((weight, ordered))
}

fn layer_matches(name: &str, dtype: DType) {
    let case = case(name);
    let (nodes, input) = case.get("x").dims2().unwrap();
    let output = case.get("out").dim(1).unwrap();
    for family in FAMILIES {
        let x = Var::from_tensor(&case.get("x").to_dtype(dtype).unwrap()).unwrap();
        let vars = case.vars("param.", dtype);
        let layer = GcnConv::new(input, output, builder(&vars, dtype)).unwrap();
        let weights = weights(&case, dtype);
        let looped = LoopedGraph::new(&case.adjacency(nodes)).unwrap();
        let graph = looped.normalised(weights.as_ref().map(|pair| &pair.1), dtype, &Device::Cpu).unwrap();
        let graph = if weights.is_none() && dtype == DType::F64 { in_double(&looped) } else { graph };
        let out = layer
            .forward(&NodeFeatures::Dense(x.as_tensor().clone()), None, Finish::default(), &graph, family, dtype)
            .unwrap();
        let gradients = case.check_layer(&out, &vars, &x);
        if let Some((weight, _)) = &weights {
            case.check("grad.edge_weight", gradients.get(weight).unwrap());
        }
    }
}

/// Coefficients of unweighted edges in double precision, through weights of 1.
fn in_double(looped: &LoopedGraph) -> Normalised {
    let ones = Tensor::ones(looped.original_edges(), DType::F64, &Device::Cpu).unwrap();
    looped.normalised(Some(&ones), DType::F64, &Device::Cpu).unwrap()
}

#[test]
fn the_layer_matches_on_a_directed_multigraph() {
    layer_matches("gcn_conv.multi", DType::F32);
    layer_matches("gcn_conv.multi", DType::F64);
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn the_layer_matches_on_a_batch_of_graphs() {
    layer_matches("gcn_conv.batch", DType::F32);
    layer_matches("gcn_conv.batch", DType::F64);
}

#[test]
fn the_layer_matches_with_edge_weights() {
    layer_matches("gcn_conv_weighted.multi", DType::F32);
    layer_matches("gcn_conv_weighted.multi", DType::F64);
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn the_layer_matches_with_edge_weights_on_a_batch_of_graphs() {
    layer_matches("gcn_conv_weighted.batch", DType::F32);
    layer_matches("gcn_conv_weighted.batch", DType::F64);
}

fn sparse(dataset: &NodeDataset) -> NodeFeatures {
    match &*dataset.features {
        Features::Sparse { row_start, column, value, width } => NodeFeatures::Sparse(Arc::new(
            SparseMatrix::new(row_start.clone(), column.clone(), value.clone(), *width).unwrap(),
        )),
        Features::Dense { .. } => panic!("the words of Cora are read as sparse features"),
    }
}

fn dense(dataset: &NodeDataset) -> NodeFeatures {
    let shape = (dataset.graph.nodes(), dataset.features.width());
    NodeFeatures::Dense(Tensor::from_vec(dataset.features.to_dense(), shape, &Device::Cpu).unwrap())
}

fn ten_steps_match(case: &Case, dataset: &NodeDataset, x: &NodeFeatures, family: KernelFamily) {
    let (config, adam) = (GcnConfig::study(1433, 7), AdamSettings { weight_decay: 5e-4, ..AdamSettings::default() });
    let mut learner = Learner::build(&Device::Cpu, adam, 1, |vb| Gcn::new(&config, vb)).unwrap();
    assert_eq!(learner.parameters().values(), case.count("init."));
    learner.parameters().load(&case.with_prefix("init.")).unwrap();
    let graph = &dataset.graph;
    let adjacency = Adjacency::new(graph.row_start().to_vec(), graph.sources().to_vec()).unwrap();
    let normalised = LoopedGraph::new(&adjacency).unwrap().normalised(None, DType::F32, &Device::Cpu).unwrap();
    let train = &dataset.split.train;
    let labels: Vec<u32> = train.iter().map(|&node| dataset.labels[node as usize]).collect();
    let labelled = LabelledRows::new(train.iter().copied(), &labels).unwrap();
    let scores = |model: &Gcn| model.forward(x, &normalised, Computation::evaluation(family)).unwrap();
    case.check("out0", &candle_nn::ops::log_softmax(&scores(learner.model()), 1).unwrap());
    let mut step = || {
        let loss = cross_entropy(&scores(learner.model()), &labelled).unwrap();
        learner.optimizer_step(&loss.backward().unwrap(), 0.01).unwrap();
        loss.to_scalar::<f32>().unwrap()
    };
    let losses: Vec<f32> = (0..10).map(|_| step()).collect();
    case.check("loss", &Tensor::new(losses, &Device::Cpu).unwrap());
    for parameter in learner.parameters().list() {
        case.check_final(&parameter.name, &parameter.var);
    }
    check_answers(case, dataset, learner.model(), x, &normalised);
}

/// Right answers on training, validation and test nodes, give or take two.
fn check_answers(case: &Case, dataset: &NodeDataset, model: &Gcn, x: &NodeFeatures, graph: &Normalised) {
    let scores = model.forward(x, graph, Computation::evaluation(KernelFamily::Spmm)).unwrap();
    let split = &dataset.split;
    for (part, expected) in [&split.train, &split.validation, &split.test].into_iter().zip(case.values("correct")) {
        let rows = Tensor::from_slice(part, part.len(), &Device::Cpu).unwrap();
        let labels: Vec<u32> = part.iter().map(|&node| dataset.labels[node as usize]).collect();
        let right = Accuracy::new(&scores.index_select(&rows, 0).unwrap(), &labels).unwrap().right;
        assert!((right as f64 - expected).abs() <= 2.0, "{right} right answers, not {expected}");
    }
}

#[test]
#[cfg_attr(not(all(shared_vectors, shared_data)), ignore = "needs Cora and further reference vectors: CONTRIBUTING.md")]
fn ten_steps_on_cora_match_with_sparse_and_dense_features_and_both_kernel_families() {
    let (case, dataset) = (case("model_gcn_cora"), nodes::read(&shared("data/cora")).unwrap());
    for family in FAMILIES {
        ten_steps_match(&case, &dataset, &sparse(&dataset), family);
        ten_steps_match(&case, &dataset, &dense(&dataset), family);
    }
}
