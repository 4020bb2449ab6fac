//! The fused form of ViG against the plain one, its control: outputs, gradients, running statistics and losses; and the
//! whole fused block against finite differences in double precision.

use crate::finite_differences::Slopes;
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use gnntop_nn::kernels::Workspaces;
use gnntop_nn::learn::{Adam, AdamSettings, LabelledRows, cross_entropy};
use gnntop_nn::models::Parameters;
use gnntop_nn::models::vig::{Block, Form, Grid, Mode, Vig, VigConfig};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SMALL: VigConfig =
    VigConfig { grid: Grid { height: 6, width: 5 }, blocks: 2, hidden: 12, ffn: 20, head: 16, classes: 4 };

/// Parameters of every size, with normalisations that are not the identity.
fn model(config: &VigConfig, form: Form, dtype: DType) -> (Parameters, Vig) {
    let parameters = Parameters::new(4);
    let model = Vig::new(config, form, parameters.var_builder(dtype, &Device::Cpu)).unwrap();
    let mut rng = StdRng::seed_from_u64(9);
    for parameter in parameters.list().iter().filter(|parameter| parameter.name.contains(".bn")) {
        let centre = if parameter.name.ends_with("weight") { 1.0 } else { 0.0 };
        let values: Vec<f64> = (0..parameter.var.elem_count()).map(|_| centre + rng.random_range(-0.3..0.3)).collect();
        let values = Tensor::from_vec(values, parameter.var.shape(), &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
        parameter.var.set(&values).unwrap();
    }
    (parameters, model)
}

fn pixels(images: usize, grid: Grid, dtype: DType) -> Tensor {
    let mut rng = StdRng::seed_from_u64(5);
    let nodes = images * grid.nodes();
    let values: Vec<f64> = (0..nodes * 3).map(|_| rng.random_range(0.0..1.0)).collect();
    Tensor::from_vec(values, (nodes, 3), &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
}

fn classes(images: usize, classes: usize) -> LabelledRows {
    let values: Vec<u32> = (0..images).map(|image| (image * 7 % classes) as u32).collect();
    LabelledRows::new(0..images as u32, &values).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// The largest difference, in units of the largest value.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let scale = a.iter().chain(b).fold(1.0, |largest: f64, value| largest.max(value.abs()));
    a.iter().zip(b).fold(0.0, |largest: f64, (a, b)| {
        assert!(!(a - b).is_nan(), "NaN");
        largest.max((a - b).abs() / scale)
    })
}

/// A missing gradient is one that is exactly 0.
fn gradient(gradients: &GradStore, var: &Var) -> Vec<f64> {
    gradients.get(var).map_or_else(|| vec![0.0; var.elem_count()], numbers)
}

fn forms_agree(config: &VigConfig, images: usize, dtype: DType, tolerance: f64) {
    let (x, y) = (Var::from_tensor(&pixels(images, config.grid, dtype)).unwrap(), classes(images, config.classes));
    let [(plain_parameters, plain), (fused_parameters, fused)] =
        [Form::Plain, Form::Fused].map(|form| model(config, form, dtype));
    for mode in [Mode::Train, Mode::Eval] {
        let [left, right] = [&plain, &fused].map(|model| model.forward(&x, mode).unwrap());
        let off = difference(&numbers(&left), &numbers(&right));
        assert!(off <= tolerance, "{mode:?} outputs differ by {off:.1e}");
        let [left, right] = [left, right].map(|out| cross_entropy(&out, &y).unwrap().backward().unwrap());
        assert!(difference(&gradient(&left, &x), &gradient(&right, &x)) <= tolerance);
        for (a, b) in plain_parameters.list().iter().zip(&fused_parameters.list()) {
            let off = difference(&gradient(&left, &a.var), &gradient(&right, &b.var));
            assert!(off <= tolerance, "{mode:?} gradients of {} differ by {off:.1e}", a.name);
        }
    }
    for (a, b) in plain.blocks().iter().zip(fused.blocks()) {
        for (a, b) in a.norms().into_iter().zip(b.norms()) {
            assert!(difference(&a.running().mean, &b.running().mean) <= tolerance);
            assert!(difference(&a.running().variance, &b.running().variance) <= tolerance);
        }
    }
}

#[test]
fn both_forms_agree_in_double_precision() {
    forms_agree(&SMALL, 3, DType::F64, 1e-10);
}

#[test]
fn both_forms_agree_in_single_precision() {
    forms_agree(&SMALL, 3, DType::F32, 1e-4);
}

#[test]
fn both_forms_agree_at_the_widths_of_the_study() {
    let grid = Grid { height: 32, width: 32 };
    forms_agree(&VigConfig { grid, blocks: 1, ..VigConfig::study() }, 2, DType::F64, 1e-10);
}

#[test]
fn both_forms_train_to_the_same_losses() {
    let (x, y) = (pixels(8, SMALL.grid, DType::F32), classes(8, SMALL.classes));
    let losses = |form| -> Vec<f64> {
        let (parameters, model) = model(&SMALL, form, DType::F32);
        let mut adam = Adam::new(parameters.list(), AdamSettings::default()).unwrap();
        (0..12)
            .map(|_| {
                let loss = cross_entropy(&model.forward(&x, Mode::Train).unwrap(), &y).unwrap();
                adam.step(&loss.backward().unwrap(), 1e-3).unwrap();
                f64::from(loss.to_scalar::<f32>().unwrap())
            })
            .collect()
    };
    let (plain, fused) = (losses(Form::Plain), losses(Form::Fused));
    assert!(difference(&plain, &fused) < 2e-3, "{plain:?} {fused:?}");
    assert!(fused[11] < fused[0], "{fused:?}");
}

#[test]
fn the_fused_block_agrees_with_finite_differences() {
    let parameters = Parameters::new(11);
    let block = Block::new(&SMALL, parameters.var_builder(DType::F64, &Device::Cpu)).unwrap();
    let x = Var::from_tensor(&pixels(2, SMALL.grid, DType::F64)).unwrap();
    let weights = (pixels(2, SMALL.grid, DType::F64).sqr().unwrap() - 0.3).unwrap();
    let workspaces = Workspaces::default();
    let objective = || {
        let out = block.forward(&x, SMALL.grid, Form::Fused, Mode::Train, &workspaces).unwrap();
        (out * &weights).unwrap().sum_all().unwrap()
    };
    let variables: Vec<Var> = parameters.list().into_iter().map(|parameter| parameter.var).chain([x.clone()]).collect();
    let slopes = Slopes { places: 8, step: 1e-5, tolerance: 1e-6 };
    slopes.agree(&variables, objective, &mut StdRng::seed_from_u64(3));
}

#[test]
fn every_block_is_entered_and_left_in_order_and_can_run_alone() {
    struct Guard<'a>(usize, &'a std::cell::RefCell<Vec<String>>);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(format!("-{}", self.0));
        }
    }
    let (_, model) = model(&SMALL, Form::Fused, DType::F32);
    let log = std::cell::RefCell::new(Vec::new());
    let mut x = pixels(2, SMALL.grid, DType::F32);
    let whole = model
        .forward_with(&x, Mode::Eval, |block| {
            log.borrow_mut().push(format!("+{block}"));
            Guard(block, &log)
        })
        .unwrap();
    assert_eq!(log.into_inner(), ["+0", "-0", "+1", "-1"]);
    for block in 0..model.blocks().len() {
        x = model.block(block, &x, Mode::Eval).unwrap();
    }
    assert_eq!(numbers(&model.readout(&x).unwrap()), numbers(&whole));
    assert!(model.block(2, &x, Mode::Eval).is_err());
}

#[test]
fn wrong_pixels_are_refused_and_nan_is_not_hidden() {
    for form in [Form::Fused, Form::Plain] {
        let (_, model) = model(&SMALL, form, DType::F32);
        for wrong in [
            Tensor::zeros((31, 3), DType::F32, &Device::Cpu).unwrap(),
            Tensor::zeros((30, 4), DType::F32, &Device::Cpu).unwrap(),
            Tensor::zeros((0, 3), DType::F32, &Device::Cpu).unwrap(),
            Tensor::zeros((30, 3), DType::F64, &Device::Cpu).unwrap(),
            Tensor::zeros(30, DType::F32, &Device::Cpu).unwrap(),
        ] {
            assert!(model.forward(&wrong, Mode::Train).is_err(), "{form:?} {wrong:?}");
        }
        let mut values = vec![0.5f32; 90];
        values[7] = f32::NAN;
        let x = Tensor::from_vec(values, (30, 3), &Device::Cpu).unwrap();
        assert!(numbers(&model.forward(&x, Mode::Train).unwrap()).iter().any(|value| value.is_nan()), "{form:?}");
    }
    let pixel = VigConfig { grid: Grid { height: 1, width: 1 }, ..SMALL };
    for form in [Form::Fused, Form::Plain] {
        let (_, model) = model(&pixel, form, DType::F32);
        let x = Tensor::zeros((1, 3), DType::F32, &Device::Cpu).unwrap();
        assert!(model.forward(&x, Mode::Train).is_err(), "{form:?}: one node has no variance");
        assert!(model.forward(&x, Mode::Eval).is_ok());
    }
}

#[test]
fn the_study_model_has_1120410_parameters_of_pytorch_initial_size() {
    let parameters = Parameters::new(0);
    let config = VigConfig::study();
    Vig::new(&config, Form::Fused, parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    assert_eq!(parameters.values(), 1_120_410);
    assert_eq!(config.parameters(), 1_120_410);
    let list = parameters.list();
    assert_eq!(list.len(), 8 * 19 + 4);
    for entry in list.iter().filter(|entry| entry.var.rank() == 2) {
        let bound = 1.0 / (entry.var.dims()[1] as f64).sqrt();
        let largest = entry.var.abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(f64::from(largest) <= bound && f64::from(largest) > 0.8 * bound, "{}: {largest}", entry.name);
    }
}
