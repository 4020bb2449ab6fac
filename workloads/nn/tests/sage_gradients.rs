//! GraphSAGE's fused form against the plain one, with dropout and on every form of sample, and its gradients against
//! finite differences in double precision.

use crate::node_models::{self, CLASSES, IN_FEATURES, Made};
use candle_core::{DType, Device};
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::models::sage::{Sage, SageConfig};
use gnntop_nn::models::{NodeModel, Parameters};

/// Of the samples' layers some project before they aggregate, the others after.
fn config() -> SageConfig {
    SageConfig { in_features: IN_FEATURES, hidden: 9, classes: CLASSES, ..SageConfig::default() }
}

fn in_type(config: &SageConfig, dtype: DType) -> Made<Sage> {
    let parameters = Parameters::new(5);
    let model = Sage::new(config, parameters.var_builder(dtype, &Device::Cpu)).unwrap();
    (parameters, model)
}

fn model(config: &SageConfig) -> Made<Sage> {
    in_type(config, DType::F64)
}

#[test]
fn all_forms_agree_in_outputs_and_gradients() {
    let fused = || model(&config());
    let plain = || model(&SageConfig { plain: true, ..config() });
    let scatter = || model(&SageConfig { kernels: KernelFamily::Scatter, ..config() });
    node_models::forms_agree(&[&fused, &plain, &scatter]);
}

#[test]
fn dropout_changes_with_the_seed_and_only_in_training() {
    node_models::dropout_changes_with_the_seed_and_only_in_training(&model(&config()));
}

#[test]
fn gradients_agree_with_finite_differences() {
    node_models::gradients_agree_with_finite_differences(&model(&config()));
}

#[test]
fn threads_do_not_change_the_result() {
    node_models::threads_do_not_change_the_result(|| in_type(&config(), DType::F32));
}

#[test]
fn the_study_model_has_460841_parameters_within_their_bounds() {
    let parameters = Parameters::new(0);
    let model = Sage::new(&SageConfig::default(), parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    assert_eq!((model.layers(), parameters.values()), (3, 460_841));
    let names: Vec<String> = parameters.list().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names[..3], ["convs.0.lin_l.weight", "convs.0.lin_l.bias", "convs.0.lin_r.weight"]);
    for (index, entry) in parameters.list().iter().enumerate() {
        let fan_in = if index < 3 { 602.0 } else { 256.0f64 };
        let largest = entry.var.abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(f64::from(largest) <= 1.0 / fan_in.sqrt(), "{}: {largest}", entry.name);
    }
}

#[test]
fn every_layer_is_entered_and_left_in_order() {
    for plain in [false, true] {
        node_models::every_layer_is_entered_and_left_in_order(&model(&SageConfig { plain, ..config() }));
    }
}

#[test]
fn features_are_read_where_they_are() {
    for (plain, matmul_precision) in node_models::forms() {
        let config = SageConfig { plain, matmul_precision, ..config() };
        node_models::features_are_read_where_they_are(|| in_type(&config, DType::F32));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    node_models::what_does_not_fit_is_refused(&model(&config()));
}
