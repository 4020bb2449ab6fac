//! Energy and findings beside known truths, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod corpus;
mod energy;
#[cfg(target_os = "linux")]
mod energy_counters;
mod labelled;
mod on_gpu;
mod recorded;
mod texts;
mod unseen;
