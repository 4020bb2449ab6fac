//! Joins the ranks that live in this process, by the requested engine.

use std::sync::Arc;

use super::hosts::available_cores;
use super::ranks::is_launched_alone;
use super::{DeviceChoice, Engine, RankOptions, launched_by_mpi};
#[cfg(feature = "mpi")]
use crate::parallel::mpi;
#[cfg(feature = "nccl")]
use crate::parallel::nccl;
use crate::parallel::{Collective, CollectiveError, thread_ranks};
use crate::train::TrainError;
use gnntop_nn::device::DeviceError;

/// Whether this program was built with MPI.
const HAS_MPI: bool = cfg!(feature = "mpi");

impl RankOptions {
    /// The engine: as requested, else MPI if an MPI launcher started this process.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine.unwrap_or(if launched_by_mpi() { Engine::Mpi } else { Engine::Threads })
    }

    /// Whether the training needs no ranks: it is a single one, on all threads.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.ranks == 1 && self.threads_per_rank.is_none() && self.engine() == Engine::Threads
    }

    /// Whether the ranks are MPI processes, whatever carries their tensors.
    pub(super) fn are_processes(&self) -> bool {
        match self.engine() {
            Engine::Threads => false,
            Engine::Mpi => true,
            // A launcher that was asked for one process, as in a job of one task, does not launch ranks.
            Engine::Nccl => {
                launched_by_mpi() && (self.ranks == 1 || !is_launched_alone(|name| std::env::var(name).ok()))
            }
        }
    }

    /// The ranks that live in this process, to train on `device`.
    ///
    /// # Errors
    /// The engine is missing, does not join such devices, or started a different number of ranks than the options say.
    pub(super) fn join(&self, device: DeviceChoice) -> Result<Vec<Arc<dyn Collective>>, TrainError> {
        if self.engine() == Engine::Nccl {
            if !device.is_cuda() {
                const WORDS: &str = "--engine nccl needs GPUs; add --device cuda, or remove --engine";
                return Err(DeviceError::Unsupported(WORDS).into());
            }
            return self.join_nccl();
        }
        Ok(self.join_hosts()?)
    }

    /// The ranks as threads, which share the host's memory, or as processes, which share nothing.
    fn join_hosts(&self) -> Result<Vec<Arc<dyn Collective>>, CollectiveError> {
        if self.are_processes() {
            return self.join_mpi();
        }
        let cores = available_cores();
        let has_cores = self.ranks * self.threads_per_rank.unwrap_or(1) <= cores;
        let ranks = thread_ranks(self.ranks, has_cores);
        Ok(ranks.into_iter().map(|rank| Arc::new(rank) as Arc<dyn Collective>).collect())
    }

    #[cfg(feature = "nccl")]
    fn join_nccl(&self) -> Result<Vec<Arc<dyn Collective>>, TrainError> {
        // Without a driver, asking for more is useless.
        DeviceChoice::gpus()?;
        let library = nccl::installed()?;
        Ok(nccl::ranks(library, self.join_hosts()?))
    }

    #[cfg(not(feature = "nccl"))]
    fn join_nccl(&self) -> Result<Vec<Arc<dyn Collective>>, TrainError> {
        Err(built_without("NCCL", "nccl").into())
    }

    /// How many processes an MPI launcher must start; `None` if it already has, or none are needed.
    pub(crate) fn processes_to_launch(&self) -> Result<Option<usize>, CollectiveError> {
        if self.engine() != Engine::Mpi || launched_by_mpi() {
            return Ok(None);
        }
        if HAS_MPI { Ok(Some(self.ranks)) } else { Err(built_without("MPI", "mpi")) }
    }

    #[cfg(feature = "mpi")]
    fn join_mpi(&self) -> Result<Vec<Arc<dyn Collective>>, CollectiveError> {
        let rank = mpi::join()?;
        let started = rank.ranks();
        if self.ranks != 1 && self.ranks != started {
            let message = format!("{started} processes were started, but --ranks asks for {}", self.ranks);
            return Err(CollectiveError::Engine { engine: "MPI", message });
        }
        Ok(vec![Arc::new(rank)])
    }

    #[cfg(not(feature = "mpi"))]
    fn join_mpi(&self) -> Result<Vec<Arc<dyn Collective>>, CollectiveError> {
        Err(built_without("MPI", "mpi"))
    }
}

fn built_without(engine: &'static str, feature: &str) -> CollectiveError {
    let message =
        format!("this program was built without it; see docs/cluster.md for a build with the feature `{feature}`");
    CollectiveError::Engine { engine, message }
}
