//! Kernels and models, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod finite_differences;
mod gat_cora;
mod gat_gradients;
mod gat_reference;
mod gcn_reference;
mod gin_reference;
mod kernels_families;
mod kernels_gradients;
mod kernels_reference;
mod kernels_sparse_dropout;
mod multigraph;
mod node_models;
mod pna_gradients;
mod pna_reference;
mod reference;
mod sage_gradients;
mod sage_reference;
#[path = "../../data/tests/shared.rs"]
mod shared;
mod vig_forms;
mod vig_patches;
mod vig_reference;
