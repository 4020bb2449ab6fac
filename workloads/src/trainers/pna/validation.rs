//! Quality of predictions on molecules outside the training set.

use candle_core::{DType, Device, Result};

use crate::train::TrainError;
use gnntop_data::graph::{Batch, Graph};
use gnntop_nn::learn::TargetScale;
use gnntop_nn::models::pna::{DeviceBatch, Pna};

/// Validation molecules, as batches that stay.
pub(super) struct Validation {
    batches: Vec<DeviceBatch>,
    targets: Vec<f32>,
}

impl Validation {
    /// Keeps `graphs` for validation, computed `batch_graphs` at a time; `None` if there are none.
    ///
    /// # Errors
    /// A graph does not fit the others, or the device refuses.
    pub(super) fn new(
        graphs: &[Graph],
        batch_graphs: usize,
        device: &Device,
    ) -> std::result::Result<Option<Self>, TrainError> {
        if graphs.is_empty() {
            return Ok(None);
        }
        let mut batches = Vec::new();
        let mut batch = Batch::new();
        for part in graphs.chunks(batch_graphs) {
            batch.assemble(&part.iter().collect::<Vec<_>>())?;
            batches.push(DeviceBatch::new(&batch, DType::F32, device)?);
        }
        Ok(Some(Self { batches, targets: graphs.iter().map(|graph| graph.y).collect() }))
    }

    /// Mean absolute error of the model's predictions, in the unit of the targets.
    pub(super) fn mean_absolute_error(&self, model: &Pna, scale: TargetScale) -> Result<f64> {
        let mut errors = 0.0;
        for batch in &self.batches {
            let loss = scale.loss(&model.forward(batch)?, batch.targets())?.detach().to_scalar::<f32>()?;
            errors += f64::from(loss) * batch.targets().elem_count() as f64;
        }
        Ok(errors * scale.deviation / self.targets.len() as f64)
    }

    /// The error of always predicting the training set's mean: a model that learnt anything must beat it.
    pub(super) fn error_of_the_mean(&self, scale: TargetScale) -> f64 {
        let error = |&target: &f32| (f64::from(target) - scale.mean).abs();
        self.targets.iter().map(error).sum::<f64>() / self.targets.len() as f64
    }
}
