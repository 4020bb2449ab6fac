//! Trainings, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod trainings;
mod vig_pipeline;
