//! ViG's batch normalisation, block and model against what PyTorch and PyTorch Geometric compute, in both forms, within
//! the tolerances that come with the vectors.

use crate::reference::{Case, builder, case, numbers};
use candle_core::{DType, Device, Var};
use gnntop_nn::kernels::Workspaces;
use gnntop_nn::learn::{Adam, AdamSettings, LabelledRows, cross_entropy};
use gnntop_nn::models::Parameters;
use gnntop_nn::models::vig::{BatchNorm, Block, Form, Grid, Mode, RunningStatistics, Vig, VigConfig};

fn grid(case: &Case) -> Grid {
    let grid = case.indices("grid");
    Grid { height: grid[1] as usize, width: grid[2] as usize }
}

/// Ours against the truth in double precision; where the file has none, against PyTorch's f32.
fn check(case: &Case, name: &str, ours: &[f64], dtype: DType) {
    let exact = case.tensors.get(&format!("{name}.f64"));
    let expected = numbers(exact.unwrap_or_else(|| case.get(name)));
    let entry = &case.manifest[name];
    let tolerance = match (dtype, exact) {
        (DType::F64, Some(_)) => 1e-9 * (1.0 + entry["scale"].as_f64().unwrap()),
        _ => entry["tol"].as_f64().unwrap(),
    };
    let difference = crate::reference::largest_difference(ours, &expected);
    assert!(difference <= tolerance, "{name} in {dtype:?}: off by {difference:.2e} > {tolerance:.2e}");
}

#[test]
fn batch_normalisation_matches() {
    let case = case("batch_norm");
    let width = case.get("x").dim(1).unwrap();
    for (dtype, name, mode) in [DType::F32, DType::F64]
        .into_iter()
        .flat_map(|dtype| [(dtype, "train", Mode::Train), (dtype, "eval", Mode::Eval)])
    {
        let variables = case.vars("param.", dtype);
        let norm = BatchNorm::new(width, builder(&variables, dtype)).unwrap();
        let before = RunningStatistics { mean: case.values("running_mean"), variance: case.values("running_var") };
        norm.set_running(before.clone()).unwrap();
        let x = Var::from_tensor(&case.get("x").to_dtype(dtype).unwrap()).unwrap();
        let out = norm.forward(&x, mode).unwrap();
        check(&case, &format!("{name}.out"), &numbers(&out), dtype);
        let upstream = case.get(&format!("{name}.grad_out")).to_dtype(dtype).unwrap();
        let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
        check(&case, &format!("{name}.grad.x"), &numbers(gradients.get(&x).unwrap()), dtype);
        for (parameter, var) in &variables {
            let gradient = numbers(gradients.get(var).unwrap());
            check(&case, &format!("{name}.grad.param.{parameter}"), &gradient, dtype);
        }
        if mode == Mode::Train {
            check(&case, "train.running_mean", &norm.running().mean, dtype);
            check(&case, "train.running_var", &norm.running().variance, dtype);
        } else {
            assert_eq!(norm.running(), before);
        }
    }
}

/// The running statistics after one training batch, as the file has them.
fn buffers(case: &Case, norm: usize) -> RunningStatistics {
    let values = |kind: &str| case.values(&format!("train.buffer.bn{norm}.running_{kind}"));
    RunningStatistics { mean: values("mean"), variance: values("var") }
}

fn block_matches(name: &str, form: Form, dtype: DType) {
    let case = case(name);
    let variables = case.vars("param.", dtype);
    let (hidden, ffn) = (case.get("param.w1.bias").elem_count(), case.get("param.v1.bias").elem_count());
    let config = VigConfig { grid: grid(&case), hidden, ffn, ..VigConfig::study() };
    let block = Block::new(&config, builder(&variables, dtype)).unwrap();
    for (pass, mode) in [("train", Mode::Train), ("eval", Mode::Eval)] {
        let x = Var::from_tensor(&case.get("x").to_dtype(dtype).unwrap()).unwrap();
        if mode == Mode::Eval {
            for (number, norm) in (1..).zip(block.norms()) {
                norm.set_running(buffers(&case, number)).unwrap();
            }
        }
        let out = block.forward(&x, config.grid, form, mode, &Workspaces::default()).unwrap();
        check(&case, &format!("{pass}.out"), &numbers(&out), dtype);
        let upstream = case.get(&format!("{pass}.grad_out")).to_dtype(dtype).unwrap();
        let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
        // Evaluation starts from the buffers in f32, which even double precision cannot undo.
        let precision = if mode == Mode::Eval { DType::F32 } else { dtype };
        check(&case, &format!("{pass}.grad.x"), &numbers(gradients.get(&x).unwrap()), precision);
        for (parameter, var) in &variables {
            let gradient = gradients.get(var).map_or_else(|| vec![0.0; var.elem_count()], numbers);
            check(&case, &format!("{pass}.grad.param.{parameter}"), &gradient, precision);
        }
        if mode == Mode::Train {
            for (number, norm) in (1..).zip(block.norms()) {
                let running = norm.running();
                check(&case, &format!("train.buffer.bn{number}.running_mean"), &running.mean, dtype);
                check(&case, &format!("train.buffer.bn{number}.running_var"), &running.variance, dtype);
            }
        }
    }
}

#[test]
fn the_plain_block_matches() {
    block_matches("vig_block", Form::Plain, DType::F32);
    block_matches("vig_block", Form::Plain, DType::F64);
}

#[test]
fn the_fused_block_matches() {
    block_matches("vig_block", Form::Fused, DType::F32);
    block_matches("vig_block", Form::Fused, DType::F64);
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn blocks_of_full_size_match_in_both_forms() {
    for form in [Form::Plain, Form::Fused] {
        block_matches("vig_block_exact", form, DType::F32);
        block_matches("vig_block_exact", form, DType::F64);
    }
}

fn five_steps_match(form: Form) {
    let case = case("model_vig");
    let config = VigConfig { grid: grid(&case), blocks: 3, hidden: 16, ffn: 24, head: 32, classes: 10 };
    let parameters = Parameters::new(1);
    let model = Vig::new(&config, form, parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    assert_eq!(parameters.values(), case.count("init."));
    assert_eq!(config.parameters(), parameters.values());
    parameters.load(&case.with_prefix("init.")).unwrap();
    let mut adam = Adam::new(parameters.list(), AdamSettings::default()).unwrap();
    let (x, y) = (case.get("x"), case.indices("y"));
    let classes = LabelledRows::new(0..y.len() as u32, &y).unwrap();
    let mut losses = Vec::new();
    for (step, &rate) in case.values("lr").iter().enumerate() {
        let out = model.forward(x, Mode::Train).unwrap();
        let loss = cross_entropy(&out, &classes).unwrap();
        losses.push(f64::from(loss.to_scalar::<f32>().unwrap()));
        let gradients = loss.backward().unwrap();
        if step == 0 {
            check(&case, "out0", &numbers(&out), DType::F32);
            for parameter in parameters.list() {
                let count = parameter.var.elem_count();
                let gradient = gradients.get(&parameter.var).map_or_else(|| vec![0.0; count], numbers);
                check(&case, &format!("grad0.{}", parameter.name), &gradient, DType::F32);
            }
        }
        adam.step(&gradients, rate).unwrap();
    }
    check(&case, "loss", &losses, DType::F32);
    let mut compared = 0.0;
    for parameter in parameters.list() {
        case.check_final(&parameter.name, &parameter.var);
        compared += case.values(&format!("stable.{}", parameter.name)).iter().sum::<f64>();
    }
    assert!(compared >= 0.9 * parameters.values() as f64, "only {compared} parameters are stable enough to compare");
}

#[test]
fn five_steps_of_training_match_in_the_plain_form() {
    five_steps_match(Form::Plain);
}

#[test]
fn five_steps_of_training_match_in_the_fused_form() {
    five_steps_match(Form::Fused);
}
