//! The vision graph network on patches: its size, its gradients, and that it learns.

use crate::finite_differences::Slopes;
use candle_core::{DType, Device, Tensor, Var};
use gnntop_data::images::{ImageBatch, generate};
use gnntop_nn::learn::{Accuracy, Adam, AdamSettings, LabelledRows, cross_entropy};
use gnntop_nn::models::Parameters;
use gnntop_nn::models::vig::patches::{PatchVig, PatchVigConfig};
use gnntop_nn::models::vig::{Grid, Mode};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

fn pixels(batch: &ImageBatch) -> Tensor {
    Tensor::from_slice(&batch.features, (batch.features.len() / 3, 3), &Device::Cpu).unwrap()
}

#[test]
fn gradients_agree_with_finite_differences() {
    let grid = Grid { height: 6, width: 4 };
    let config = PatchVigConfig { grid, patch: 2, channels: 8, blocks: 2, neighbours: [2, 3], head: 6, classes: 3 };
    let parameters = Parameters::new(5);
    let model = PatchVig::new(&config, parameters.var_builder(DType::F64, &Device::Cpu)).unwrap();
    assert_eq!(parameters.values(), config.parameters());
    let mut rng = StdRng::seed_from_u64(2);
    let values: Vec<f64> = (0..2 * 24 * 3).map(|_| rng.random_range(0.0..1.0)).collect();
    let x = Var::from_tensor(&Tensor::from_vec(values, (48, 3), &Device::Cpu).unwrap()).unwrap();
    let labels = LabelledRows::new(0..2, &[2, 0]).unwrap();
    let objective = || cross_entropy(&model.forward(&x, Mode::Train).unwrap(), &labels).unwrap();
    let variables: Vec<Var> = parameters.list().into_iter().map(|parameter| parameter.var).chain([x.clone()]).collect();
    Slopes { places: 4, step: 1e-6, tolerance: 1e-7 }.agree(&variables, objective, &mut rng);
}

#[test]
fn it_learns_far_better_than_chance() {
    let (train, test) = (generate(250, 1), generate(100, 2));
    let parameters = Parameters::new(7);
    let model = PatchVig::new(&PatchVigConfig::tiny(), parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    let mut adam = Adam::new(parameters.list(), AdamSettings::default()).unwrap();
    let mut batch = ImageBatch::default();
    let mut order: Vec<u32> = (0..train.len() as u32).collect();
    let mut rng = StdRng::seed_from_u64(3);
    for _ in 0..6 {
        order.shuffle(&mut rng);
        for indices in order.chunks(25) {
            batch.assemble(&train, indices).unwrap();
            let logits = model.forward(&pixels(&batch), Mode::Train).unwrap();
            let labels = LabelledRows::new(0..batch.images() as u32, &batch.labels).unwrap();
            adam.step(&cross_entropy(&logits, &labels).unwrap().backward().unwrap(), 2e-3).unwrap();
        }
    }
    batch.assemble(&test, &(0..100).collect::<Vec<_>>()).unwrap();
    let logits = model.forward(&pixels(&batch), Mode::Eval).unwrap();
    let share = Accuracy::new(&logits, &batch.labels).unwrap().share();
    println!("test accuracy {share}");
    assert!(share > 0.25, "{share}; guessing gives 0.1");
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let tiny = PatchVigConfig::tiny();
    for wrong in [
        PatchVigConfig { patch: 5, ..tiny.clone() },
        PatchVigConfig { patch: 0, ..tiny.clone() },
        PatchVigConfig { channels: 6, ..tiny.clone() },
        PatchVigConfig { neighbours: [9, 65], ..tiny.clone() },
        PatchVigConfig { blocks: 0, ..tiny.clone() },
    ] {
        let vb = Parameters::new(1).var_builder(DType::F32, &Device::Cpu);
        assert!(PatchVig::new(&wrong, vb).is_err(), "{wrong:?}");
    }
    let model = PatchVig::new(&tiny, Parameters::new(1).var_builder(DType::F32, &Device::Cpu)).unwrap();
    let zeros = |shape: (usize, usize)| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
    assert!(model.forward(&zeros((1000, 3)), Mode::Train).is_err());
    assert!(model.forward(&zeros((1024, 4)), Mode::Train).is_err());
    assert_eq!(model.forward(&zeros((1024, 3)), Mode::Train).unwrap().dims(), [1, 10]);
}
