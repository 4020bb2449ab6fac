//! The options of training on several ranks: how many, what carries data between them, and how to detect an MPI launcher.

use clap::{Args, ValueEnum};

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

/// What carries data between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Ranks are threads of this process.
    Threads,
    /// Ranks are processes that MPI starts, on this machine or several.
    Mpi,
    /// Each rank has its own GPU, and NCCL joins these; the ranks are threads of this process, or processes if MPI
    /// started them.
    Nccl,
}

/// Whether an MPI launcher started this process: mpirun of Open MPI, MPICH or Intel, or Slurm's srun with one of its
/// MPI plugins.
#[must_use]
pub fn launched_by_mpi() -> bool {
    const ALL: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID"];
    ALL.iter().any(|name| std::env::var_os(name).is_some())
}

/// Whether the launcher reports that it started one process; `variable` reads the environment.
pub(super) fn is_launched_alone(variable: impl Fn(&str) -> Option<String>) -> bool {
    const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "MPI_LOCALNRANKS"];
    SIZES.into_iter().find_map(variable).is_some_and(|size| size.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_of_one_process_is_told_from_one_of_several() {
        let says = |said: &'static [(&str, &str)]| {
            move |name: &str| said.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        assert!(is_launched_alone(says(&[("OMPI_COMM_WORLD_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "4")])));
        assert!(is_launched_alone(says(&[("SLURM_STEP_NUM_TASKS", "1")])));
        assert!(!is_launched_alone(says(&[("PMI_SIZE", "8")])) && !is_launched_alone(says(&[])));
    }
}
