//! Ranks as threads of one process: nothing to install, and values move through shared memory.
//!
//! In an all-reduce each rank shows the others where its values are. When all have arrived, rank `r` adds up the `r`-th
//! part of all ranks' values and writes the sums to all; when all are done the values belong to their owners again.
//! Nothing else is copied, and every value is summed by one rank in the order of the ranks, so that all have the same
//! bits.

mod mailbox;
mod meeting;

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gnntop_probe::{Engine, RankKind};

use super::{Collective, CollectiveError};
use mailbox::Mailbox;
use meeting::Meeting;

/// Values that are summed at a time: three such blocks fit into the first-level cache.
const BLOCK: usize = 2048;

/// One thread's membership in a group of threads.
#[derive(Debug)]
pub struct ThreadRank {
    rank: usize,
    group: Arc<ThreadGroup>,
}

/// The threads' shared state.
#[derive(Debug)]
struct ThreadGroup {
    meeting: Meeting,
    /// Why the first rank failed.
    failure: OnceLock<CollectiveError>,
    has_cores: bool,
    /// Each rank's current call, and its values.
    calls: Vec<Call>,
    /// From rank `i` to rank `j` at `i * ranks + j`.
    mailboxes: Vec<Mailbox>,
    /// Groups that were made of this one, by color; the oldest go when a color is used again.
    parts: Mutex<Vec<(usize, Arc<ThreadGroup>)>>,
}

/// A rank's call, readable by all between two meetings.
#[derive(Debug, Default)]
struct Call {
    kind: AtomicU64,
    values: AtomicPtr<f32>,
    count: AtomicU64,
}

/// A rank's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    Barrier,
    AllReduce,
    Broadcast,
    Gather,
    Split,
}

impl Kind {
    const NAMES: [&str; 5] = ["barrier", "all-reduce", "broadcast", "gather", "split"];
}

/// A group of `ranks` threads, one member for each.
///
/// `has_cores` says that each has its own core; otherwise waiting threads sleep at once and leave the core to others.
#[must_use]
pub fn thread_ranks(ranks: usize, has_cores: bool) -> Vec<ThreadRank> {
    let group = Arc::new(ThreadGroup::new(ranks, has_cores));
    (0..ranks).map(|rank| ThreadRank { rank, group: Arc::clone(&group) }).collect()
}

impl ThreadGroup {
    fn new(ranks: usize, has_cores: bool) -> Self {
        Self {
            meeting: Meeting::new(ranks, has_cores),
            failure: OnceLock::new(),
            has_cores,
            calls: (0..ranks).map(|_| Call::default()).collect(),
            mailboxes: (0..ranks * ranks).map(|_| Mailbox::default()).collect(),
            parts: Mutex::default(),
        }
    }

    fn ranks(&self) -> usize {
        self.calls.len()
    }

    /// No rank needs to wait for another any more, here and in the split groups. The first failure counts: others
    /// follow from it.
    fn break_off(&self, error: &CollectiveError) {
        let error = self.failure.get_or_init(|| error.clone());
        self.meeting.break_off(error.clone());
        self.mailboxes.iter().for_each(|mailbox| mailbox.break_off(error.clone()));
        let parts = lock(&self.parts).clone();
        parts.iter().for_each(|(_, part)| part.break_off(error));
    }

    /// A rank is gone: calls that need it fail, but the others may continue among themselves.
    fn miss(&self, rank: usize, error: &CollectiveError) {
        self.meeting.break_off(error.clone());
        for other in 0..self.ranks() {
            self.mailboxes[rank * self.ranks() + other].break_off(error.clone());
            self.mailboxes[other * self.ranks() + rank].break_off(error.clone());
        }
    }

    /// Whether all ranks make the same call with equally many values. Between two meetings.
    fn agree(&self) -> Result<(), CollectiveError> {
        let said = |call: &Call| (call.kind.load(Ordering::Relaxed), call.count.load(Ordering::Relaxed));
        let words = |(kind, count): (u64, u64)| {
            let name = Kind::NAMES.get(kind as usize).copied().unwrap_or_default();
            if count == 0 { name.to_owned() } else { format!("{name} of {count} values") }
        };
        let first = said(&self.calls[0]);
        match self.calls.iter().position(|call| said(call) != first) {
            None => Ok(()),
            Some(other) => Err(CollectiveError::OutOfStep {
                rank: 0,
                call: words(first),
                other,
                other_call: words(said(&self.calls[other])),
            }),
        }
    }
}

impl ThreadRank {
    fn gone(&self, reason: &str) -> CollectiveError {
        CollectiveError::Gone { rank: self.rank, reason: reason.to_owned() }
    }

    /// Shows the others `values`, and when all have arrived runs `work`, which may read and write what its caller can
    /// prove that no other thread uses. Returns when all are done.
    fn collective_call(
        &self,
        kind: Kind,
        values: &mut [f32],
        work: impl FnOnce(&ThreadGroup),
    ) -> Result<(), CollectiveError> {
        let (group, call) = (&*self.group, &self.group.calls[self.rank]);
        call.kind.store(kind as u64, Ordering::Relaxed);
        call.count.store(values.len() as u64, Ordering::Relaxed);
        call.values.store(values.as_mut_ptr(), Ordering::Relaxed);
        // The meeting's lock orders what was stored before it and what is loaded after it.
        group.meeting.wait()?;
        let agreed = group.agree();
        if agreed.is_ok() {
            work(group);
        }
        // Every rank that entered gets here without waiting for another: no values are touched after this returns.
        group.meeting.wait_for_all();
        agreed
    }

    /// The values of a rank of the same call.
    fn values_of(group: &ThreadGroup, rank: usize) -> *mut f32 {
        group.calls[rank].values.load(Ordering::Relaxed)
    }

    /// The part of `count` values that this rank sums, at whole cache lines.
    fn part(&self, count: usize) -> Range<usize> {
        const LINE: usize = 16;
        let lines = count.div_ceil(LINE);
        let at = |part: usize| (lines * part / self.group.ranks() * LINE).min(count);
        at(self.rank)..at(self.rank + 1)
    }
}

impl Drop for ThreadRank {
    fn drop(&mut self) {
        self.group.miss(self.rank, &self.gone("has ended"));
    }
}

impl Collective for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.group.ranks()
    }

    fn engine(&self) -> Engine {
        Engine::Threads
    }

    fn kind(&self) -> RankKind {
        RankKind::Thread
    }

    fn barrier(&self) -> Result<(), CollectiveError> {
        self.collective_call(Kind::Barrier, &mut [], |_| ())
    }

    fn all_reduce(&self, values: &mut [f32]) -> Result<(), CollectiveError> {
        let part = self.part(values.len());
        self.collective_call(Kind::AllReduce, values, |group| {
            let all: Vec<*mut f32> = (0..group.ranks()).map(|rank| Self::values_of(group, rank)).collect();
            for start in part.clone().step_by(BLOCK) {
                // SAFETY: every rank is between the two meetings of this call, so that all pointers are to slices of
                // `values.len()` values that their owners do not touch; this range lies in this rank's part, which no
                // other rank reads or writes.
                unsafe { sum_block(&all, start..part.end.min(start + BLOCK)) };
            }
        })
    }

    fn broadcast(&self, root: usize, values: &mut [f32]) -> Result<(), CollectiveError> {
        let (own, count) = (values.as_mut_ptr(), values.len());
        self.collective_call(Kind::Broadcast, values, |group| {
            if self.rank != root {
                // SAFETY: as in `all_reduce` the root's slice has `count` values and is only read until the second
                // meeting; `own` is this rank's own slice, a different one.
                unsafe { std::ptr::copy_nonoverlapping(Self::values_of(group, root), own, count) };
            }
        })
    }

    fn gather(&self, value: f64) -> Result<Vec<f64>, CollectiveError> {
        // Two f32 carry the bits of an f64: they are only copied.
        let bits = value.to_bits();
        let mut halves = [f32::from_bits((bits >> 32) as u32), f32::from_bits(bits as u32)];
        let mut gathered = Vec::with_capacity(self.ranks());
        self.collective_call(Kind::Gather, &mut halves, |group| {
            for rank in 0..group.ranks() {
                let halves = Self::values_of(group, rank);
                // SAFETY: as in `all_reduce`; each rank shows two values, which all only read.
                let (high, low) = unsafe { (halves.read(), halves.add(1).read()) };
                let bits = u64::from(high.to_bits()) << 32 | u64::from(low.to_bits());
                gathered.push(f64::from_bits(bits));
            }
        })?;
        Ok(gathered)
    }

    fn send(&self, to: usize, values: &[f32]) -> Result<(), CollectiveError> {
        self.group.mailboxes[self.rank * self.ranks() + to].put(values)
    }

    fn receive(&self, from: usize, values: &mut Vec<f32>) -> Result<(), CollectiveError> {
        self.group.mailboxes[from * self.ranks() + self.rank].take(values)
    }

    fn split(&self, color: usize) -> Result<Box<dyn Collective>, CollectiveError> {
        let colors = self.gather(color as f64)?;
        let members: Vec<usize> = (0..self.ranks()).filter(|rank| colors[*rank] as usize == color).collect();
        let rank = members.iter().filter(|member| **member < self.rank).count();
        if rank == 0 {
            let part = Arc::new(ThreadGroup::new(members.len(), self.group.has_cores));
            let mut parts = lock(&self.group.parts);
            parts.retain(|(known, _)| *known != color);
            parts.push((color, part));
        }
        self.collective_call(Kind::Split, &mut [], |_| ())?;
        let group = lock(&self.group.parts).iter().find(|(known, _)| *known == color).map(|(_, part)| Arc::clone(part));
        // A second split would replace it.
        self.barrier()?;
        let missing = || CollectiveError::Gone { rank: members[0], reason: "has not made its group".to_owned() };
        Ok(Box::new(ThreadRank { rank, group: group.ok_or_else(missing)? }))
    }

    fn leave(&self, reason: &str) {
        self.group.break_off(&self.gone(reason));
    }
}

/// Locks even after a panic: the list is changed by whole groups.
fn lock(parts: &Mutex<Vec<(usize, Arc<ThreadGroup>)>>) -> MutexGuard<'_, Vec<(usize, Arc<ThreadGroup>)>> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces a block of all ranks' values by their sum.
///
/// # Safety
/// `all` point to slices that contain `block`, and no other thread reads or writes this block of any of them.
unsafe fn sum_block(all: &[*mut f32], block: Range<usize>) {
    let mut sums = [0.0_f32; BLOCK];
    let sums = &mut sums[..block.len()];
    for values in all {
        // SAFETY: the caller's promise.
        let values = unsafe { std::slice::from_raw_parts(values.add(block.start), block.len()) };
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    for values in all {
        // SAFETY: the caller's promise; the reading slices above are gone.
        unsafe { std::ptr::copy_nonoverlapping(sums.as_ptr(), values.add(block.start), block.len()) };
    }
}

#[cfg(test)]
mod tests;
