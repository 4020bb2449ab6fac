//! Ranks that each have a GPU, joined by NCCL: on one machine by NVLink or PCIe, on several by their network.
//!
//! Data on the host goes the ranks' usual way, as threads or as MPI processes: barriers, small numbers, the values
//! between stages of a pipeline, and the id by which NCCL finds its ranks. Tensors on the devices, which are gradients
//! and parameters, go through NCCL, on the stream that computes. The first of these calls connects the GPUs.
//!
//! Without a GPU the tests have a fake library (`workloads/tests/fake_nccl.c`), for tensors of the host.

mod communicator;
mod library;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use candle_core::{Device, DeviceLocation, Tensor};
use gnntop_probe::{Engine, RankKind};

use super::{Collective, CollectiveError, OnDevice, SyncError};
use communicator::{Communicator, GroupRank, Peers};
use gnntop_nn::cuda::{OnStream, let_use};
pub(super) use library::Functions;
use library::{SUCCESS, UniqueId, failed};

/// NCCL, loaded once in a process.
///
/// # Errors
/// It is not installed.
#[cfg_attr(not(feature = "nccl"), expect(dead_code, reason = "tests load a library of their own"))]
pub(crate) fn installed() -> Result<&'static Functions, CollectiveError> {
    static LIBRARY: OnceLock<Result<Functions, CollectiveError>> = OnceLock::new();
    LIBRARY.get_or_init(Functions::installed).as_ref().map_err(Clone::clone)
}

/// The ranks of this process, whose GPUs NCCL joins.
pub(crate) fn ranks(functions: &'static Functions, hosts: Vec<Arc<dyn Collective>>) -> Vec<Arc<dyn Collective>> {
    let peers = Arc::new(Peers::default());
    let with_gpu = |host: Arc<dyn Collective>| {
        let number = host.rank();
        Arc::new(NcclRank::new(functions, host, number, Arc::clone(&peers))) as Arc<dyn Collective>
    };
    hosts.into_iter().map(with_gpu).collect()
}

/// One rank of a group: a GPU beside a thread or process.
struct NcclRank {
    functions: &'static Functions,
    host: Arc<dyn Collective>,
    /// The rank's number in the run, for messages.
    number: usize,
    peers: Arc<Peers>,
    communicator: Mutex<Option<Arc<Communicator>>>,
}

impl NcclRank {
    fn new(functions: &'static Functions, host: Arc<dyn Collective>, number: usize, peers: Arc<Peers>) -> Self {
        Self { functions, host, number, peers, communicator: Mutex::default() }
    }

    /// The communicator of this device, which `OnStream` has made the thread's; created in the first call, which all
    /// ranks make.
    fn communicator_of(&self, device: &Device) -> Result<Arc<Communicator>, SyncError> {
        let mut communicator = self.communicator.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*communicator {
            if !known.device().same_device(device) {
                return Err(candle_core::Error::Msg("a rank's tensors are on two devices".to_owned()).into());
            }
            return Ok(Arc::clone(known));
        }
        self.let_each_other_use(device)?;
        let place = GroupRank { number: self.number, rank: self.host.rank(), ranks: self.host.ranks() };
        let made = Arc::new(Communicator::join(self.functions, self.exchange_id()?, place, device, &self.peers)?);
        *communicator = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Between GPUs of one process NCCL writes straight into the tensors of others.
    fn let_each_other_use(&self, device: &Device) -> Result<(), SyncError> {
        if self.shares_process() {
            let own = if let DeviceLocation::Cuda { gpu_id } = device.location() { gpu_id } else { 0 };
            let all: Vec<usize> = self.host.gather(own as f64)?.into_iter().map(|number| number as usize).collect();
            let_use(device, &all)?;
        }
        Ok(())
    }

    /// Whether the ranks are threads of this process.
    fn shares_process(&self) -> bool {
        self.host.kind() == RankKind::Thread
    }

    /// An id that rank 0 makes and sends to all others.
    fn exchange_id(&self) -> Result<UniqueId, CollectiveError> {
        let mut id = UniqueId([0; 128]);
        if self.host.rank() == 0 {
            // SAFETY: the id is written during the call.
            let status = unsafe { (self.functions.get_unique_id)(&raw mut id) };
            if status != SUCCESS {
                return Err(failed(format!("rank 0 in making an id: {}", self.functions.words(status))));
            }
        }
        // Bytes are numbers that f32 holds exactly.
        let mut bytes = id.0.map(f32::from);
        self.host.broadcast(0, &mut bytes)?;
        Ok(UniqueId(bytes.map(|byte| byte as u8)))
    }
}

impl OnDevice for NcclRank {
    fn mean(&self, values: &Tensor) -> Result<(), SyncError> {
        let on_stream = OnStream::new(values)?;
        Ok(self.communicator_of(values.device())?.mean(&on_stream)?)
    }

    fn broadcast(&self, root: usize, values: &Tensor) -> Result<(), SyncError> {
        let on_stream = OnStream::new(values)?;
        Ok(self.communicator_of(values.device())?.broadcast(root, &on_stream)?)
    }
}

impl Collective for NcclRank {
    fn rank(&self) -> usize {
        self.host.rank()
    }

    fn ranks(&self) -> usize {
        self.host.ranks()
    }

    fn engine(&self) -> Engine {
        Engine::Nccl
    }

    fn kind(&self) -> RankKind {
        self.host.kind()
    }

    fn barrier(&self) -> Result<(), CollectiveError> {
        self.host.barrier()
    }

    fn all_reduce(&self, values: &mut [f32]) -> Result<(), CollectiveError> {
        self.host.all_reduce(values)
    }

    fn broadcast(&self, root: usize, values: &mut [f32]) -> Result<(), CollectiveError> {
        self.host.broadcast(root, values)
    }

    fn gather(&self, value: f64) -> Result<Vec<f64>, CollectiveError> {
        self.host.gather(value)
    }

    fn send(&self, to: usize, values: &[f32]) -> Result<(), CollectiveError> {
        self.host.send(to, values)
    }

    fn receive(&self, from: usize, values: &mut Vec<f32>) -> Result<(), CollectiveError> {
        self.host.receive(from, values)
    }

    fn split(&self, color: usize) -> Result<Box<dyn Collective>, CollectiveError> {
        let host = Arc::from(self.host.split(color)?);
        Ok(Box::new(Self::new(self.functions, host, self.number, Arc::clone(&self.peers))))
    }

    fn leave(&self, reason: &str) {
        self.host.leave(reason);
        self.peers.end(CollectiveError::Gone { rank: self.number, reason: reason.to_owned() });
    }

    fn on_device(&self) -> Option<&dyn OnDevice> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
