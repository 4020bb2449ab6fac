//! What the command lines name and the crates below know under their own types: those know no command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::parallel::pipeline::Schedule;
use gnntop_data::sampling::SampleForm;
use gnntop_nn::kernels::{KernelFamily, MatmulPrecision};

/// A value by the name that a command line has for it, with a line of help.
pub(super) type Choice<T> = (&'static str, &'static str, T);

/// How a layer computes its aggregation.
pub(super) const KERNELS: [Choice<KernelFamily>; 2] = [
    (
        "scatter",
        "Gather the rows of the sources to the edges, compute there, scatter to the targets: messages of \
         `[edges, features]` are stored, as PyTorch Geometric does",
        KernelFamily::Scatter,
    ),
    ("spmm", "g-SpMM and g-SDDMM: nothing edge-wise is stored, as in DGL", KernelFamily::Spmm),
];

/// What products with weights multiply.
pub(super) const PRECISIONS: [Choice<MatmulPrecision>; 2] = [
    ("f32", "The numbers as they are", MatmulPrecision::F32),
    (
        "bf16",
        "The numbers rounded to bf16, in half the time, where the processor has AVX-512 BF16; sums, weights and all else stay \
         in f32",
        MatmulPrecision::Bf16,
    ),
];

/// What a sample is made of.
pub(super) const FORMS: [Choice<SampleForm>; 2] = [
    (
        "subgraph",
        "One graph of all nodes reached, on which every layer runs (PyG's `NeighborLoader`): a hop samples for the nodes \
         that the previous hop reached first",
        SampleForm::Subgraph,
    ),
    (
        "blocks",
        "One block per layer (DGL's `NeighborSampler`): a hop samples again for all nodes reached so far, and a layer \
         computes only what the layer after it reads",
        SampleForm::Blocks,
    ),
];

/// The orders of forward and backward passes.
pub(super) const SCHEDULES: [Choice<Schedule>; 2] = [
    (
        "gpipe",
        "All forward passes, then all backward passes (GPipe): every stage keeps all micro-batches",
        Schedule::Gpipe,
    ),
    (
        "1f1b",
        "Just enough forward passes ahead to keep the stages busy, then one forward pass per backward pass (PipeDream's \
         1F1B): stage `s` of `S` keeps at most `S - s` micro-batches. It takes as long as GPipe",
        Schedule::OneForwardOneBackward,
    ),
];

/// A parser of one of these names.
pub(super) fn one_of<T: Copy + Send + Sync>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T> {
    let names = choices.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    let find = |name: String| choices.iter().find(|choice| choice.0 == name).map(|choice| choice.2);
    PossibleValuesParser::new(names).try_map(move |name| find(name).ok_or("it is not among the names"))
}
