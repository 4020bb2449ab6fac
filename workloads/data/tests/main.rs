//! Graphs, data sets and batches, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod data_generators;
mod data_images;
mod data_readers;
mod rdkit_truth;
mod sampling_loader;
mod sampling_neighbours;
mod shared;
