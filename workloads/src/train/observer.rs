//! Reports of a training run in progress. Nothing here prints: an [`Observer`] receives the events.

use std::time::Duration;

use gnntop_probe::{BatchShape, Warning};

/// Follows a training run. Every method has a default that does nothing.
pub trait Observer {
    /// Something worth a line.
    fn report_line(&mut self, _line: &str) {}

    /// How much data is read or generated so far, such as `12000 molecules`. Called often.
    fn loading(&mut self, _done: std::fmt::Arguments<'_>) {}

    /// A step is done.
    fn step(&mut self, _report: &StepReport) {}

    /// Asked before each step.
    fn should_stop(&mut self) -> bool {
        false
    }

    /// What to do if publishing proves impossible; called from another thread, at most once.
    fn warning(&mut self) -> Box<dyn FnMut(&Warning) + Send> {
        Box::new(|_| ())
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// A step as far as a progress line needs it.
#[derive(Clone, Copy, Debug)]
pub struct StepReport {
    /// Epoch, from 0.
    pub epoch: u64,
    /// Epochs in all.
    pub epochs: u64,
    /// Step in the epoch, from 0.
    pub index: u64,
    /// Steps in an epoch.
    pub batches: u64,
    /// Loss of this step.
    pub loss: f64,
    /// The contents of its batch.
    pub shape: BatchShape,
    /// From the request for the batch to the end of the optimizer.
    pub time: Duration,
}

/// How a training run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Steps done.
    pub steps: u64,
    /// Loss of the last one.
    pub loss: Option<f64>,
}
