//! The GAT layer and model against what PyTorch Geometric computes, within the tolerances that come with the
//! vectors, in every form.

use crate::reference::case;
use candle_core::{DType, Device, Var};
use candle_nn::VarBuilder;
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::{AdamSettings, Learner};
use gnntop_nn::models::gat::{Gat, GatConfig, with_self_loops};
use gnntop_nn::models::{NodeModel, Pass};

/// The three forms of computation.
fn forms() -> [GatConfig; 3] {
    let fused = GatConfig::pyg();
    let plain = GatConfig { plain: true, ..fused.clone() };
    let scatter = GatConfig { kernels: KernelFamily::Scatter, ..fused.clone() };
    [fused, plain, scatter]
}

/// A model of one layer is the layer.
fn layer_matches(name: &str, dtype: DType) {
    let case = case(name);
    for form in forms() {
        let x = Var::from_tensor(&case.get("x").to_dtype(dtype).unwrap()).unwrap();
        let (nodes, in_features) = x.dims2().unwrap();
        let (_, heads, width) = case.get("param.att_src").dims3().unwrap();
        let vars = case.vars("param.", dtype);
        let tensor = |(name, var): (&String, &Var)| (format!("convs.0.{name}"), var.as_tensor().clone());
        let vb = VarBuilder::from_tensors(vars.iter().map(tensor).collect(), dtype, &Device::Cpu);
        let model =
            Gat::new(&GatConfig { in_features, classes: width, last_heads: heads, layers: 1, ..form }, vb).unwrap();
        let out = model.forward(x.as_tensor(), &[case.adjacency(nodes)], Pass::Evaluate).unwrap();
        case.check_layer(&out, &vars, &x);
    }
}

#[test]
fn one_head_matches_on_a_directed_multigraph() {
    layer_matches("gat_conv_h1.multi", DType::F32);
    layer_matches("gat_conv_h1.multi", DType::F64);
}

#[test]
fn four_heads_match_on_a_directed_multigraph() {
    layer_matches("gat_conv_h4.multi", DType::F32);
    layer_matches("gat_conv_h4.multi", DType::F64);
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn heads_match_on_a_batch_of_graphs() {
    for name in ["gat_conv_h1.batch", "gat_conv_h4.batch"] {
        layer_matches(name, DType::F32);
        layer_matches(name, DType::F64);
    }
}

/// The attention itself, edge by edge: the file has the edges that remain in its own order, then one loop a node.
#[test]
fn the_attention_matches() {
    for (name, heads) in [("gat_conv_h1.multi", 1), ("gat_conv_h4.multi", 4)] {
        let case = case(name);
        let x = case.get("x").to_dtype(DType::F64).unwrap();
        let nodes = x.dim(0).unwrap();
        let parameter = |name: &str| case.get(&format!("param.{name}")).to_dtype(DType::F64).unwrap();
        let h = x.matmul(&parameter("lin.weight").t().unwrap()).unwrap().reshape((nodes, heads, ())).unwrap();
        let score = |name| h.broadcast_mul(&parameter(name)).unwrap().sum(2).unwrap();
        let looped = with_self_loops(&case.adjacency(nodes)).unwrap();
        let mut edges: Vec<(u32, u32)> = case.edges().into_iter().filter(|edge| edge.0 != edge.1).collect();
        edges.extend((0..nodes as u32).map(|node| (node, node)));
        let file = case.get("loops.edge_index").to_vec2::<i64>().unwrap();
        assert!(
            edges.iter().enumerate().all(|(at, edge)| (edge.0 as i64, edge.1 as i64) == (file[0][at], file[1][at]))
        );
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_by_key(|&edge| edges[edge].1);
        let expected = case.get("alpha.f64").to_vec2::<f64>().unwrap();
        for kernels in [KernelFamily::Spmm, KernelFamily::Scatter] {
            let ours = kernels.attention(&looped, &score("att_src"), &score("att_dst"), 0.2).unwrap();
            let ours = ours.to_vec2::<f64>().unwrap();
            assert_eq!(ours.len(), order.len());
            for (ours, &edge) in ours.iter().zip(&order) {
                assert!(ours.iter().zip(&expected[edge]).all(|(a, b)| (a - b).abs() < 1e-12), "{ours:?}");
            }
        }
    }
}

#[test]
fn five_steps_of_training_match() {
    let case = case("model_gat");
    for form in forms() {
        let in_features = case.get("x").dim(1).unwrap();
        let config = GatConfig { in_features, hidden: 8, classes: 5, ..form };
        let adam = AdamSettings { weight_decay: 5e-4, ..AdamSettings::default() };
        let trainer = Learner::<Gat>::new(&Device::Cpu, &config, adam, 1).unwrap();
        case.check_training(trainer);
    }
}
