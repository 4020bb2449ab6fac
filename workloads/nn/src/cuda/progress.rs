//! What changes from step to step, in memory of the device: the seeds of dropout and Adam's bias corrections. A step
//! that reads them there can be submitted again unchanged, which is what a captured graph does.

use std::cell::Cell;

use bytemuck::NoUninit;
use candle_core::{DType, Device, Result, Tensor};

use super::kernel::{Address, Grid, Kernel, Module};
use super::machine::{View, launch};

thread_local! {
    /// The shift of the seeds of masks that this thread submits.
    static SHIFT: Cell<Address> = const { Cell::new(Address::NONE) };
}

/// The values that change with a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Advance {
    /// How much the seed of a mask differs from the seed of the same mask in the previous step.
    pub(crate) seeds: u64,
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) learning_rate: f64,
}

/// The position in a training run.
#[derive(Debug)]
pub(crate) struct Progress {
    advance: Advance,
    shift: Tensor,
    /// Each beta to the power of the steps done. A product for each step is off by less than the steps times 1e-16, which
    /// an f32 does not show before both are 0.
    powers: Tensor,
    rates: Tensor,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct AdvanceArguments {
    shift: Address,
    powers: Address,
    rates: Address,
    seeds: u64,
    beta1: f64,
    beta2: f64,
    learning_rate: f64,
}

impl Progress {
    /// Before the first step.
    ///
    /// # Errors
    /// The device has too little memory.
    pub(crate) fn new(advance: Advance, device: &Device) -> Result<Self> {
        Ok(Self {
            advance,
            shift: Tensor::new(&[0i64], device)?,
            powers: Tensor::new(&[1f64, 1.0], device)?,
            rates: Tensor::new(&[0f32, 1.0], device)?,
        })
    }

    /// Advances to the next step: from then on, Adam's constants are those of the current step, and the seeds those of
    /// the step after it.
    ///
    /// # Errors
    /// The device refuses.
    pub(crate) fn advance(&self) -> Result<()> {
        let Advance { seeds, beta1, beta2, learning_rate } = self.advance;
        let arguments = AdvanceArguments {
            shift: View::new(&self.shift)?.address(DType::I64, 1)?,
            powers: View::new(&self.powers)?.address(DType::F64, 2)?,
            rates: self.rates()?,
            seeds,
            beta1,
            beta2,
            learning_rate,
        };
        let kernel = Kernel { module: Module::Adam, name: "advance".to_owned() };
        // SAFETY: the three tensors were made with these lengths, and one thread writes them.
        unsafe { launch(self.shift.device(), &kernel, Grid { blocks: [1, 1], threads: [1, 1] }, &arguments) }
    }

    /// Adam's step size and root of the second correction.
    pub(super) fn rates(&self) -> Result<Address> {
        View::new(&self.rates)?.address(DType::F32, 2)
    }

    /// Does `work`. The masks that it submits are those of its first step, shifted to the current step when they are
    /// used; `self` must outlive that use.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn during<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let before = Before(SHIFT.replace(View::new(&self.shift)?.address(DType::I64, 1)?));
        let done = work();
        drop(before);
        done
    }
}

/// Restores the previous value, even during a panic.
struct Before(Address);

impl Drop for Before {
    fn drop(&mut self) {
        SHIFT.set(self.0);
    }
}

/// Address of the shift for a mask submitted now.
pub(super) fn seed_shift() -> Address {
    SHIFT.get()
}

#[cfg(test)]
mod tests {
    use super::super::elements::dropout;
    use super::super::emulation::is_possible;
    use super::*;
    use gnntop_data::graph::DropMask;

    const ADVANCE: Advance = Advance { seeds: 31, beta1: 0.9, beta2: 0.999, learning_rate: 0.01 };

    #[test]
    fn the_masks_of_a_step_are_those_of_its_own_seed() {
        if !is_possible() {
            return;
        }
        let x = Tensor::ones(300, DType::F32, &Device::Cpu).unwrap();
        let dropped = |seed: u64| {
            let mask = DropMask::new(0.4, seed).unwrap();
            dropout(&Device::Cpu, View::new(&x).unwrap(), mask).unwrap().into_tensor(300).to_vec1::<f32>().unwrap()
        };
        let progress = Progress::new(ADVANCE, &Device::Cpu).unwrap();
        for step in 0..4 {
            let found = progress.during(|| Ok(dropped(u64::MAX - 5))).unwrap();
            assert_eq!(found, dropped((u64::MAX - 5).wrapping_add(31 * step)), "step {step}");
            progress.advance().unwrap();
        }
        assert_eq!(seed_shift(), Address::NONE, "masks outside are not shifted");
    }

    #[test]
    fn the_rates_are_those_of_the_step_being_done() {
        if !is_possible() {
            return;
        }
        let progress = Progress::new(ADVANCE, &Device::Cpu).unwrap();
        for step in 1..=2000 {
            progress.advance().unwrap();
            let rates = progress.rates.to_vec1::<f32>().unwrap();
            let expected = [0.01 / (1.0 - 0.9f64.powi(step)), (1.0 - 0.999f64.powi(step)).sqrt()];
            let is_near = |(found, expected): (&f32, &f64)| (f64::from(*found) / expected - 1.0).abs() < 1e-6;
            assert!(rates.iter().zip(&expected).all(is_near), "step {step}: {rates:?} {expected:?}");
        }
    }
}
