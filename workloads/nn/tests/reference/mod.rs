//! The reference vectors that PyTorch and PyTorch Geometric computed, read with their tolerances.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use candle_nn::VarBuilder;
use gnntop_data::graph::Adjacency;
use gnntop_nn::learn::{LabelledRows, Learner, NodeInput};
use gnntop_nn::models::{NodeModel, Pass};

use crate::shared::shared;

/// One case of the reference vectors, with its tolerances.
pub struct Case {
    pub tensors: HashMap<String, Tensor>,
    pub manifest: serde_json::Value,
}

/// The case of this name: of this folder, else of the further vectors.
pub fn case(name: &str) -> Case {
    let file = format!("{name}.safetensors");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/vectors");
    let folder = if here.join(&file).exists() { here } else { shared("reference") };
    let tensors = candle_core::safetensors::load(folder.join(file), &Device::Cpu).unwrap();
    let text = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    Case { tensors, manifest: manifest["cases"][name]["tensors"].clone() }
}

pub fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

pub fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    assert!(!a.is_empty());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |largest: f64, difference| {
        assert!(!difference.is_nan(), "NaN in a result");
        largest.max(difference)
    })
}

impl Case {
    pub fn get(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("no tensor {name}"))
    }

    pub fn values(&self, name: &str) -> Vec<f64> {
        numbers(self.get(name))
    }

    pub fn indices(&self, name: &str) -> Vec<u32> {
        self.values(name).into_iter().map(|value| value as u32).collect()
    }

    /// Our f32 result against the truth in double precision, or our f64 result, which must be almost exact.
    pub fn check(&self, name: &str, ours: &Tensor) {
        let expected = self.values(&format!("{name}.f64"));
        assert_eq!(ours.dims(), self.get(name).dims(), "{name}");
        let entry = &self.manifest[name];
        let tolerance = match ours.dtype() {
            DType::F64 => 1e-9 * (1.0 + entry["scale"].as_f64().unwrap()),
            _ => entry["tol"].as_f64().unwrap(),
        };
        let difference = largest_difference(&numbers(ours), &expected);
        assert!(difference <= tolerance, "{name} in {:?}: off by {difference:.2e} > {tolerance:.2e}", ours.dtype());
    }

    /// [`check`](Self::check) of what a layer gives, and of the gradients of its parameters and of `x`.
    pub fn check_layer(&self, out: &Tensor, vars: &HashMap<String, Var>, x: &Var) -> GradStore {
        self.check("out", out);
        let upstream = self.get("grad_out").to_dtype(out.dtype()).unwrap();
        let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
        for (name, var) in vars {
            self.check(&format!("grad.param.{name}"), gradients.get(var).unwrap());
        }
        self.check("grad.x", gradients.get(x).unwrap());
        gradients
    }

    /// How many numbers the tensors hold whose names begin with `prefix`.
    pub fn count(&self, prefix: &str) -> usize {
        self.with_prefix(prefix).values().map(Tensor::elem_count).sum()
    }

    /// Losses, gradients and parameters of a model of nodes over the steps of training in the file.
    pub fn check_training<M: NodeModel>(&self, mut trainer: Learner<M>) {
        assert_eq!(trainer.parameters().values(), self.count("init."));
        trainer.parameters().load(&self.with_prefix("init.")).unwrap();
        let (seeds, y) = (self.indices("seeds"), self.indices("y"));
        let labels: Vec<u32> = seeds.iter().map(|&node| y[node as usize]).collect();
        let labelled = LabelledRows::new(seeds, &labels).unwrap();
        let layers = [self.adjacency(y.len())];
        let input = NodeInput { features: self.get("x").into(), layers: &layers, labelled: &labelled };
        let mut losses = Vec::new();
        for (step, &rate) in self.values("lr").iter().enumerate() {
            let outcome = trainer.forward(&input, Pass::Evaluate).unwrap();
            losses.push(outcome.loss.to_scalar::<f32>().unwrap());
            let gradients = outcome.loss.backward().unwrap();
            if step == 0 {
                self.check("out0", &outcome.logits);
                for parameter in trainer.parameters().list() {
                    self.check(&format!("grad0.{}", parameter.name), gradients.get(&parameter.var).unwrap());
                }
            }
            trainer.optimizer_step(&gradients, rate).unwrap();
        }
        self.check("loss", &Tensor::new(losses, &Device::Cpu).unwrap());
        for parameter in trainer.parameters().list() {
            assert!(self.values(&format!("stable.{}", parameter.name)).iter().all(|&stable| stable == 1.0));
            self.check_final(&parameter.name, &parameter.var);
        }
    }

    /// Edges in the order of the file, by destination.
    pub fn adjacency(&self, nodes: usize) -> Arc<Adjacency> {
        let edges = self.edges();
        let mut row_start = vec![0u32; nodes + 1];
        edges.iter().for_each(|edge| row_start[edge.1 as usize + 1] += 1);
        (1..=nodes).for_each(|row| row_start[row] += row_start[row - 1]);
        let source = self.edge_order().into_iter().map(|edge| edges[edge as usize].0).collect();
        Arc::new(Adjacency::new(row_start, source).unwrap())
    }

    /// The position in the file of each edge of [`adjacency`](Self::adjacency).
    pub fn edge_order(&self) -> Vec<u32> {
        let edges = self.edges();
        let mut order: Vec<u32> = (0..edges.len() as u32).collect();
        order.sort_by_key(|&edge| edges[edge as usize].1);
        order
    }

    /// (source, target) in the order of the file.
    pub fn edges(&self) -> Vec<(u32, u32)> {
        let index = self.indices("edge_index");
        let (sources, targets) = index.split_at(index.len() / 2);
        sources.iter().copied().zip(targets.iter().copied()).collect()
    }

    /// The tensors whose names begin with `prefix`, without it, as variables of this number type.
    pub fn vars(&self, prefix: &str, dtype: DType) -> HashMap<String, Var> {
        let var = |tensor: Tensor| Var::from_tensor(&tensor.to_dtype(dtype).unwrap()).unwrap();
        self.with_prefix(prefix).into_iter().map(|(name, tensor)| (name, var(tensor))).collect()
    }

    /// The tensors whose names begin with `prefix`, without it.
    pub fn with_prefix(&self, prefix: &str) -> HashMap<String, Tensor> {
        let strip = |(name, tensor): (&String, &Tensor)| Some((name.strip_prefix(prefix)?.to_owned(), tensor.clone()));
        self.tensors.iter().filter(|(name, _)| !name.ends_with(".f64")).filter_map(strip).collect()
    }

    /// [`check`](Self::check) of the final values of a trained parameter, where they are stable.
    pub fn check_final(&self, name: &str, ours: &Tensor) {
        let stable = self.values(&format!("stable.{name}"));
        let only_stable = |values: Vec<f64>| -> Vec<f64> {
            values.iter().zip(&stable).filter(|(_, stable)| **stable == 1.0).map(|(value, _)| *value).collect()
        };
        let name = format!("final.{name}");
        let (ours, expected) = (only_stable(numbers(ours)), only_stable(self.values(&format!("{name}.f64"))));
        if !expected.is_empty() {
            let tolerance = self.manifest[&name]["tol"].as_f64().unwrap();
            let difference = largest_difference(&ours, &expected);
            assert!(difference <= tolerance, "{name}: off by {difference:.2e} > {tolerance:.2e}");
        }
    }
}

/// A builder of models from these parameters.
pub fn builder(vars: &HashMap<String, Var>, dtype: DType) -> VarBuilder<'static> {
    let tensors = vars.iter().map(|(name, var)| (name.clone(), var.as_tensor().clone())).collect();
    VarBuilder::from_tensors(tensors, dtype, &Device::Cpu)
}
