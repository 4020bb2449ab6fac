//! What the command lines name and the crates below know under their own types: those know no command line.

use clap::ValueEnum;
use gnntop_data::sampling::SampleForm;

use crate::parallel::pipeline::Schedule;
use gnntop_nn::kernels::KernelFamily;

/// How a layer computes its aggregation.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Kernels {
    /// Gather the rows of the sources to the edges, compute there, scatter to the targets: messages of
    /// `[edges, features]` are stored, as PyTorch Geometric does.
    Scatter,
    /// g-SpMM and g-SDDMM: nothing edge-wise is stored, as in DGL.
    Spmm,
}

impl From<Kernels> for KernelFamily {
    fn from(kernels: Kernels) -> Self {
        match kernels {
            Kernels::Scatter => Self::Scatter,
            Kernels::Spmm => Self::Spmm,
        }
    }
}

/// What a sample is made of.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Form {
    /// One graph of all nodes reached, on which every layer runs (PyG's `NeighborLoader`): a hop samples for the nodes
    /// that the previous hop reached first.
    Subgraph,
    /// One block per layer (DGL's `NeighborSampler`): a hop samples again for all nodes reached so far, and a layer
    /// computes only what the layer after it reads.
    Blocks,
}

impl From<Form> for SampleForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Subgraph => Self::Subgraph,
            Form::Blocks => Self::Blocks,
        }
    }
}

/// An order of forward and backward passes.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum PassOrder {
    /// All forward passes, then all backward passes (GPipe): every stage keeps all micro-batches.
    #[default]
    Gpipe,
    /// Just enough forward passes ahead to keep the stages busy, then one forward pass per backward pass (PipeDream's
    /// 1F1B): stage `s` of `S` keeps at most `S - s` micro-batches. It takes as long as GPipe.
    #[value(name = "1f1b")]
    OneForwardOneBackward,
}

impl From<PassOrder> for Schedule {
    fn from(order: PassOrder) -> Self {
        match order {
            PassOrder::Gpipe => Self::Gpipe,
            PassOrder::OneForwardOneBackward => Self::OneForwardOneBackward,
        }
    }
}
