//! What ranks do together, whatever carries their data.

use candle_core::Tensor;
use gnntop_probe::{Engine, RankKind};

use super::{CollectiveError, SyncError};

/// A rank's connection to the others of its group. Every rank makes the same calls in the same order;
/// [`send`](Self::send) and [`receive`](Self::receive) are between two of them.
pub trait Collective: Send + Sync {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Ranks in the group.
    fn ranks(&self) -> usize;

    /// What carries the data.
    fn engine(&self) -> Engine;

    /// What the ranks are.
    fn kind(&self) -> RankKind;

    /// Waits until every rank has made this call.
    ///
    /// # Errors
    /// A rank is gone, or makes another call.
    fn barrier(&self) -> Result<(), CollectiveError>;

    /// Replaces `values` by their sum over the ranks, which is the same on every rank to the last bit.
    ///
    /// # Errors
    /// A rank is gone, makes another call, or has another number of values.
    fn all_reduce(&self, values: &mut [f32]) -> Result<(), CollectiveError>;

    /// Replaces `values` by those of rank `root`.
    ///
    /// # Errors
    /// As [`all_reduce`](Self::all_reduce).
    fn broadcast(&self, root: usize, values: &mut [f32]) -> Result<(), CollectiveError>;

    /// The value of every rank, in the order of the ranks, on every rank.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier).
    fn gather(&self, value: f64) -> Result<Vec<f64>, CollectiveError>;

    /// Sends `values` to rank `to`. Does not wait until they are received.
    ///
    /// # Errors
    /// The rank is gone.
    fn send(&self, to: usize, values: &[f32]) -> Result<(), CollectiveError>;

    /// Waits for the oldest values that rank `from` sent and were not yet received, into `values`, whose length becomes
    /// theirs.
    ///
    /// # Errors
    /// The rank is gone.
    fn receive(&self, from: usize, values: &mut Vec<f32>) -> Result<(), CollectiveError>;

    /// The group of those ranks that give the same `color`, in their order. A call that all ranks make.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier).
    fn split(&self, color: usize) -> Result<Box<dyn Collective>, CollectiveError>;

    /// This rank will make no further call, for this reason, such as `has failed`: any rank that waits for another, in
    /// this group or in those split from it, now or later, gets an error that says so, if the engine can deliver it.
    fn leave(&self, reason: &str);

    /// The collective of an engine that joins devices directly: tensors of the ranks' devices, joined in place.
    fn on_device(&self) -> Option<&dyn OnDevice> {
        None
    }
}

/// What ranks do with contiguous f32 tensors in the memory of their own devices. The work is put on the device's stream, and
/// the host does not wait for it. As with [`Collective`], every rank makes the same calls in the same order.
pub trait OnDevice: Send + Sync {
    /// Replaces the values of a tensor by their mean over the ranks, in its own memory: every sharer of that memory
    /// sees the mean.
    ///
    /// # Errors
    /// A rank is gone, the engine fails, or the tensor is of another kind.
    fn mean(&self, values: &Tensor) -> Result<(), SyncError>;

    /// Replaces the values of a tensor by those of rank `root`, in its own memory.
    ///
    /// # Errors
    /// As [`mean`](Self::mean).
    fn broadcast(&self, root: usize, values: &Tensor) -> Result<(), SyncError>;
}
