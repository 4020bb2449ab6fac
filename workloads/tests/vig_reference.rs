//! ViG's batch normalisation, block and model against what PyTorch and PyTorch Geometric compute, in both forms, within
//! the tolerances that come with the vectors. Skipped, with a line that says so, where the vectors are absent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::collections::HashMap;
use std::path::PathBuf;

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::VarBuilder;
use candle_nn::loss::cross_entropy;
use gnntop_workloads::kernels::Workspaces;
use gnntop_workloads::train::{Adam, AdamSettings, Parameters};
use gnntop_workloads::vig::{BatchNorm, Block, Form, Grid, Mode, RunningStatistics, Vig, VigConfig};

/// One case of the reference vectors, with its tolerances.
struct Case {
    tensors: HashMap<String, Tensor>,
    manifest: serde_json::Value,
}

fn case(name: &str) -> Option<Case> {
    let shared = std::env::var_os("GNNTOP_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"));
    let folder = shared.join("reference");
    let file = folder.join(format!("{name}.safetensors"));
    if !file.exists() {
        println!("skipped: {} is absent", file.display());
        return None;
    }
    let tensors = candle_core::safetensors::load(file, &Device::Cpu).unwrap();
    let text = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    Some(Case { tensors, manifest: manifest["cases"][name]["tensors"].clone() })
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

impl Case {
    fn get(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("no tensor {name}"))
    }

    fn values(&self, name: &str) -> Vec<f64> {
        numbers(self.get(name))
    }

    fn grid(&self) -> Grid {
        let grid = self.values("grid");
        Grid { height: grid[1] as usize, width: grid[2] as usize }
    }

    /// Ours against the truth in double precision; where the file has none, against PyTorch's f32.
    fn check(&self, name: &str, ours: &[f64], dtype: DType) {
        let exact = self.tensors.get(&format!("{name}.f64"));
        let expected = numbers(exact.unwrap_or_else(|| self.get(name)));
        let entry = &self.manifest[name];
        let tolerance = match (dtype, exact) {
            (DType::F64, Some(_)) => 1e-9 * (1.0 + entry["scale"].as_f64().unwrap()),
            _ => entry["tol"].as_f64().unwrap(),
        };
        assert_eq!(ours.len(), expected.len(), "{name}");
        for (ours, expected) in ours.iter().zip(&expected) {
            let difference = (ours - expected).abs();
            assert!(difference <= tolerance, "{name} in {dtype:?}: {ours} for {expected}, tolerance {tolerance:.2e}");
        }
    }

    /// Parameters of a layer as variables, by name.
    fn variables(&self, dtype: DType) -> HashMap<String, Var> {
        let variable = |(name, tensor): (&String, &Tensor)| {
            let name = name.strip_prefix("param.")?.to_owned();
            Some((name, Var::from_tensor(&tensor.to_dtype(dtype).unwrap()).unwrap()))
        };
        self.tensors.iter().filter_map(variable).collect()
    }
}

fn builder(variables: &HashMap<String, Var>, dtype: DType) -> VarBuilder<'static> {
    let tensors = variables.iter().map(|(name, var)| (name.clone(), var.as_tensor().clone())).collect();
    VarBuilder::from_tensors(tensors, dtype, &Device::Cpu)
}

#[test]
fn batch_normalisation_matches() {
    let Some(case) = case("batch_norm") else { return };
    for (dtype, name, mode) in [DType::F32, DType::F64]
        .into_iter()
        .flat_map(|dtype| [(dtype, "train", Mode::Train), (dtype, "eval", Mode::Eval)])
    {
        let variables = case.variables(dtype);
        let norm = BatchNorm::new(11, builder(&variables, dtype)).unwrap();
        let before = RunningStatistics { mean: case.values("running_mean"), variance: case.values("running_var") };
        norm.set_running(before.clone()).unwrap();
        let x = Var::from_tensor(&case.get("x").to_dtype(dtype).unwrap()).unwrap();
        let out = norm.forward(&x, mode).unwrap();
        case.check(&format!("{name}.out"), &numbers(&out), dtype);
        let upstream = case.get(&format!("{name}.grad_out")).to_dtype(dtype).unwrap();
        let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
        case.check(&format!("{name}.grad.x"), &numbers(gradients.get(&x).unwrap()), dtype);
        for (parameter, var) in &variables {
            let gradient = numbers(gradients.get(var).unwrap());
            case.check(&format!("{name}.grad.param.{parameter}"), &gradient, dtype);
        }
        if mode == Mode::Train {
            case.check("train.running_mean", &norm.running().mean, dtype);
            case.check("train.running_var", &norm.running().variance, dtype);
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
    let Some(case) = case(name) else { return };
    let variables = case.variables(dtype);
    assert_eq!(variables.len(), 19);
    let (hidden, ffn) = (case.get("param.w1.bias").elem_count(), case.get("param.v1.bias").elem_count());
    let config = VigConfig { grid: case.grid(), hidden, ffn, ..VigConfig::study() };
    let block = Block::new(&config, builder(&variables, dtype)).unwrap();
    for (pass, mode) in [("train", Mode::Train), ("eval", Mode::Eval)] {
        let x = Var::from_tensor(&case.get("x").to_dtype(dtype).unwrap()).unwrap();
        if mode == Mode::Eval {
            for (number, norm) in (1..).zip(block.norms()) {
                norm.set_running(buffers(&case, number)).unwrap();
            }
        }
        let out = block.forward(&x, config.grid, form, mode, &Workspaces::default()).unwrap();
        case.check(&format!("{pass}.out"), &numbers(&out), dtype);
        let upstream = case.get(&format!("{pass}.grad_out")).to_dtype(dtype).unwrap();
        let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
        // Evaluation starts from the buffers in f32, which even double precision cannot undo.
        let precision = if mode == Mode::Eval { DType::F32 } else { dtype };
        case.check(&format!("{pass}.grad.x"), &numbers(gradients.get(&x).unwrap()), precision);
        for (parameter, var) in &variables {
            let gradient = gradients.get(var).map_or_else(|| vec![0.0; var.elem_count()], numbers);
            case.check(&format!("{pass}.grad.param.{parameter}"), &gradient, precision);
        }
        if mode == Mode::Train {
            for (number, norm) in (1..).zip(block.norms()) {
                let running = norm.running();
                case.check(&format!("train.buffer.bn{number}.running_mean"), &running.mean, dtype);
                case.check(&format!("train.buffer.bn{number}.running_var"), &running.variance, dtype);
            }
        }
    }
}

#[test]
fn the_plain_block_matches() {
    for name in ["vig_block", "vig_block_exact"] {
        block_matches(name, Form::Plain, DType::F32);
        block_matches(name, Form::Plain, DType::F64);
    }
}

#[test]
fn the_fused_block_matches() {
    for name in ["vig_block", "vig_block_exact"] {
        block_matches(name, Form::Fused, DType::F32);
        block_matches(name, Form::Fused, DType::F64);
    }
}

fn with_prefix(case: &Case, prefix: &str) -> HashMap<String, Tensor> {
    let strip = |(name, tensor): (&String, &Tensor)| Some((name.strip_prefix(prefix)?.to_owned(), tensor.clone()));
    case.tensors.iter().filter(|(name, _)| !name.ends_with(".f64")).filter_map(strip).collect()
}

fn five_steps_match(form: Form) {
    let Some(case) = case("model_vig") else { return };
    let config = VigConfig { grid: case.grid(), blocks: 3, hidden: 16, ffn: 24, head: 32, classes: 10 };
    let parameters = Parameters::new(1);
    let model = Vig::new(&config, form, parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    assert_eq!(parameters.values(), 3176);
    assert_eq!(config.parameters(), 3176);
    parameters.load(&with_prefix(&case, "init.")).unwrap();
    let mut adam = Adam::new(parameters.list(), AdamSettings::default()).unwrap();
    let (x, classes) = (case.get("x"), case.get("y").to_dtype(DType::U32).unwrap());
    let mut losses = Vec::new();
    for (step, &rate) in case.values("lr").iter().enumerate() {
        let out = model.forward(x, Mode::Train).unwrap();
        let loss = cross_entropy(&out, &classes).unwrap();
        losses.push(f64::from(loss.to_scalar::<f32>().unwrap()));
        let gradients = loss.backward().unwrap();
        if step == 0 {
            case.check("out0", &numbers(&out), DType::F32);
            for parameter in parameters.list() {
                let count = parameter.var.elem_count();
                let gradient = gradients.get(&parameter.var).map_or_else(|| vec![0.0; count], numbers);
                case.check(&format!("grad0.{}", parameter.name), &gradient, DType::F32);
            }
        }
        adam.step(&gradients, rate).unwrap();
    }
    case.check("loss", &losses, DType::F32);
    let mut compared = 0;
    for parameter in parameters.list() {
        let name = format!("final.{}", parameter.name);
        let expected = case.values(&format!("{name}.f64"));
        let tolerance = case.manifest[&name]["tol"].as_f64().unwrap();
        let stable = case.values(&format!("stable.{}", parameter.name));
        for ((ours, expected), &stable) in numbers(&parameter.var).iter().zip(expected).zip(&stable) {
            compared += stable as usize;
            assert!(stable == 0.0 || (ours - expected).abs() <= tolerance, "{name}: {ours} for {expected}");
        }
    }
    assert_eq!(compared, 3176 - 146);
}

#[test]
fn five_steps_of_training_match_in_the_plain_form() {
    five_steps_match(Form::Plain);
}

#[test]
fn five_steps_of_training_match_in_the_fused_form() {
    five_steps_match(Form::Fused);
}
