//! The GraphSAGE layer and model against what PyTorch Geometric computes, within the tolerances that come with the
//! vectors, in every form.

use crate::reference::case;
use candle_core::{DType, Device, Var};
use candle_nn::VarBuilder;
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::{AdamSettings, Learner};
use gnntop_nn::models::sage::{Sage, SageConfig};
use gnntop_nn::models::{NodeModel, Pass};

/// The three forms of computation.
fn forms() -> [SageConfig; 3] {
    let fused = SageConfig::default();
    let plain = SageConfig { plain: true, ..fused.clone() };
    let scatter = SageConfig { kernels: KernelFamily::Scatter, ..fused.clone() };
    [fused, plain, scatter]
}

/// A model of one layer is the layer.
fn layer_matches(name: &str, dtype: DType) {
    let case = case(name);
    for form in forms() {
        let x = Var::from_tensor(&case.get("x").to_dtype(dtype).unwrap()).unwrap();
        let (nodes, in_features) = x.dims2().unwrap();
        let classes = case.get("out").dim(1).unwrap();
        let vars = case.vars("param.", dtype);
        let tensor = |(name, var): (&String, &Var)| (format!("convs.0.{name}"), var.as_tensor().clone());
        let vb = VarBuilder::from_tensors(vars.iter().map(tensor).collect(), dtype, &Device::Cpu);
        let model = Sage::new(&SageConfig { in_features, classes, layers: 1, ..form }, vb).unwrap();
        let out = model.forward(x.as_tensor(), &[case.adjacency(nodes)], Pass::Evaluate).unwrap();
        case.check_layer(&out, &vars, &x);
    }
}

#[test]
fn the_layer_matches_on_a_directed_multigraph() {
    layer_matches("sage_conv.multi", DType::F32);
    layer_matches("sage_conv.multi", DType::F64);
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn the_layer_matches_on_a_batch_of_graphs() {
    layer_matches("sage_conv.batch", DType::F32);
    layer_matches("sage_conv.batch", DType::F64);
}

#[test]
fn five_steps_of_training_match() {
    let case = case("model_sage");
    for form in forms() {
        let in_features = case.get("x").dim(1).unwrap();
        let config = SageConfig { in_features, hidden: 16, classes: 5, ..form };
        let adam = AdamSettings { weight_decay: 5e-4, ..AdamSettings::default() };
        let trainer = Learner::<Sage>::new(&Device::Cpu, &config, adam, 1).unwrap();
        case.check_training(trainer);
    }
}
