//! One rank's end of a group of GPUs, which any thread can abort while work is in progress.
//!
//! If a rank or the connection to it is gone, work that needs it stays on the other GPUs forever, and a thread that
//! waits for one of these never returns. Only [`SharedHandle::abort`] removes such work. A waiting thread cannot do
//! that, so a process keeps all of its handles in [`Peers`]: the rank that fails ends them, and a thread checks whether
//! NCCL has noticed an error.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use candle_core::Device;

use super::library::{Config, FLOAT32, Functions, Handle, IN_PROGRESS, MEAN, SUCCESS, Status, UniqueId, failed};
use crate::parallel::CollectiveError;
use gnntop_nn::cuda::OnStream;

/// How often a call in progress is polled before the thread sleeps between polls.
const SPINS: u32 = 1000;
const SLEEP: Duration = Duration::from_micros(50);
/// How long finalizing may take, which needs the others, before the communicator is aborted instead.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often NCCL is asked whether it has noticed an error.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A rank's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupRank {
    /// The rank's number in the run, for messages.
    pub(super) number: usize,
    /// In its group.
    pub(super) rank: usize,
    /// Of the group.
    pub(super) ranks: usize,
}

/// A rank's membership in a group of GPUs.
#[derive(Debug)]
pub(super) struct Communicator {
    shared: Arc<SharedHandle>,
    /// Not closed before NCCL has freed its memory there.
    device: Device,
}

/// The part of a communicator that other threads share. Only its owner finalizes it.
#[derive(Debug)]
struct SharedHandle {
    functions: &'static Functions,
    number: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Handle),
    /// NCCL has freed the handle, or never returned one.
    Ended(CollectiveError),
}

// SAFETY: an NCCL handle is not bound to a thread. It is used and freed with `state` locked, and there is no copy of
// it.
unsafe impl Send for State {}

impl Communicator {
    /// Joins a group with this device, which is the calling thread's. A call that all ranks make with the same id; returns
    /// when all have.
    ///
    /// # Errors
    /// NCCL's, or a rank of `peers` is gone.
    pub(super) fn join(
        functions: &'static Functions,
        id: UniqueId,
        place: GroupRank,
        device: &Device,
        peers: &Arc<Peers>,
    ) -> Result<Self, CollectiveError> {
        let GroupRank { number, rank, ranks } = place;
        let (mut handle, mut config) = (std::ptr::null_mut(), Config::NOT_BLOCKING);
        let [of, at] = [ranks, rank].map(|count| c_int::try_from(count).unwrap_or(c_int::MAX));
        // SAFETY: handle and configuration are written and read during the call; the id is copied.
        let status = unsafe { (functions.comm_init)(&raw mut handle, of, id, at, &raw mut config) };
        let none = || failed(format!("rank {number} in joining {ranks} GPUs: {}", functions.words(status)));
        let state = Mutex::new(if handle.is_null() { State::Ended(none()) } else { State::Open(handle) });
        let shared = Arc::new(SharedHandle { functions, number, state });
        let communicator = Self { shared: Arc::clone(&shared), device: device.clone() };
        peers.add(&shared);
        shared.finish(status, || format!("joining {ranks} GPUs"))?;
        // Without a handle there was no error either: nothing has been joined.
        shared.on_handle(|_| ())?;
        Ok(communicator)
    }

    /// The rank's device.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Has the values, which are on [`device`](Self::device), replaced by their mean over the ranks.
    pub(super) fn mean(&self, values: &OnStream<'_>) -> Result<(), CollectiveError> {
        let (address, count, stream) = (values.address(), values.count(), values.stream());
        // SAFETY: the address is that of `count` f32 on the device of `stream` (`OnStream`), and NCCL may have both arguments
        // alike. The work is done in the stream's order, in which the memory is freed as well: it is on the stream when this
        // returns, or was taken off by `abort`, which has the lock until it is.
        let call = |handle| unsafe {
            (self.shared.functions.all_reduce)(address, address, count, FLOAT32, MEAN, handle, stream)
        };
        let status = self.shared.on_handle(call)?;
        self.shared.finish(status, || format!("all-reduce of {count} values"))
    }

    /// Has the values, which are on [`device`](Self::device), replaced by those of rank `root`.
    pub(super) fn broadcast(&self, root: usize, values: &OnStream<'_>) -> Result<(), CollectiveError> {
        let (address, count, stream) = (values.address(), values.count(), values.stream());
        let root = c_int::try_from(root).unwrap_or(c_int::MAX);
        // SAFETY: as in `mean`.
        let call = |handle| unsafe {
            (self.shared.functions.broadcast)(address, address, count, FLOAT32, root, handle, stream)
        };
        let status = self.shared.on_handle(call)?;
        self.shared.finish(status, || format!("broadcast of {count} values"))
    }
}

impl SharedHandle {
    /// Removes work in progress from the device, and makes every later call fail with this error. The first one counts.
    fn abort(&self, error: &CollectiveError) {
        let mut state = self.lock();
        if let State::Open(handle) = *state {
            *state = State::Ended(error.clone());
            // SAFETY: the handle is open, and no one else has it any more. Any thread may call this, even while a
            // returned call is in progress: that is what a non-blocking communicator is for.
            let _ = unsafe { (self.functions.comm_abort)(handle) };
        }
    }

    /// Makes an NCCL call, which returns at once.
    fn on_handle<T>(&self, call: impl FnOnce(Handle) -> T) -> Result<T, CollectiveError> {
        match &*self.lock() {
            State::Open(handle) => Ok(call(*handle)),
            State::Ended(error) => Err(error.clone()),
        }
    }

    /// Waits until a call is no longer in progress: until then its work may not be on the stream.
    fn finish(&self, status: Status, what: impl FnOnce() -> String) -> Result<(), CollectiveError> {
        let status = self.settled(status, None)?;
        if status == SUCCESS {
            return Ok(());
        }
        let error = failed(format!("rank {} in {}: {}", self.number, what(), self.functions.words(status)));
        self.abort(&error);
        Err(error)
    }

    /// A call's result, or that it is still in progress when the time is up.
    fn settled(&self, mut status: Status, limit: Option<Duration>) -> Result<Status, CollectiveError> {
        let (begin, mut asked) = (Instant::now(), 0);
        while status == IN_PROGRESS && limit.is_none_or(|limit| begin.elapsed() < limit) {
            if asked < SPINS {
                std::thread::yield_now()
            } else {
                std::thread::sleep(SLEEP)
            }
            asked += 1;
            status = self.ask()?;
        }
        Ok(status)
    }

    /// The state of the last call, or else whether NCCL has noticed that the group is broken.
    fn ask(&self) -> Result<Status, CollectiveError> {
        self.on_handle(|handle| {
            let mut state = SUCCESS;
            // SAFETY: the handle is open; the state is written during the call.
            let asking = unsafe { (self.functions.comm_state)(handle, &raw mut state) };
            if asking == SUCCESS { state } else { asking }
        })
    }

    /// Aborts if NCCL has noticed that the group is broken: a thread that waits for the device returns with the error.
    fn check(&self) {
        if let Ok(status) = self.ask()
            && status != SUCCESS
            && status != IN_PROGRESS
        {
            let words = self.functions.words(status);
            self.abort(&failed(format!("rank {} in work under way: {words}", self.number)));
        }
    }

    /// Locks even after a panic: the content is changed in one go.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Communicator {
    /// Finalizes normally, which needs the others to do so, too; aborts if they do not.
    fn drop(&mut self) {
        let shared = &*self.shared;
        let gone = CollectiveError::Gone { rank: shared.number, reason: "has ended".to_owned() };
        if std::thread::panicking() {
            return shared.abort(&gone);
        }
        // SAFETY: the handle is open.
        let parted = shared.on_handle(|handle| unsafe { (shared.functions.comm_finalize)(handle) });
        let parted = parted.and_then(|status| shared.settled(status, Some(FAREWELL)));
        let mut state = shared.lock();
        if let (Ok(SUCCESS), State::Open(handle)) = (parted, &*state) {
            let handle = *handle;
            *state = State::Ended(gone);
            // SAFETY: the handle is open, nothing is in progress, and no one else has it any more.
            let _ = unsafe { (shared.functions.comm_destroy)(handle) };
            return;
        }
        drop(state);
        shared.abort(&gone);
    }
}

/// The handles of this process's ranks.
#[derive(Debug, Default)]
pub(super) struct Peers(Mutex<Members>);

#[derive(Debug, Default)]
struct Members {
    handles: Vec<Weak<SharedHandle>>,
    /// Why the first rank failed.
    failure: Option<CollectiveError>,
    is_watched: bool,
}

impl Peers {
    /// Adds a handle, which ends at once if a rank has already failed.
    fn add(self: &Arc<Self>, shared: &Arc<SharedHandle>) {
        let mut members = self.lock();
        members.handles.retain(|known| known.strong_count() > 0);
        members.handles.push(Arc::downgrade(shared));
        if let Some(error) = &members.failure {
            shared.abort(error);
        }
        if !members.is_watched {
            let peers = Arc::downgrade(self);
            let watcher = std::thread::Builder::new().name("nccl watch".to_owned());
            // Without it a broken network is a hang, as without NCCL.
            members.is_watched = watcher.spawn(move || watch(&peers)).is_ok();
        }
    }

    /// Ends them all, including later ones. The first failure counts: others follow from it.
    pub(super) fn end(&self, error: CollectiveError) {
        let error = self.lock().failure.get_or_insert(error).clone();
        self.all().iter().for_each(|shared| shared.abort(&error));
    }

    fn all(&self) -> Vec<Arc<SharedHandle>> {
        self.lock().handles.iter().filter_map(Weak::upgrade).collect()
    }

    /// Locks even after a panic: the list is changed by whole members.
    fn lock(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the handles for as long as there are ranks.
fn watch(peers: &Weak<Peers>) {
    while let Some(peers) = peers.upgrade() {
        peers.all().iter().for_each(|shared| shared.check());
        drop(peers);
        std::thread::sleep(POLL_INTERVAL);
    }
}
