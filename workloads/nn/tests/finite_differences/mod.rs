//! Gradients of whole layers and models against central differences, in double precision.

use candle_core::{Device, Tensor, Var};
use rand::RngExt;
use rand::rngs::StdRng;

/// How gradients are looked at.
pub struct Slopes {
    /// Random places of each variable, or all where it has fewer.
    pub places: usize,
    /// A variable is moved so far either way.
    pub step: f64,
    /// Allowed difference, relative to one more than the slope.
    pub tolerance: f64,
}

/// What most gradients are held to.
impl Default for Slopes {
    fn default() -> Self {
        Self { places: 30, step: 1e-6, tolerance: 1e-5 }
    }
}

impl Slopes {
    /// Compares the gradient of `objective`, one number, with central differences in every variable. A gradient that is
    /// left out stands for one of zeros.
    pub fn agree(&self, variables: &[Var], objective: impl Fn() -> Tensor, rng: &mut StdRng) {
        let gradients = objective().backward().unwrap();
        let value = || objective().to_scalar::<f64>().unwrap();
        for (number, variable) in variables.iter().enumerate() {
            let gradient = gradients.get(variable).map_or_else(|| vec![0.0; variable.elem_count()], numbers);
            let start = numbers(variable);
            for _ in 0..self.places.min(start.len()) {
                let place = rng.random_range(0..start.len());
                let at = |step: f64| {
                    let mut moved = start.clone();
                    moved[place] += step;
                    set(variable, &moved);
                    value()
                };
                let slope = (at(self.step) - at(-self.step)) / (2.0 * self.step);
                set(variable, &start);
                let (exact, shape) = (gradient[place], variable.dims());
                let allowed = self.tolerance * (1.0 + slope.abs());
                assert!(
                    (slope - exact).abs() < allowed,
                    "variable {number} {shape:?} at {place}: {exact}, not {slope}"
                );
            }
        }
    }
}

fn set(variable: &Var, values: &[f64]) {
    variable.set(&Tensor::from_slice(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}
