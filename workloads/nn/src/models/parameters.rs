//! Trainable parameters as one list in a fixed order, initialised from a seed.
//!
//! candle's own `VarMap` keeps them in a hash map and draws initial values from a generator that cannot be seeded on
//! the CPU. This store is a backend of candle's `VarBuilder`: a model that asks for a parameter gets a variable with
//! values from our generator, appended to the list. The list is also where ranks would sum their gradients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{DType, Device, Result, Shape, Tensor, Var, bail};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A trainable tensor and its name, such as `convs.0.lin.weight`.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Path in the model.
    pub name: String,
    /// The values; clones share them.
    pub var: Var,
}

/// All parameters of a model, in the order in which it asked for them. Clones share the list.
#[derive(Debug, Clone)]
pub struct Parameters {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    rng: StdRng,
    list: Vec<Parameter>,
}

impl Parameters {
    /// An empty list; initial values will come from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(State { rng: StdRng::seed_from_u64(seed), list: Vec::new() })) }
    }

    /// A builder that makes the parameters it is asked for.
    #[must_use]
    pub fn var_builder(&self, dtype: DType, device: &Device) -> VarBuilder<'static> {
        let backend: Box<dyn SimpleBackend> = Box::new(self.clone());
        VarBuilder::from_backend(backend, dtype, device.clone())
    }

    /// The parameters, in order.
    #[must_use]
    pub fn list(&self) -> Vec<Parameter> {
        self.state().list.clone()
    }

    /// Number of trainable values.
    #[must_use]
    pub fn values(&self) -> usize {
        self.state().list.iter().map(|parameter| parameter.var.elem_count()).sum()
    }

    /// Replaces the values of every parameter by the tensor of its name.
    ///
    /// # Errors
    /// A parameter has no tensor, or one of another shape or number type. Those before it are replaced then.
    pub fn load(&self, tensors: &HashMap<String, Tensor>) -> Result<()> {
        for parameter in &self.state().list {
            match tensors.get(&parameter.name) {
                Some(tensor) => parameter.var.set(tensor)?,
                None => bail!("there is no tensor for parameter {}", parameter.name),
            }
        }
        Ok(())
    }

    /// Locks even after a panic: the list only ever grows by whole parameters.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn initial(&mut self, shape: &Shape, init: Init, dtype: DType, device: &Device) -> Result<Var> {
        let count = shape.elem_count();
        let values: Vec<f64> = match init {
            Init::Const(value) => vec![value; count],
            Init::Uniform { lo, up } => (0..count).map(|_| lo + (up - lo) * self.rng.random::<f64>()).collect(),
            Init::Randn { .. } | Init::Kaiming { .. } => bail!("only constant and uniform initial values are seeded"),
        };
        Var::from_tensor(&Tensor::from_vec(values, shape, device)?.to_dtype(dtype)?)
    }
}

impl SimpleBackend for Parameters {
    fn get(&self, shape: Shape, name: &str, init: Init, dtype: DType, device: &Device) -> Result<Tensor> {
        let mut state = self.state();
        if let Some(known) = state.list.iter().find(|parameter| parameter.name == name) {
            if known.var.shape() != &shape {
                bail!("parameter {name} has shape {:?}, not {shape:?}", known.var.shape());
            }
            return Ok(known.var.as_tensor().clone());
        }
        let var = state.initial(&shape, init, dtype, device)?;
        let tensor = var.as_tensor().clone();
        state.list.push(Parameter { name: name.to_owned(), var });
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        bail!("parameter {name} cannot be made without a shape")
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.state().list.iter().any(|parameter| parameter.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64) -> (Parameters, Vec<f32>) {
        let parameters = Parameters::new(seed);
        let vb = parameters.var_builder(DType::F32, &Device::Cpu);
        let init = Init::Uniform { lo: -0.5, up: 0.5 };
        let first = vb.pp("a").get_with_hints((20, 30), "weight", init).unwrap();
        vb.get_with_hints(3, "bias", Init::Const(2.0)).unwrap();
        (parameters, first.flatten_all().unwrap().to_vec1().unwrap())
    }

    #[test]
    fn the_seed_decides_the_values_and_the_order_is_that_of_asking() {
        let (parameters, values) = draw(7);
        assert_eq!(values, draw(7).1);
        assert_ne!(values, draw(8).1);
        let names: Vec<_> = parameters.list().into_iter().map(|parameter| parameter.name).collect();
        assert_eq!(names, ["a.weight", "bias"]);
        assert_eq!(parameters.values(), 603);
        let mean = values.iter().sum::<f32>() / 600.0;
        assert!(values.iter().all(|value| value.abs() <= 0.5) && mean.abs() < 0.05, "{mean}");
        assert!(values.iter().any(|value| value.abs() > 0.45));
    }

    #[test]
    fn asking_twice_gives_the_same_variable() {
        let (parameters, _) = draw(7);
        let vb = parameters.var_builder(DType::F32, &Device::Cpu);
        let again = vb.get(3, "bias").unwrap();
        parameters.list()[1].var.set(&Tensor::new(&[1f32, 2.0, 3.0], &Device::Cpu).unwrap()).unwrap();
        assert_eq!(again.to_vec1::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        assert!(vb.get(4, "bias").is_err());
    }

    #[test]
    fn loading_needs_every_parameter_in_its_shape() {
        let (parameters, _) = draw(1);
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
        let mut tensors = HashMap::from([("a.weight".to_owned(), zeros(&[20, 30]))]);
        assert!(parameters.load(&tensors).is_err());
        tensors.insert("bias".to_owned(), zeros(&[4]));
        assert!(parameters.load(&tensors).is_err());
        tensors.insert("bias".to_owned(), zeros(&[3]));
        parameters.load(&tensors).unwrap();
        assert_eq!(parameters.list()[1].var.to_vec1::<f32>().unwrap(), [0.0; 3]);
    }
}
