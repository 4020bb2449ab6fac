//! Shuffled batches of graphs, assembled ahead by worker threads.
//!
//! Batches are numbered through all epochs. Worker `w` of `n` assembles batches `w`, `w + n`, `w + 2n`, … and hands
//! them over in a bounded queue of its own, and the consumer takes from the queues in turn: the order and the content
//! of the batches do not depend on the number of workers, and nobody waits for more than the next batch. Workers live
//! as long as the loader, so that no thread is started between epochs. Used buffers go back to the worker they came
//! from. With no workers the consumer assembles each batch itself.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use thiserror::Error;

use crate::graph::{Batch, Graph, GraphError};

/// How batches are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderSettings {
    /// Graphs in a batch, at least 1. The last batch of an epoch has what is left.
    pub batch_size: usize,
    /// Worker threads; 0 assembles in the consumer.
    pub workers: usize,
    /// Finished batches each worker may keep ready, at least 1.
    pub prefetch: usize,
    /// Seed of the order. An epoch's order depends on this and on the epoch alone.
    pub seed: u64,
    /// Whether each epoch has an order of its own; otherwise the graphs come as they are.
    pub shuffle: bool,
}

impl Default for LoaderSettings {
    /// Batches of 512, two workers two batches ahead (PyTorch's default), shuffled with the seed of the study.
    fn default() -> Self {
        Self { batch_size: 512, workers: 2, prefetch: 2, seed: 1234, shuffle: true }
    }
}

/// Which batch: the epoch, and the position in it, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId {
    /// Epoch, from 0.
    pub epoch: u64,
    /// Batch within the epoch, from 0.
    pub index: u64,
}

/// Watches the worker threads, to time them without the loader knowing how. Both hooks run on the worker's thread, so
/// that guards which must not change threads can live in them. With no workers neither is called.
pub trait LoaderObserver: Send + Sync + 'static {
    /// Runs a worker from its start to its end: must call `work` once. What is held around the call lives exactly as
    /// long as the worker works.
    fn worker(&self, worker: usize, work: &mut dyn FnMut()) {
        let _ = worker;
        work();
    }

    /// Runs the assembly of one batch: must call `work` once. Waiting for room in the queue is not part of it.
    fn assemble(&self, batch: BatchId, work: &mut dyn FnMut()) {
        let _ = batch;
        work();
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl LoaderObserver for Unobserved {}

/// Why there is no batch.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoaderError {
    /// There is nothing to load.
    #[error("there are no graphs to load")]
    NoGraphs,
    /// A setting is 0 that must not be.
    #[error("{setting} is 0; it must be at least 1")]
    ZeroSetting {
        /// Its name in [`LoaderSettings`].
        setting: &'static str,
    },
    /// The system refused a thread.
    #[error("cannot start loader thread {worker}; use fewer workers: {source}")]
    Spawn {
        /// The worker, from 0.
        worker: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The graphs of a batch do not fit together. The batches after it still come.
    #[error("batch {} of epoch {} cannot be assembled: {source}", batch.index, batch.epoch)]
    Assemble {
        /// The batch.
        batch: BatchId,
        /// What is wrong; positions are those within the batch.
        source: GraphError,
    },
    /// A worker ended before its time: a hook of the observer panicked, or did not call its work.
    #[error("loader thread {worker} has stopped")]
    WorkerStopped {
        /// The worker, from 0.
        worker: usize,
    },
}

/// A batch on loan: dropping it gives its memory back for a later one.
#[derive(Debug)]
pub struct LoadedBatch {
    /// Which batch it is.
    pub id: BatchId,
    batch: Batch,
    home: Sender<Batch>,
}

impl Deref for LoadedBatch {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        &self.batch
    }
}

impl Drop for LoadedBatch {
    fn drop(&mut self) {
        // The loader may be gone already; then the memory is simply freed.
        let _ = self.home.send(std::mem::take(&mut self.batch));
    }
}

/// Endless batches over a set of graphs, epoch after epoch, in the same order whatever the number of workers.
///
/// ```
/// use gnntop_workloads::molecule::{Loader, LoaderSettings, generate};
///
/// let settings = LoaderSettings { batch_size: 32, ..LoaderSettings::default() };
/// let mut loader = Loader::new(generate(1, 100).graphs.into(), settings)?;
/// for _ in 0..loader.batches_per_epoch() {
///     let batch = loader.next_batch()?;
///     assert_eq!(batch.graphs, if batch.id.index < 3 { 32 } else { 4 });
/// }
/// # Ok::<(), gnntop_workloads::molecule::LoaderError>(())
/// ```
#[derive(Debug)]
pub struct Loader {
    plan: Arc<Plan>,
    next: u64,
    ready: Arc<AtomicUsize>,
    queues: Vec<Receiver<Result<LoadedBatch, LoaderError>>>,
    threads: Vec<JoinHandle<()>>,
    /// Assembles in the consumer where there are no workers.
    own: Option<Assembler>,
}

impl Loader {
    /// Starts the workers. They begin to fill their queues at once.
    ///
    /// # Errors
    /// No graphs, a zero batch size or prefetch, or the system refuses a thread.
    pub fn new(graphs: Arc<[Graph]>, settings: LoaderSettings) -> Result<Self, LoaderError> {
        Self::observed(graphs, settings, Arc::new(Unobserved))
    }

    /// The same, with hooks around the work of every worker.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn observed<O: LoaderObserver>(
        graphs: Arc<[Graph]>,
        settings: LoaderSettings,
        observer: Arc<O>,
    ) -> Result<Self, LoaderError> {
        let plan = Arc::new(Plan::new(graphs, settings)?);
        let own = (settings.workers == 0).then(|| Assembler::new(Arc::clone(&plan)));
        let ready = Arc::new(AtomicUsize::new(0));
        let mut loader = Self { plan, next: 0, ready, queues: Vec::new(), threads: Vec::new(), own };
        for worker in 0..settings.workers {
            loader.start_worker(worker, Arc::clone(&observer))?;
        }
        Ok(loader)
    }

    /// Batches in an epoch, the partial last one counted.
    #[must_use]
    pub fn batches_per_epoch(&self) -> u64 {
        self.plan.batches_per_epoch
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> LoaderSettings {
        self.plan.settings
    }

    /// Batches that are ready now, in all queues. With no workers, 0.
    #[must_use]
    pub fn queue_depth(&self) -> usize {
        // A batch in the hand of a worker whose queue is full is counted already.
        self.ready.load(Ordering::Relaxed).min(self.queue_capacity())
    }

    /// Most batches that can be ready: workers times prefetch.
    #[must_use]
    pub fn queue_capacity(&self) -> usize {
        self.plan.settings.workers * self.plan.settings.prefetch
    }

    /// The next batch, waiting for it where it is not ready. After the last batch of an epoch comes the first of the
    /// next.
    ///
    /// # Errors
    /// The graphs of this batch do not fit together, or its worker has stopped.
    pub fn next_batch(&mut self) -> Result<LoadedBatch, LoaderError> {
        let number = self.next;
        self.next += 1;
        if let Some(own) = &mut self.own {
            return own.assemble(number);
        }
        let worker = (number % self.queues.len() as u64) as usize;
        let batch = self.queues[worker].recv().map_err(|_| LoaderError::WorkerStopped { worker })?;
        self.ready.fetch_sub(1, Ordering::Relaxed);
        batch
    }

    fn start_worker<O: LoaderObserver>(&mut self, worker: usize, observer: Arc<O>) -> Result<(), LoaderError> {
        let (queue, taken) = sync_channel(self.plan.settings.prefetch);
        let mut work = Worker {
            assembler: Assembler::new(Arc::clone(&self.plan)),
            first: worker as u64,
            step: self.plan.settings.workers as u64,
            queue,
            ready: Arc::clone(&self.ready),
        };
        let run = move || {
            let watched = Arc::clone(&observer);
            observer.worker(worker, &mut || work.run(&*watched));
        };
        let thread = std::thread::Builder::new()
            .name(format!("loader {worker}"))
            .spawn(run)
            .map_err(|source| LoaderError::Spawn { worker, source })?;
        self.queues.push(taken);
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Loader {
    /// Closes the queues, which ends every worker at its next hand-over, and waits for them.
    fn drop(&mut self) {
        self.queues.clear();
        for thread in self.threads.drain(..) {
            // A panic of an observer's hook was reported as a stopped worker.
            let _ = thread.join();
        }
    }
}

/// What every worker reads: the graphs, the settings and the order of each epoch.
#[derive(Debug)]
struct Plan {
    graphs: Arc<[Graph]>,
    settings: LoaderSettings,
    batches_per_epoch: u64,
    /// Orders of the epochs in work, newest last, computed by the first who asks.
    orders: Mutex<Vec<(u64, Arc<[u32]>)>>,
}

impl Plan {
    fn new(graphs: Arc<[Graph]>, settings: LoaderSettings) -> Result<Self, LoaderError> {
        if graphs.is_empty() {
            return Err(LoaderError::NoGraphs);
        }
        for (setting, value) in [("batch_size", settings.batch_size), ("prefetch", settings.prefetch)] {
            if value == 0 {
                return Err(LoaderError::ZeroSetting { setting });
            }
        }
        let batches_per_epoch = graphs.len().div_ceil(settings.batch_size) as u64;
        Ok(Self { graphs, settings, batches_per_epoch, orders: Mutex::new(Vec::new()) })
    }

    fn id(&self, number: u64) -> BatchId {
        BatchId { epoch: number / self.batches_per_epoch, index: number % self.batches_per_epoch }
    }

    /// The order of an epoch. Two are kept, for workers at the end of one and at the start of the next; where the
    /// queues hold more epochs than that, an order is computed again.
    fn order(&self, epoch: u64) -> Arc<[u32]> {
        const KEPT: usize = 2;
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, order)) = orders.iter().find(|(kept, _)| *kept == epoch) {
            return Arc::clone(order);
        }
        let order = epoch_order(self.graphs.len(), self.settings, epoch);
        if orders.len() == KEPT {
            orders.remove(0);
        }
        orders.push((epoch, Arc::clone(&order)));
        order
    }
}

fn epoch_order(graphs: usize, settings: LoaderSettings, epoch: u64) -> Arc<[u32]> {
    let mut order: Vec<u32> = (0..graphs as u32).collect();
    if settings.shuffle {
        // Multiplying by an odd constant keeps (seed, epoch) and (seed + 1, epoch - 1) apart.
        let seed = settings.seed ^ epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        order.shuffle(&mut StdRng::seed_from_u64(seed));
    }
    order.into()
}

/// Builds batches by number, in buffers that come back.
#[derive(Debug)]
struct Assembler {
    plan: Arc<Plan>,
    order: Option<(u64, Arc<[u32]>)>,
    home: Sender<Batch>,
    returned: Receiver<Batch>,
}

impl Assembler {
    fn new(plan: Arc<Plan>) -> Self {
        let (home, returned) = channel();
        Self { plan, order: None, home, returned }
    }

    fn assemble(&mut self, number: u64) -> Result<LoadedBatch, LoaderError> {
        let id = self.plan.id(number);
        let order = self.order_of(id.epoch);
        let size = self.plan.settings.batch_size;
        let first = id.index as usize * size;
        let members = &order[first..order.len().min(first + size)];
        let graphs: Vec<&Graph> = members.iter().map(|&graph| &self.plan.graphs[graph as usize]).collect();
        let mut batch = self.returned.try_recv().unwrap_or_else(|_| Batch::new());
        match batch.assemble(&graphs) {
            Ok(()) => Ok(LoadedBatch { id, batch, home: self.home.clone() }),
            Err(source) => Err(LoaderError::Assemble { batch: id, source }),
        }
    }

    fn order_of(&mut self, epoch: u64) -> Arc<[u32]> {
        match &self.order {
            Some((held, order)) if *held == epoch => Arc::clone(order),
            _ => {
                let order = self.plan.order(epoch);
                self.order = Some((epoch, Arc::clone(&order)));
                order
            }
        }
    }
}

/// One worker thread's part.
struct Worker {
    assembler: Assembler,
    first: u64,
    step: u64,
    queue: SyncSender<Result<LoadedBatch, LoaderError>>,
    ready: Arc<AtomicUsize>,
}

impl Worker {
    /// Fills the queue until the loader closes it.
    fn run(&mut self, observer: &dyn LoaderObserver) {
        let mut number = self.first;
        loop {
            let mut assembled = None;
            let id = self.assembler.plan.id(number);
            observer.assemble(id, &mut || assembled = Some(self.assembler.assemble(number)));
            let Some(batch) = assembled else { return };
            // Counted before it can be taken, so that the count never falls below zero.
            self.ready.fetch_add(1, Ordering::Relaxed);
            if self.queue.send(batch).is_err() {
                return;
            }
            number += self.step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Graphs that tell themselves apart by target and size.
    fn graphs(count: usize) -> Arc<[Graph]> {
        let graph = |index: usize| {
            let nodes = 1 + index % 5;
            let edges = (1..nodes as u32).flat_map(|node| [(node - 1, node), (node, node - 1)]).collect();
            Graph { nodes, features: vec![index as f32; nodes * 2], edges, y: index as f32 }
        };
        (0..count).map(graph).collect()
    }

    fn settings(workers: usize) -> LoaderSettings {
        LoaderSettings { batch_size: 8, workers, prefetch: 2, seed: 7, shuffle: true }
    }

    fn batches(settings: LoaderSettings, count: usize) -> Vec<(BatchId, Batch)> {
        let mut loader = Loader::new(graphs(43), settings).unwrap();
        (0..count)
            .map(|_| {
                let batch = loader.next_batch().unwrap();
                (batch.id, batch.clone())
            })
            .collect()
    }

    #[test]
    fn batches_do_not_depend_on_the_number_of_workers() {
        let expected = batches(settings(0), 40);
        for workers in [1, 2, 3, 4, 7] {
            assert!(batches(settings(workers), 40) == expected, "{workers} workers");
        }
    }

    #[test]
    fn an_epoch_holds_every_graph_once_and_ends_with_a_partial_batch() {
        let loaded = batches(settings(2), 12);
        let mut orders = Vec::new();
        for epoch in 0..2 {
            let of_epoch: Vec<_> = loaded.iter().filter(|(id, _)| id.epoch == epoch).collect();
            let sizes: Vec<_> = of_epoch.iter().map(|(_, batch)| batch.graphs).collect();
            assert_eq!(sizes, [8, 8, 8, 8, 8, 3]);
            let order: Vec<i32> = of_epoch.iter().flat_map(|(_, batch)| &batch.y).map(|&y| y as i32).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..43).collect::<Vec<_>>());
            orders.push(order);
        }
        assert_ne!(orders[0], orders[1]);
    }

    #[test]
    fn the_seed_decides_the_order() {
        let other = LoaderSettings { seed: 8, ..settings(0) };
        assert!(batches(settings(0), 6) == batches(settings(0), 6));
        assert!(batches(settings(0), 6) != batches(other, 6));
        let plain = batches(LoaderSettings { shuffle: false, ..settings(2) }, 1);
        assert_eq!(plain[0].1.y, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    }

    #[test]
    fn dropping_early_joins_the_workers() {
        for taken in [0, 1, 5] {
            let mut loader = Loader::new(graphs(43), settings(4)).unwrap();
            for _ in 0..taken {
                loader.next_batch().unwrap();
            }
            drop(loader);
        }
    }

    #[test]
    fn a_batch_outlives_its_loader() {
        let mut loader = Loader::new(graphs(43), settings(2)).unwrap();
        let batch = loader.next_batch().unwrap();
        drop(loader);
        assert_eq!(batch.graphs, 8);
    }

    #[test]
    fn buffers_come_back() {
        let mut loader = Loader::new(graphs(8), LoaderSettings { shuffle: false, ..settings(0) }).unwrap();
        let first = loader.next_batch().unwrap().features.as_ptr();
        assert_eq!(loader.next_batch().unwrap().features.as_ptr(), first);
    }

    #[test]
    fn the_queue_fills_to_its_capacity_and_no_further() {
        let mut loader = Loader::new(graphs(43), settings(2)).unwrap();
        assert_eq!(loader.queue_capacity(), 4);
        // Each worker fills its queue of two and waits with one batch more in hand.
        while loader.ready.load(Ordering::Relaxed) < 6 {
            std::thread::yield_now();
        }
        assert_eq!(loader.queue_depth(), 4);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(loader.ready.load(Ordering::Relaxed), 6);
        loader.next_batch().unwrap();
    }

    #[test]
    fn a_bad_graph_spoils_only_its_batch() {
        for workers in [0, 2] {
            let mut list = graphs(43).to_vec();
            list[9].features.pop();
            let order = LoaderSettings { shuffle: false, ..settings(workers) };
            let mut loader = Loader::new(list.into(), order).unwrap();
            loader.next_batch().unwrap();
            let error = loader.next_batch().unwrap_err();
            assert!(error.to_string().starts_with("batch 1 of epoch 0 cannot be assembled: graph 1 has"), "{error}");
            assert_eq!(loader.next_batch().unwrap().y[0], 16.0);
        }
    }

    #[test]
    fn senseless_settings_are_refused() {
        let refused = |graphs, settings| Loader::new(graphs, settings).unwrap_err().to_string();
        assert_eq!(refused(graphs(0), settings(0)), "there are no graphs to load");
        let no_size = LoaderSettings { batch_size: 0, ..settings(0) };
        assert_eq!(refused(graphs(1), no_size), "batch_size is 0; it must be at least 1");
        let no_prefetch = LoaderSettings { prefetch: 0, ..settings(2) };
        assert_eq!(refused(graphs(1), no_prefetch), "prefetch is 0; it must be at least 1");
    }

    #[derive(Default)]
    struct Counting {
        started: AtomicU64,
        ended: AtomicU64,
        assembled: AtomicU64,
        names: Mutex<Vec<String>>,
    }

    impl LoaderObserver for Counting {
        fn worker(&self, _worker: usize, work: &mut dyn FnMut()) {
            self.names.lock().unwrap().extend(std::thread::current().name().map(str::to_owned));
            self.started.fetch_add(1, Ordering::Relaxed);
            work();
            self.ended.fetch_add(1, Ordering::Relaxed);
        }

        fn assemble(&self, batch: BatchId, work: &mut dyn FnMut()) {
            assert!(batch.index < 6);
            work();
            self.assembled.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_observer_sees_each_worker_and_batch() {
        let counting = Arc::new(Counting::default());
        let mut loader = Loader::observed(graphs(43), settings(2), Arc::clone(&counting)).unwrap();
        for _ in 0..10 {
            loader.next_batch().unwrap();
        }
        drop(loader);
        assert_eq!(counting.started.load(Ordering::Relaxed), 2);
        assert_eq!(counting.ended.load(Ordering::Relaxed), 2);
        assert!((10..=16).contains(&counting.assembled.load(Ordering::Relaxed)));
        let mut names = counting.names.lock().unwrap().clone();
        names.sort();
        assert_eq!(names, ["loader 0", "loader 1"]);
    }

    struct Refusing;

    impl LoaderObserver for Refusing {
        fn assemble(&self, batch: BatchId, work: &mut dyn FnMut()) {
            assert!(batch.index < 2, "a hook that panics");
            work();
        }
    }

    #[test]
    fn a_panicking_hook_is_an_error_for_the_consumer() {
        let mut loader = Loader::observed(graphs(43), settings(2), Arc::new(Refusing)).unwrap();
        loader.next_batch().unwrap();
        loader.next_batch().unwrap();
        assert!(matches!(loader.next_batch(), Err(LoaderError::WorkerStopped { worker: 0 })));
        assert!(matches!(loader.next_batch(), Err(LoaderError::WorkerStopped { worker: 1 })));
    }
}
