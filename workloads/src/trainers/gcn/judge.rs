//! Judging a network on the whole graph, and the results of finished runs.

use candle_core::{DType, Device, Result, Tensor};
use gnntop_probe::{Name, counter, phase, span};

use gnntop_data::nodes::NodeDataset;
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::Accuracy;
use gnntop_nn::models::gcn::{Computation, Gcn, NodeFeatures, Normalised};

static VALIDATION: Name = Name::counter("acc valid");
static TEST: Name = Name::counter("acc test");

/// Some nodes and their classes.
struct SplitPart {
    rows: Tensor,
    labels: Vec<u32>,
}

impl SplitPart {
    fn new(dataset: &NodeDataset, nodes: &[u32], device: &Device) -> Result<Self> {
        let labels = nodes.iter().map(|&node| dataset.labels[node as usize]).collect();
        Ok(Self { rows: Tensor::from_slice(nodes, nodes.len(), device)?, labels })
    }

    fn accuracy(&self, logits: &Tensor) -> Result<Accuracy> {
        if self.labels.is_empty() {
            return Ok(Accuracy::default());
        }
        Accuracy::new(&logits.index_select(&self.rows, 0)?, &self.labels)
    }
}

/// The data for judging: all nodes with all their edges, whatever the network was trained on.
pub(super) struct Judge {
    x: NodeFeatures,
    graph: Normalised,
    family: KernelFamily,
    validation: SplitPart,
    test: SplitPart,
}

/// Shares of right answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judgement {
    pub(super) validation: f64,
    pub(super) test: f64,
}

impl Judge {
    pub(super) fn new(
        dataset: &NodeDataset,
        x: NodeFeatures,
        graph: &Normalised,
        family: KernelFamily,
    ) -> Result<Self> {
        let graph = graph.to_dtype(DType::F32)?;
        let part = |nodes: &[u32]| SplitPart::new(dataset, nodes, graph.weight.device());
        let (validation, test) = (part(&dataset.split.validation)?, part(&dataset.split.test)?);
        Ok(Self { x, graph, family, validation, test })
    }

    /// Judges and publishes.
    pub(super) fn judge(&self, model: &Gcn) -> Result<Judgement> {
        let _validation = span(&phase::VALIDATION);
        let logits = model.forward(&self.x, &self.graph, Computation::evaluation(self.family))?.detach();
        let judgement = Judgement {
            validation: self.validation.accuracy(&logits)?.share(),
            test: self.test.accuracy(&logits)?.share(),
        };
        counter(&VALIDATION, judgement.validation);
        counter(&TEST, judgement.test);
        Ok(judgement)
    }
}

/// The best epoch of one training by its validation accuracy; of equal ones the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Best {
    judged: Option<Judgement>,
}

impl Best {
    pub(super) fn update(&mut self, judgement: Judgement) {
        if self.judged.is_none_or(|best| judgement.validation > best.validation) {
            self.judged = Some(judgement);
        }
    }

    /// Test accuracy at that epoch, and a fresh start.
    pub(super) fn take(&mut self) -> Option<f64> {
        self.judged.take().map(|best| best.test)
    }
}

/// `81.5 ± 0.6 %` of shares, with the standard deviation over several.
pub(super) fn mean_and_deviation(shares: &[f64]) -> Option<String> {
    let count = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / count;
    let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    match shares.len() {
        0 => None,
        1 => Some(format!("{:.1} %", mean * 100.0)),
        _ => Some(format!("{:.1} ± {:.1} % (mean of {count})", mean * 100.0, (squares / (count - 1.0)).sqrt() * 100.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_best_epoch_decides() {
        let mut best = Best::default();
        assert_eq!(best.take(), None);
        for (validation, test) in [(0.5, 0.1), (0.7, 0.2), (0.7, 0.3), (0.6, 0.4)] {
            best.update(Judgement { validation, test });
        }
        assert_eq!((best.take(), best.take()), (Some(0.2), None));
    }

    #[test]
    fn several_runs_have_a_deviation() {
        assert_eq!(mean_and_deviation(&[0.81, 0.82, 0.83]).unwrap(), "82.0 ± 1.0 % (mean of 3)");
        assert_eq!(mean_and_deviation(&[0.815]).unwrap(), "81.5 %");
        assert_eq!(mean_and_deviation(&[]), None);
    }
}
