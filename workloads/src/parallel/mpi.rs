//! Ranks as processes that MPI starts and connects, on one machine or many.
//!
//! MPI's own error handler ends all processes if a call fails, and names the rank. A process that ends with an error
//! does not finalize MPI, so the launcher ends the others.

use std::sync::{Mutex, PoisonError};

use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use mpi::{Threading, initialize_with_threading};

use gnntop_probe::{Engine, RankKind};

use super::{Collective, CollectiveError};

/// Sent values wait here until they are received: a send must not wait.
const SEND_BUFFER_BYTES: usize = 256 << 20;

/// The connection, from [`join`] until [`part`].
static UNIVERSE: Mutex<Option<Universe>> = Mutex::new(None);

/// This process's membership in a group of processes.
pub struct MpiRank {
    group: SimpleCommunicator,
    /// Sums go here first: MPI reads and writes separate memory.
    sums: Mutex<Vec<f32>>,
}

// SAFETY: a communicator is a handle that MPI allows every thread to use, since it was started with `Threading::Multiple`;
// the crate leaves `Send` and `Sync` out because it cannot know that.
unsafe impl Send for MpiRank {}
// SAFETY: as above.
unsafe impl Sync for MpiRank {}

/// Connects this process with the others that the launcher started. Once in a process.
///
/// # Errors
/// MPI is already running, or does not support threads.
pub fn join() -> Result<MpiRank, CollectiveError> {
    let failed = |message: &str| CollectiveError::Engine { engine: "MPI", message: message.to_owned() };
    let (mut universe, threading) =
        initialize_with_threading(Threading::Multiple).ok_or_else(|| failed("it was started twice"))?;
    if threading < Threading::Multiple {
        return Err(failed("this installation does not support calls from several threads (MPI_THREAD_MULTIPLE)"));
    }
    universe.set_buffer_size(SEND_BUFFER_BYTES);
    let group = universe.world();
    *UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner) = Some(universe);
    Ok(MpiRank { group, sums: Mutex::default() })
}

/// Finalizes MPI after all ranks have ended normally. Waits for them.
pub fn part() {
    drop(UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner).take());
}

impl MpiRank {
    /// A rank as MPI counts, which is in 32 bits.
    fn number(rank: usize) -> i32 {
        i32::try_from(rank).unwrap_or(i32::MAX)
    }
}

impl Collective for MpiRank {
    fn rank(&self) -> usize {
        usize::try_from(self.group.rank()).unwrap_or_default()
    }

    fn ranks(&self) -> usize {
        usize::try_from(self.group.size()).unwrap_or_default()
    }

    fn engine(&self) -> Engine {
        Engine::Mpi
    }

    fn kind(&self) -> RankKind {
        RankKind::Process
    }

    fn barrier(&self) -> Result<(), CollectiveError> {
        self.group.barrier();
        Ok(())
    }

    fn all_reduce(&self, values: &mut [f32]) -> Result<(), CollectiveError> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.resize(values.len(), 0.0);
        self.group.all_reduce_into(&*values, &mut sums[..], SystemOperation::sum());
        values.copy_from_slice(&sums);
        Ok(())
    }

    fn broadcast(&self, root: usize, values: &mut [f32]) -> Result<(), CollectiveError> {
        self.group.process_at_rank(Self::number(root)).broadcast_into(values);
        Ok(())
    }

    fn gather(&self, value: f64) -> Result<Vec<f64>, CollectiveError> {
        let mut all = vec![0.0; self.ranks()];
        self.group.all_gather_into(&value, &mut all[..]);
        Ok(all)
    }

    fn send(&self, to: usize, values: &[f32]) -> Result<(), CollectiveError> {
        self.group.process_at_rank(Self::number(to)).buffered_send(values);
        Ok(())
    }

    fn receive(&self, from: usize, values: &mut Vec<f32>) -> Result<(), CollectiveError> {
        (*values, _) = self.group.process_at_rank(Self::number(from)).receive_vec();
        Ok(())
    }

    fn split(&self, color: usize) -> Result<Box<dyn Collective>, CollectiveError> {
        let part = self.group.split_by_color(Color::with_value(Self::number(color)));
        let none = || CollectiveError::Engine {
            engine: "MPI",
            message: "it could not form a group of these ranks".to_owned(),
        };
        Ok(Box::new(Self { group: part.ok_or_else(none)?, sums: Mutex::default() }))
    }

    /// The launcher ends the others once this process has ended.
    fn leave(&self, _reason: &str) {}
}
