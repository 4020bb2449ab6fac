//! The compiled mode on a GPU: every step is the same work on the same memory, so that it can be captured once, after a
//! few steps kernel by kernel, and is then submitted by one launch. Losses are the same either way.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor};
use gnntop_probe::{Name, phase, span};

use super::Trainer;
use gnntop_nn::cuda::{Captured, capture, gather_rows, rehearse};
use gnntop_nn::learn::{LabelledRows, RepeatedAdam, cross_entropy};
use gnntop_nn::models::gcn::{Computation, Gcn, NodeFeatures, Normalised, SEEDS_OF_STEP};

/// The step that is captured: nothing is computed in that time.
static CAPTURE: Name = Name::phase("capture");
/// A whole step in one launch. Its parts cannot be distinguished, neither on the host nor on the device.
static REPLAY: Name = Name::phase("replay");

/// Steps before the capture: they load libraries and kernels and copy what is copied once.
const REHEARSALS: u32 = 3;

/// The memory that every step works on.
#[derive(Clone)]
pub(super) struct Inputs {
    pub(super) x: NodeFeatures,
    pub(super) graph: Normalised,
    pub(super) labelled: LabelledRows,
    /// Nodes to score, `[seeds]`.
    pub(super) seeds: Tensor,
}

/// A run whose steps are all the same.
pub(super) struct Repeated {
    /// Dropped before the memory it reads and writes.
    how: Handover,
    work: Work,
}

enum Handover {
    /// Kernel by kernel, for this many more steps.
    Rehearsing(u32),
    /// By one launch.
    Captured(Captured),
    /// Kernel by kernel to the end, for this reason.
    Refused(String),
}

/// A step, and the memory for its results.
struct Work {
    device: Device,
    inputs: Inputs,
    model: Gcn,
    pass: Computation,
    adam: RepeatedAdam,
    loss: Tensor,
    scores: Tensor,
}

/// The results of a step.
pub(super) struct Found {
    pub(super) loss: f64,
    /// Scores of the seeds, `[seeds, classes]`.
    pub(super) scores: Tensor,
}

impl Repeated {
    /// The steps of a new trainer.
    ///
    /// # Errors
    /// The device has too little memory.
    pub(super) fn new(trainer: &Trainer, inputs: Inputs, classes: usize) -> Result<Self> {
        let device = inputs.seeds.device().clone();
        let work = Work {
            model: trainer.learner().model().clone(),
            pass: trainer.pass_of(0),
            adam: trainer.repeated_adam(SEEDS_OF_STEP)?,
            loss: Tensor::zeros(1, DType::F32, &device)?,
            scores: Tensor::zeros((inputs.seeds.elem_count(), classes), DType::F32, &device)?,
            device,
            inputs,
        };
        Ok(Self { how: Handover::Rehearsing(REHEARSALS), work })
    }

    /// One step, whose phases are forward, backward and optimizer, or one for all of it. Waits for the device.
    ///
    /// # Errors
    /// The data do not fit the network, or the device refuses.
    pub(super) fn step(&mut self) -> Result<Found> {
        if matches!(self.how, Handover::Rehearsing(0)) {
            let _capture = span(&CAPTURE);
            self.how = match capture(&self.work.device, || self.work.all()) {
                Ok(captured) => Handover::Captured(captured),
                Err(reason) => Handover::Refused(one_line(&reason)),
            };
        }
        if let Handover::Captured(captured) = &self.how {
            let replay = span(&REPLAY);
            match captured.launch() {
                Ok(()) => drop(replay),
                Err(reason) => self.how = Handover::Refused(one_line(&reason)),
            }
        }
        match &mut self.how {
            Handover::Captured(_) => {}
            Handover::Refused(_) => self.work.in_phases()?,
            Handover::Rehearsing(left) => {
                *left -= 1;
                rehearse(&self.work.device, || self.work.in_phases())?;
            }
        }
        let loss = self.work.loss.to_vec1::<f32>()?.into_iter().map(f64::from).sum();
        Ok(Found { loss, scores: self.work.scores.clone() })
    }

    /// How steps are submitted from now on, once known.
    pub(super) fn handover(&self) -> Option<String> {
        match &self.how {
            Handover::Rehearsing(_) => None,
            Handover::Captured(_) => {
                Some(format!("each step is one CUDA graph launch, after {REHEARSALS} steps kernel by kernel"))
            }
            Handover::Refused(reason) => {
                Some(format!("not captured in a CUDA graph, so steps stay kernel by kernel: {reason}"))
            }
        }
    }
}

fn one_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

impl Work {
    fn forward(&self) -> Result<Tensor> {
        let Inputs { x, graph, labelled, seeds } = &self.inputs;
        let logits = self.adam.during(|| self.model.forward(x, graph, self.pass))?;
        self.scores.slice_set(&gather_rows(&logits.detach(), seeds)?, 0, 0)?;
        let loss = cross_entropy(&logits, labelled)?;
        self.loss.slice_set(&loss.detach().reshape(1)?, 0, 0)?;
        Ok(loss)
    }

    fn backward(&self, loss: &Tensor) -> Result<GradStore> {
        self.adam.during(|| loss.backward())
    }

    /// Without phases: the device is neither queried nor timed during the capture.
    fn all(&self) -> Result<()> {
        let loss = self.forward()?;
        self.adam.step(&self.backward(&loss)?)
    }

    fn in_phases(&self) -> Result<()> {
        let loss = {
            let _forward = span(&phase::FORWARD);
            self.forward()?
        };
        let gradients = {
            let _backward = span(&phase::BACKWARD);
            self.backward(&loss)?
        };
        let _optimizer = span(&phase::OPTIMIZER);
        self.adam.step(&gradients)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::trainers::gcn::{Mode, Recipe};
    use gnntop_data::graph::Adjacency;
    use gnntop_data::graph::SparseMatrix;
    use gnntop_nn::cuda::emulation::is_possible;
    use gnntop_nn::kernels::KernelFamily;
    use gnntop_nn::models::gcn::{GcnConfig, LoopedGraph};

    const NODES: usize = 40;
    const STEPS: u64 = 9;

    /// A run on a small graph with bags of words.
    fn training(device: &Device, dropout: f64) -> (Trainer, Inputs) {
        let row_start = (0..=NODES as u32).map(|node| 3 * node).collect();
        let sources = (0..3 * NODES as u32).map(|edge| edge * 7 % NODES as u32).collect();
        let adjacency = Adjacency::new(row_start, sources).unwrap();
        let words = |index: usize| if (index * 11).is_multiple_of(5) { 1.0 } else { 0.0f32 };
        let dense = Tensor::from_vec((0..NODES * 12).map(words).collect(), (NODES, 12), &Device::Cpu).unwrap();
        let seeds: Vec<u32> = (0..20).map(|seed| seed * 2).collect();
        let labels: Vec<u32> = seeds.iter().map(|seed| seed / 2 % 3).collect();
        let inputs = Inputs {
            x: NodeFeatures::Sparse(Arc::new(SparseMatrix::from_dense(&dense).unwrap())),
            graph: LoopedGraph::new(&adjacency).unwrap().normalised(None, DType::F32, device).unwrap(),
            labelled: LabelledRows::new(seeds.iter().copied(), &labels).unwrap(),
            seeds: Tensor::new(seeds, device).unwrap(),
        };
        let model = GcnConfig { in_features: 12, hidden: 8, classes: 3, layers: 2, dropout };
        let recipe = Recipe { model, learning_rate: 0.02, weight_decay: 5e-3, decays_first_layer_only: true };
        (Trainer::new(device, &recipe, Mode::Compiled, KernelFamily::Spmm, 5).unwrap(), inputs)
    }

    /// Losses and the last scores of steps that are done one by one on the host.
    fn expected(dropout: f64) -> (Vec<f64>, Vec<f32>) {
        let (mut trainer, Inputs { x, graph, labelled, seeds }) = training(&Device::Cpu, dropout);
        let mut scores = Vec::new();
        let losses = (0..STEPS).map(|_| {
            let keep = |logits: &Tensor| {
                scores = logits.index_select(&seeds, 0)?.flatten_all()?.to_vec1::<f32>()?;
                Ok(())
            };
            trainer.step(&x, &labelled, || Ok(graph.clone()), keep).unwrap()
        });
        let losses = losses.collect();
        (losses, scores)
    }

    /// The same as repeated work, and how it was submitted.
    fn repeated(device: &Device, dropout: f64) -> (Vec<f64>, Vec<f32>, String) {
        let (trainer, inputs) = training(device, dropout);
        let mut repeated = Repeated::new(&trainer, inputs, 3).unwrap();
        let mut scores = Vec::new();
        let losses = (0..STEPS).map(|_| {
            let found = repeated.step().unwrap();
            scores = found.scores.flatten_all().unwrap().to_vec1().unwrap();
            found.loss
        });
        let losses = losses.collect();
        (losses, scores, repeated.handover().unwrap())
    }

    fn assert_same((losses, scores): (Vec<f64>, Vec<f32>), expected: &(Vec<f64>, Vec<f32>)) {
        assert!(losses.iter().zip(&expected.0).all(|(a, b)| (a - b).abs() < 1e-5), "{losses:?} {:?}", expected.0);
        assert!(scores.iter().zip(&expected.1).all(|(a, b)| (a - b).abs() < 1e-4), "{scores:?} {:?}", expected.1);
        assert_eq!((losses.len(), scores.len()), (expected.0.len(), expected.1.len()));
    }

    #[test]
    fn what_cannot_be_captured_goes_on_with_the_same_numbers_and_says_so() {
        if !is_possible() {
            return;
        }
        // Without dropout, because the host's own kernels do not shift seeds.
        let (losses, scores, told) = repeated(&Device::Cpu, 0.0);
        assert_same((losses, scores), &expected(0.0));
        assert!(told.starts_with("not captured in a CUDA graph") && !told.contains('\n'), "{told}");
    }

    /// With a fake driver, in builds that can load a driver.
    #[cfg(feature = "cuda")]
    mod by_a_driver {
        use super::*;
        use gnntop_nn::cuda::{fake, open};

        #[test]
        fn a_captured_step_computes_what_the_host_does() {
            fake::run_alone("trainers::gcn::repeated::tests::by_a_driver::captured_on_a_driver_that_is_none", &[]);
        }

        #[test]
        fn a_driver_that_captures_nothing_goes_on_kernel_by_kernel() {
            let name = "trainers::gcn::repeated::tests::by_a_driver::refused_by_a_driver_that_is_none";
            fake::run_alone(name, &[("GNNTOP_NO_GRAPHS", "1")]);
        }

        #[test]
        #[ignore = "run by a test above, in its own process"]
        fn captured_on_a_driver_that_is_none() {
            let device = open(0).unwrap();
            for dropout in [0.0, 0.5] {
                let (losses, scores, told) = repeated(&device, dropout);
                assert!(told.starts_with("each step is one CUDA graph launch"), "{told}");
                assert_same((losses, scores), &expected(dropout));
            }
        }

        #[test]
        #[ignore = "run by a test above, in its own process"]
        fn refused_by_a_driver_that_is_none() {
            let device = open(0).unwrap();
            let (losses, scores, told) = repeated(&device, 0.5);
            assert!(told.starts_with("not captured in a CUDA graph"), "{told}");
            assert_same((losses, scores), &expected(0.5));
        }
    }
}
