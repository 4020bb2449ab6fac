//! GAT's fused form against the plain one, with dropout and on every form of sample, and its gradients against
//! finite differences in double precision.

use std::sync::Arc;

use crate::node_models::{self, CLASSES, IN_FEATURES, Made, distance};
use candle_core::{DType, Device, Tensor};
use gnntop_data::graph::Adjacency;
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::models::gat::{Gat, GatConfig, SelfLoops};
use gnntop_nn::models::{NodeModel, Parameters, Pass};

/// Over 2 heads of 9, in both variants.
fn configs() -> [GatConfig; 2] {
    [GatConfig::pyg(), GatConfig::dgl()].map(|variant| GatConfig {
        in_features: IN_FEATURES,
        hidden: 9,
        heads: 2,
        classes: CLASSES,
        ..variant
    })
}

fn config() -> GatConfig {
    configs()[1].clone()
}

/// A model with a bias: without, nodes without edges have scores of exactly 0, where the leaky ReLU has no slope.
fn model(config: &GatConfig) -> Made<Gat> {
    let (parameters, model) = in_type(config, DType::F64);
    for entry in parameters.list().iter().filter(|entry| entry.name.ends_with("bias")) {
        let values: Vec<f64> = (0..entry.var.elem_count()).map(|at| 0.1 + 0.03 * at as f64).collect();
        entry.var.set(&Tensor::from_vec(values, entry.var.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    (parameters, model)
}

fn in_type(config: &GatConfig, dtype: DType) -> Made<Gat> {
    let parameters = Parameters::new(5);
    let model = Gat::new(config, parameters.var_builder(dtype, &Device::Cpu)).unwrap();
    (parameters, model)
}

#[test]
fn all_forms_agree_in_outputs_and_gradients() {
    for config in configs() {
        let fused = || model(&config);
        let plain = || model(&GatConfig { plain: true, ..config.clone() });
        let scatter = || model(&GatConfig { kernels: KernelFamily::Scatter, ..config.clone() });
        node_models::forms_agree(&[&fused, &plain, &scatter]);
    }
}

#[test]
fn dropout_changes_with_the_seed_and_only_in_training() {
    node_models::dropout_changes_with_the_seed_and_only_in_training(&model(&config()));
}

#[test]
fn gradients_agree_with_finite_differences() {
    for config in configs() {
        node_models::gradients_agree_with_finite_differences(&model(&config));
    }
}

#[test]
fn threads_do_not_change_the_result() {
    node_models::threads_do_not_change_the_result(|| in_type(&config(), DType::F32));
}

#[test]
fn the_study_model_has_10763_parameters_in_their_order() {
    let parameters = Parameters::new(0);
    let model = Gat::new(&GatConfig::pyg(), parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    assert_eq!((model.layers(), parameters.values()), (3, 10_763));
    let list = parameters.list();
    let names: Vec<&str> = list.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names[..4], ["convs.0.att_src", "convs.0.att_dst", "convs.0.bias", "convs.0.lin.weight"]);
    let largest = |entry: usize| {
        list[entry].var.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap()
    };
    assert!(f64::from(largest(3)) <= (6.0 / 618.0f64).sqrt() && largest(3) > 0.09);
    assert!(f64::from(largest(0)) <= (6.0 / 17.0f64).sqrt() && largest(0) > 0.3);
    assert_eq!(largest(2), 0.0);
}

#[test]
fn a_node_without_edges_attends_to_itself_or_gets_the_bias() {
    let x = Tensor::new(&[[1.0f64; 7], [2.0; 7]], &Device::Cpu).unwrap();
    let alone = [Arc::new(Adjacency::new(vec![0, 0, 0], vec![]).unwrap())];
    let looped = [Arc::new(Adjacency::new(vec![0, 1, 3], vec![0, 1, 1]).unwrap())];
    for plain in [false, true] {
        let [replaced, as_given] = configs().map(|config| model(&GatConfig { plain, layers: 1, ..config }));
        let run = |(_, model): &(Parameters, Gat), layers: &[Arc<Adjacency>]| {
            model.forward(&x, layers, Pass::Evaluate).unwrap()
        };
        // Attention to oneself alone is 1, however many loops there are.
        assert_eq!(distance(&run(&replaced, &alone), &run(&replaced, &looped)), 0.0);
        assert!(distance(&run(&replaced, &looped), &run(&as_given, &looped)) < 1e-15);
        let bias = &as_given.0.list()[2].var;
        assert_eq!(distance(&run(&as_given, &alone), &bias.broadcast_as((2, 4)).unwrap()), 0.0);
        assert_eq!(replaced.1.config().self_loops, SelfLoops::Replaced);
    }
}

#[test]
fn every_layer_is_entered_and_left_in_order() {
    for plain in [false, true] {
        node_models::every_layer_is_entered_and_left_in_order(&model(&GatConfig { plain, ..config() }));
    }
}

#[test]
fn features_are_read_where_they_are() {
    for config in configs() {
        for (plain, matmul_precision) in node_models::forms() {
            let config = GatConfig { plain, matmul_precision, ..config.clone() };
            node_models::features_are_read_where_they_are(|| in_type(&config, DType::F32));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    node_models::what_does_not_fit_is_refused(&model(&config()));
}
