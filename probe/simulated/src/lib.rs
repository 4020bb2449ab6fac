//! A simulated device: a stream that does its work in real time, on its own clock, and a pool of memory. Only tests and
//! benchmarks of the probe and of the crates that use it depend on this.
#![allow(missing_docs, clippy::unwrap_used, reason = "only tests use it")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gnntop_probe::device::{Lost, Pool, PoolUse, Stream};
use gnntop_probe::monotonic_ns;

/// Properties of a [`Simulated`] stream.
#[derive(Clone, Copy, Debug)]
pub struct DeviceModel {
    pub marks: u32,
    /// Time from the submission of work until an idle device begins it.
    pub latency: Duration,
    /// How much faster its clock runs than the host's.
    pub drift: f64,
    /// Each answer may be this old, so that a later mark may seem reached before an earlier one.
    pub lag: Duration,
    /// The device is lost after this many marks.
    pub lost_after: u64,
}

impl Default for DeviceModel {
    fn default() -> Self {
        Self { marks: 1024, latency: Duration::from_micros(5), drift: 40e-6, lag: Duration::ZERO, lost_after: u64::MAX }
    }
}

pub struct Simulated {
    model: DeviceModel,
    state: Mutex<DeviceState>,
    pub queries: AtomicU64,
    pub waits: AtomicU64,
}

#[derive(Default)]
struct DeviceState {
    /// When the device has finished all work, on the host's clock.
    done_ns: u64,
    /// When each mark is reached.
    reached_ns: Vec<u64>,
    recorded: u64,
    last_ns: u64,
}

impl Simulated {
    pub fn new(nature: DeviceModel) -> Arc<Self> {
        let state = DeviceState { reached_ns: vec![0; nature.marks as usize], ..DeviceState::default() };
        Arc::new(Self { model: nature, state: Mutex::new(state), queries: AtomicU64::new(0), waits: AtomicU64::new(0) })
    }

    /// Submits work.
    pub fn work(&self, time: Duration) {
        let mut state = self.state.lock().unwrap();
        state.done_ns = self.begin(&state) + time.as_nanos() as u64;
    }

    /// Waits for all work, as reading a result does.
    pub fn read_back(&self) {
        let done_ns = self.state.lock().unwrap().done_ns;
        while monotonic_ns() < done_ns {
            std::thread::yield_now();
        }
    }

    /// When the last recorded mark is reached, on the host's clock.
    pub fn last_reached_ns(&self) -> u64 {
        self.state.lock().unwrap().last_ns
    }

    fn begin(&self, state: &DeviceState) -> u64 {
        state.done_ns.max(monotonic_ns() + self.model.latency.as_nanos() as u64)
    }

    fn clock(&self, host_ns: u64) -> f64 {
        ((host_ns as f64 * (1.0 + self.model.drift)) / 500.0).round() * 500.0
    }
}

impl Stream for Simulated {
    fn marks(&self) -> u32 {
        self.model.marks
    }

    fn record(&self, mark: u32) -> Result<bool, Lost> {
        let mut state = self.state.lock().unwrap();
        if state.recorded >= self.model.lost_after {
            return Err(Lost("it fell off the bus".to_owned()));
        }
        state.recorded += 1;
        let at = self.begin(&state);
        state.done_ns = at;
        state.last_ns = at;
        state.reached_ns[mark as usize] = at;
        Ok(true)
    }

    fn is_reached(&self, mark: u32) -> Result<bool, Lost> {
        let query = self.queries.fetch_add(1, Ordering::Relaxed) + 1;
        // A fixed, uneven sequence.
        let lag = self.model.lag.as_nanos() as u64 * (query * 7919 % 101) / 101;
        Ok(monotonic_ns() >= self.state.lock().unwrap().reached_ns[mark as usize] + lag)
    }

    fn between_ns(&self, from: u32, to: u32) -> Result<f64, Lost> {
        let state = self.state.lock().unwrap();
        Ok(self.clock(state.reached_ns[to as usize]) - self.clock(state.reached_ns[from as usize]))
    }

    fn wait(&self) -> Result<(), Lost> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.read_back();
        Ok(())
    }
}

/// A pool with a fixed number of bytes.
#[derive(Clone, Default)]
pub struct SimulatedPool(Arc<Mutex<PoolState>>);

#[derive(Default)]
struct PoolState {
    now: PoolUse,
    reads: u64,
}

impl SimulatedPool {
    pub fn new(total: u64) -> Self {
        let pool = Self::default();
        pool.0.lock().unwrap().now = PoolUse { free: total, total, allocations: Some(0), ..PoolUse::default() };
        pool
    }

    /// Takes memory, or fails if there is not enough.
    pub fn allocate(&self, bytes: u64) -> Result<(), String> {
        let now = &mut self.0.lock().unwrap().now;
        let more = (now.used + bytes).saturating_sub(now.reserved);
        if more > now.free {
            return Err("CUDA_ERROR_OUT_OF_MEMORY".to_owned());
        }
        (now.free, now.reserved, now.used) = (now.free - more, now.reserved + more, now.used + bytes);
        (now.used_peak, now.reserved_peak) = (now.used_peak.max(now.used), now.reserved_peak.max(now.reserved));
        now.allocations = now.allocations.map(|count| count + 1);
        Ok(())
    }

    /// Gives memory back to the pool, which keeps it.
    pub fn free(&self, bytes: u64) {
        self.0.lock().unwrap().now.used -= bytes;
    }

    pub fn reads(&self) -> u64 {
        self.0.lock().unwrap().reads
    }
}

impl Pool for SimulatedPool {
    fn read(&mut self) -> Option<PoolUse> {
        let mut state = self.0.lock().unwrap();
        state.reads += 1;
        Some(state.now)
    }

    fn reset_peaks(&mut self) {
        let now = &mut self.0.lock().unwrap().now;
        (now.used_peak, now.reserved_peak) = (now.used, now.reserved);
    }
}
