//! Features and gradients on their way between neighbouring stages, as the phases `receive` and `send`.

use candle_core::{DType, Device, Tensor, Var};
use gnntop_probe::{phase, span};

use crate::parallel::{Collective, SyncError};
use gnntop_nn::kernels::host_slice;

/// A stage's connection to its neighbours. Only rows of features or their gradients are sent: if a graph has the same
/// edges everywhere, every stage knows them.
#[derive(Debug)]
pub(super) struct Exchange {
    columns: usize,
    device: Device,
    /// Kept between receptions: it returns to the sender.
    received: Vec<f32>,
}

impl Exchange {
    pub(super) fn new(columns: usize, device: Device) -> Self {
        Self { columns, device, received: Vec::new() }
    }

    /// Waits for a matrix from another rank.
    pub(super) fn receive(&mut self, ranks: &dyn Collective, from: usize) -> Result<Var, SyncError> {
        let _receive = span(&phase::RECEIVE);
        ranks.receive(from, &mut self.received)?;
        let rows = self.received.len() / self.columns.max(1);
        Ok(Var::from_slice(&self.received, (rows, self.columns), &self.device)?)
    }

    /// Sends a matrix to another rank.
    pub(super) fn send(&self, ranks: &dyn Collective, to: usize, values: &Tensor) -> Result<(), SyncError> {
        let _send = span(&phase::SEND);
        let values = values.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.contiguous()?;
        let (storage, layout) = values.storage_and_layout();
        Ok(ranks.send(to, host_slice::<f32>(&storage, layout)?)?)
    }
}
