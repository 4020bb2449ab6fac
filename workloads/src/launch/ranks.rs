//! The options of training on several ranks.

use clap::{Args, ValueEnum};

use super::Engine;
use super::options::at_least_one;

/// How many ranks train together, and how they share the work.
#[derive(Clone, Debug, Args)]
pub struct RankOptions {
    /// Ranks that train together, each on its part of every batch; default: one.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub ranks: usize,
    /// What carries data between ranks: `threads` of this process, `mpi`, which starts them with mpirun, or `nccl`,
    /// with a GPU for each rank; default: threads, or MPI if an MPI launcher started this process.
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Threads that each rank computes with; default: the cores divided by the ranks of the host.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads_per_rank: Option<usize>,
    /// How ranks share the work: each trains on its part of the set (`split`), or on all of it (`none`), which is N
    /// times the work and what study 2 measured for DGL.
    #[arg(long, value_enum, default_value_t)]
    pub shard: Shard,
}

/// How ranks share the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Shard {
    /// Each rank trains on its part.
    #[default]
    Split,
    /// Every rank trains on everything.
    None,
}
