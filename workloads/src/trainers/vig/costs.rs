//! What each block costs, measured.

use std::time::Instant;

use candle_core::{DType, Device, Tensor, Var};

use gnntop_nn::models::Parameters;
use gnntop_nn::models::vig::{CHANNELS, Form, Mode, Vig, VigConfig};

/// Images that a block is timed on.
const IMAGES: usize = 4;

/// How often a block is timed. The shortest time counts: disturbances only make it longer.
const REPEATS: usize = 3;

/// Seconds for the forward and backward pass of every block of a few images, the readout's with those of the last.
///
/// # Errors
/// `config` is impossible.
pub(super) fn measured(config: &VigConfig, form: Form, device: &Device) -> candle_core::Result<Vec<f64>> {
    let model = Vig::new(config, form, Parameters::new(0).var_builder(DType::F32, device))?;
    let nodes = IMAGES * config.grid.nodes();
    let values: Vec<f32> = (0..nodes * CHANNELS).map(|at| (at * 37 % 101) as f32 / 101.0).collect();
    let features = Var::from_vec(values, (nodes, CHANNELS), device)?;
    let block = |index: usize| seconds(|| model.block(index, &features, Mode::Train));
    let mut costs = (0..config.blocks).map(block).collect::<candle_core::Result<Vec<f64>>>()?;
    if let Some(last) = costs.last_mut() {
        *last += seconds(|| model.readout(&features))?;
    }
    Ok(costs)
}

/// The shortest time for computing this and its gradients, after a first pass that takes the memory.
fn seconds(compute: impl Fn() -> candle_core::Result<Tensor>) -> candle_core::Result<f64> {
    let mut shortest = f64::INFINITY;
    for repeat in 0..=REPEATS {
        let begin = Instant::now();
        let loss = compute()?.sum_all()?;
        loss.backward()?;
        // On a GPU, waits for it.
        loss.to_scalar::<f32>()?;
        if repeat > 0 {
            shortest = shortest.min(begin.elapsed().as_secs_f64());
        }
    }
    Ok(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_nn::models::vig::Grid;

    #[test]
    fn every_block_has_a_cost() {
        let grid = Grid { height: 6, width: 6 };
        let config = VigConfig { grid, blocks: 3, hidden: 8, ffn: 8, head: 8, classes: 3 };
        let costs = measured(&config, Form::Fused, &Device::Cpu).unwrap();
        assert!(costs.len() == 3 && costs.iter().all(|cost| *cost > 0.0 && cost.is_finite()), "{costs:?}");
    }
}
