//! The loader and its worker threads.
//!
//! Batches are numbered through all epochs. Worker `w` of `n` assembles batches `w`, `w + n`, `w + 2n`, … and passes
//! them on in its own bounded queue, and the consumer takes from the queues in turn: the order and the content of the
//! batches do not depend on the number of workers, and no one waits for more than the next batch. Workers live as long
//! as the loader, so that no thread is started between epochs. Used buffers go back to the worker they came from. With
//! no workers the consumer assembles each batch itself.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use super::order::BatchOrder;
use super::{Assemble, BatchId, LoaderError, LoaderObserver, LoaderSettings, Stage, Unobserved};

/// A batch on loan: dropping it gives its memory back for a later one.
#[derive(Debug)]
pub struct LoadedBatch<B: Default> {
    /// Which batch it is.
    pub id: BatchId,
    batch: B,
    home: Sender<B>,
}

impl<B: Default> Deref for LoadedBatch<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.batch
    }
}

impl<B: Default> DerefMut for LoadedBatch<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.batch
    }
}

impl<B: Default> Drop for LoadedBatch<B> {
    fn drop(&mut self) {
        // The loader may be gone already; then the memory is simply freed.
        let _ = self.home.send(std::mem::take(&mut self.batch));
    }
}

type Made<A> = Result<LoadedBatch<<A as Assemble>::Batch>, LoaderError>;

/// Endless batches over a set, epoch after epoch, in the same order whatever the number of workers.
///
/// ```
/// use gnntop_data::loading::LoaderSettings;
/// use gnntop_data::molecule::{GraphBatches, Loader, generate};
///
/// let settings = LoaderSettings { batch_size: 32, ..LoaderSettings::default() };
/// let mut loader = Loader::new(GraphBatches::new(generate(1, 100).graphs), settings)?;
/// for _ in 0..loader.batches_per_epoch() {
///     let batch = loader.next_batch()?;
///     assert_eq!(batch.graphs, if batch.id.index < 3 { 32 } else { 4 });
/// }
/// # Ok::<(), gnntop_data::loading::LoaderError>(())
/// ```
pub struct Loader<A: Assemble> {
    batches: Arc<BatchOrder>,
    next: u64,
    ready: Arc<AtomicUsize>,
    queues: Vec<Receiver<Made<A>>>,
    threads: Vec<JoinHandle<()>>,
    /// Makes the batches in the consumer where there are no workers.
    own: Option<Maker<A>>,
}

impl<A: Assemble> fmt::Debug for Loader<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Loader")
            .field("batches", &self.batches)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<A: Assemble> Loader<A> {
    /// Starts the workers. They begin to fill their queues at once.
    ///
    /// # Errors
    /// Nothing to load, a zero batch size or prefetch, or the system refuses a thread.
    pub fn new(assembler: A, settings: LoaderSettings) -> Result<Self, LoaderError> {
        Self::observed(assembler, settings, Arc::new(Unobserved))
    }

    /// The same, with hooks around the work.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn observed<O: LoaderObserver>(
        mut assembler: A,
        settings: LoaderSettings,
        observer: Arc<O>,
    ) -> Result<Self, LoaderError> {
        let workers = settings.workers;
        let batches = Arc::new(BatchOrder::new(assembler.items(), A::ITEMS, settings)?);
        let maker = |assembler| Maker::new(assembler, Arc::clone(&batches), Arc::clone(&observer) as Arc<_>);
        let ready = Arc::new(AtomicUsize::new(0));
        let mut loader =
            Self { batches: Arc::clone(&batches), next: 0, ready, queues: Vec::new(), threads: Vec::new(), own: None };
        for worker in 0..workers {
            loader.start_worker(worker, maker(assembler.clone()))?;
        }
        if workers == 0 {
            assembler.work_alone();
            loader.own = Some(maker(assembler));
        }
        Ok(loader)
    }

    /// Batches in an epoch, the partial last one counted.
    #[must_use]
    pub fn batches_per_epoch(&self) -> u64 {
        self.batches.batches_per_epoch
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &LoaderSettings {
        &self.batches.settings
    }

    /// Batches that are ready now, in all queues; 0 without workers.
    #[must_use]
    pub fn queue_depth(&self) -> usize {
        // A batch that a worker holds while its queue is full is already counted.
        self.ready.load(Ordering::Relaxed).min(self.queue_capacity())
    }

    /// The largest number of batches that can be ready: workers times prefetch.
    #[must_use]
    pub fn queue_capacity(&self) -> usize {
        self.batches.settings.workers * self.batches.settings.prefetch
    }

    /// Waits for the next batch. After the last batch of an epoch comes the first of the next.
    ///
    /// # Errors
    /// The items of this batch do not fit together, or its worker has stopped.
    pub fn next_batch(&mut self) -> Result<LoadedBatch<A::Batch>, LoaderError> {
        let number = self.next;
        self.next += 1;
        if let Some(own) = &mut self.own {
            return own.make(number);
        }
        let worker = (number % self.queues.len() as u64) as usize;
        let batch = self.queues[worker].recv().map_err(|_| LoaderError::WorkerStopped { worker })?;
        self.ready.fetch_sub(1, Ordering::Relaxed);
        batch
    }

    fn start_worker(&mut self, worker: usize, maker: Maker<A>) -> Result<(), LoaderError> {
        let (queue, taken) = sync_channel(self.batches.settings.prefetch);
        let observer = Arc::clone(&maker.observer);
        let mut work = Worker {
            maker,
            first: worker as u64,
            step: self.batches.settings.workers as u64,
            queue,
            ready: Arc::clone(&self.ready),
        };
        let thread = std::thread::Builder::new()
            .name(format!("loader {worker}"))
            .spawn(move || observer.worker(worker, &mut || work.run()))
            .map_err(|source| LoaderError::Spawn { worker, source })?;
        self.queues.push(taken);
        self.threads.push(thread);
        Ok(())
    }
}

impl<A: Assemble> Drop for Loader<A> {
    /// Closes the queues, which ends every worker at its next batch, and waits for them.
    fn drop(&mut self) {
        self.queues.clear();
        for thread in self.threads.drain(..) {
            // A panic of an observer's hook was reported as a stopped worker.
            let _ = thread.join();
        }
    }
}

/// Makes batches by number, in buffers that are reused.
struct Maker<A: Assemble> {
    assembler: A,
    batches: Arc<BatchOrder>,
    observer: Arc<dyn LoaderObserver>,
    order: Option<(u64, Arc<[u32]>)>,
    home: Sender<A::Batch>,
    returned: Receiver<A::Batch>,
}

impl<A: Assemble> Maker<A> {
    fn new(assembler: A, batches: Arc<BatchOrder>, observer: Arc<dyn LoaderObserver>) -> Self {
        let (home, returned) = channel();
        Self { assembler, batches, observer, order: None, home, returned }
    }

    fn make(&mut self, number: u64) -> Made<A> {
        let id = self.batches.id(number);
        let order = self.order_of(id.epoch);
        let members = self.batches.members(&order, id.index);
        self.delay();
        let batch = self.returned.try_recv().unwrap_or_default();
        // On loan from here on, so that the memory also comes back from a batch that fails.
        let mut loaded = LoadedBatch { id, batch, home: self.home.clone() };
        match self.assembler.assemble(members, id, &mut loaded.batch, &*self.observer) {
            Ok(()) => Ok(loaded),
            Err(source) => Err(LoaderError::Assemble { batch: id, source: Box::new(source) }),
        }
    }

    /// The delay that the settings ask for, as a part of the work.
    fn delay(&self) {
        let delay = self.batches.settings.delay.time();
        if !delay.is_zero() {
            self.observer.stage(Stage::Assemble, &mut || std::thread::sleep(delay));
        }
    }

    fn order_of(&mut self, epoch: u64) -> Arc<[u32]> {
        match &self.order {
            Some((held, order)) if *held == epoch => Arc::clone(order),
            _ => {
                let order = self.batches.order(epoch);
                self.order = Some((epoch, Arc::clone(&order)));
                order
            }
        }
    }
}

/// One worker thread's part.
struct Worker<A: Assemble> {
    maker: Maker<A>,
    first: u64,
    step: u64,
    queue: SyncSender<Made<A>>,
    ready: Arc<AtomicUsize>,
}

impl<A: Assemble> Worker<A> {
    /// Fills the queue until the loader closes it.
    fn run(&mut self) {
        let observer = Arc::clone(&self.maker.observer);
        let mut number = self.first;
        loop {
            let mut made = None;
            let id = self.maker.batches.id(number);
            observer.batch(id, &mut || made = Some(self.maker.make(number)));
            let Some(batch) = made else { return };
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
    use crate::loading::{Delay, LoaderShard, Pause};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;

    /// A set whose batches are the positions of their items; one item can be bad.
    #[derive(Clone)]
    struct Positions {
        items: usize,
        bad: Option<u32>,
    }

    impl Assemble for Positions {
        const ITEMS: &'static str = "things";
        type Batch = Vec<u32>;
        type Error = std::io::Error;

        fn items(&self) -> usize {
            self.items
        }

        fn assemble(
            &mut self,
            members: &[u32],
            _: BatchId,
            out: &mut Vec<u32>,
            observer: &dyn LoaderObserver,
        ) -> Result<(), std::io::Error> {
            if let Some(position) = members.iter().position(|&member| Some(member) == self.bad) {
                return Err(std::io::Error::other(format!("thing {position} is bad")));
            }
            observer.stage(Stage::Assemble, &mut || {
                out.clear();
                out.extend_from_slice(members);
            });
            Ok(())
        }
    }

    fn things(items: usize) -> Positions {
        Positions { items, bad: None }
    }

    fn settings(workers: usize) -> LoaderSettings {
        LoaderSettings { batch_size: 8, workers, prefetch: 2, seed: 7, ..LoaderSettings::default() }
    }

    fn batches(settings: LoaderSettings, count: usize) -> Vec<(BatchId, Vec<u32>)> {
        let mut loader = Loader::new(things(43), settings).unwrap();
        (0..count)
            .map(|_| {
                let batch = loader.next_batch().unwrap();
                (batch.id, batch.clone())
            })
            .collect()
    }

    #[test]
    fn parts_of_a_batch_make_the_batch_and_stay_equal() {
        let whole = batches(LoaderSettings { batch_size: 12, ..settings(0) }, 8);
        let part =
            |number| batches(LoaderSettings { batch_size: 4, part: LoaderShard { number, of: 3 }, ..settings(0) }, 8);
        let parts = [0, 1, 2].map(part);
        for (at, (id, members)) in whole.iter().enumerate() {
            assert!(parts.iter().all(|part| part[at].0 == *id));
            let mut together: Vec<u32> = parts.iter().flat_map(|part| part[at].1.clone()).collect();
            assert!(parts.iter().all(|part| part[at].1.len() == together.len() / 3));
            // 43 things: of the seven in the last batch each part would have 2 1/3, so that two come again.
            let padding = together.split_off(members.len());
            assert_eq!(together, *members);
            assert_eq!(padding, if id.index == 3 { whole[at - 3].1[..2].to_vec() } else { Vec::new() });
        }
    }

    #[test]
    fn fewer_things_than_parts_are_loaded_by_several() {
        let part = |number| {
            let settings = LoaderSettings { batch_size: 4, part: LoaderShard { number, of: 5 }, ..settings(0) };
            Loader::new(things(2), settings).unwrap().next_batch().unwrap().clone()
        };
        let loaded = [0, 1, 2, 3, 4].map(part);
        assert!(loaded.iter().all(|members| members.len() == 1) && loaded[0] == loaded[2] && loaded[0] != loaded[1]);
        let none = LoaderSettings { part: LoaderShard { number: 2, of: 2 }, ..settings(0) };
        assert_eq!(Loader::new(things(2), none).unwrap_err().to_string(), "there is no part 2 of 2");
    }

    #[test]
    fn batches_do_not_depend_on_the_number_of_workers() {
        let expected = batches(settings(0), 40);
        for workers in [1, 2, 3, 4, 7] {
            assert!(batches(settings(workers), 40) == expected, "{workers} workers");
        }
    }

    #[test]
    fn an_epoch_holds_every_item_once_and_ends_with_a_partial_batch() {
        let loaded = batches(settings(2), 12);
        let mut orders = Vec::new();
        for epoch in 0..2 {
            let of_epoch: Vec<_> = loaded.iter().filter(|(id, _)| id.epoch == epoch).collect();
            let sizes: Vec<_> = of_epoch.iter().map(|(_, batch)| batch.len()).collect();
            assert_eq!(sizes, [8, 8, 8, 8, 8, 3]);
            let order: Vec<u32> = of_epoch.iter().flat_map(|(_, batch)| batch.clone()).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..43).collect::<Vec<_>>());
            orders.push(order);
        }
        assert_ne!(orders[0], orders[1]);
    }

    #[test]
    fn a_batch_larger_than_the_set_is_the_set() {
        for batch_size in [100, usize::MAX] {
            let loaded = batches(LoaderSettings { batch_size, ..settings(1) }, 2);
            assert_eq!(
                loaded.iter().map(|(id, batch)| (id.epoch, batch.len())).collect::<Vec<_>>(),
                [(0, 43), (1, 43)]
            );
        }
    }

    #[test]
    fn the_seed_decides_the_order() {
        let other = LoaderSettings { seed: 8, ..settings(0) };
        assert!(batches(settings(0), 6) == batches(settings(0), 6));
        assert!(batches(settings(0), 6) != batches(other, 6));
        let plain = batches(LoaderSettings { shuffle: false, ..settings(2) }, 1);
        assert_eq!(plain[0].1, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn dropping_early_joins_the_workers() {
        for taken in [0, 1, 5] {
            let shared = Arc::new(Counting::default());
            let mut loader = Loader::observed(things(43), settings(4), Arc::clone(&shared)).unwrap();
            for _ in 0..taken {
                loader.next_batch().unwrap();
            }
            drop(loader);
            let (started, ended) = (shared.started.load(Ordering::Relaxed), shared.ended.load(Ordering::Relaxed));
            assert_eq!((started, ended), (4, 4));
        }
    }

    #[test]
    fn a_batch_outlives_its_loader() {
        let mut loader = Loader::new(things(43), settings(2)).unwrap();
        let batch = loader.next_batch().unwrap();
        drop(loader);
        assert_eq!(batch.len(), 8);
    }

    #[test]
    fn buffers_come_back() {
        let mut loader = Loader::new(things(8), settings(0)).unwrap();
        let first = loader.next_batch().unwrap().as_ptr();
        assert_eq!(loader.next_batch().unwrap().as_ptr(), first);
    }

    #[test]
    fn the_queue_fills_to_its_capacity_and_no_further() {
        let mut loader = Loader::new(things(43), settings(2)).unwrap();
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
    fn a_bad_item_spoils_only_its_batch() {
        for workers in [0, 2] {
            let order = LoaderSettings { shuffle: false, ..settings(workers) };
            let mut loader = Loader::new(Positions { items: 43, bad: Some(9) }, order).unwrap();
            loader.next_batch().unwrap();
            let error = loader.next_batch().unwrap_err();
            assert_eq!(error.to_string(), "batch 1 of epoch 0 cannot be assembled");
            assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "thing 1 is bad");
            assert_eq!(loader.next_batch().unwrap()[0], 16);
        }
    }

    #[test]
    fn senseless_settings_are_refused() {
        let refused = |items, settings| Loader::new(things(items), settings).unwrap_err().to_string();
        assert_eq!(refused(0, settings(0)), "there are no things to load");
        assert!(refused(1 << 33, settings(0)).starts_with("there are 8589934592 things; at most"));
        let no_size = LoaderSettings { batch_size: 0, ..settings(0) };
        assert_eq!(refused(1, no_size), "batch_size is 0; it must be at least 1");
        let no_prefetch = LoaderSettings { prefetch: 0, ..settings(2) };
        assert_eq!(refused(1, no_prefetch), "prefetch is 0; it must be at least 1");
    }

    #[test]
    fn a_delay_is_a_part_of_the_work_and_changes_no_batch() {
        let counting = Arc::new(Counting::default());
        let pause = std::time::Duration::from_millis(20);
        let delay = Delay { pauses: vec![Pause::Time(pause)], ..Delay::default() };
        let delayed = LoaderSettings { delay, ..settings(0) };
        let mut loader = Loader::observed(things(43), delayed, Arc::clone(&counting)).unwrap();
        let begin = std::time::Instant::now();
        let first = loader.next_batch().unwrap().clone();
        // Asleep at least this long; how much longer depends on the machine.
        assert!(begin.elapsed() >= pause);
        assert_eq!(counting.stages.load(Ordering::Relaxed), 2);
        assert_eq!(first, batches(settings(0), 1)[0].1);
    }

    #[derive(Default)]
    struct Counting {
        started: AtomicU64,
        ended: AtomicU64,
        batches: AtomicU64,
        stages: AtomicU64,
        names: Mutex<Vec<String>>,
    }

    impl LoaderObserver for Counting {
        fn worker(&self, _worker: usize, work: &mut dyn FnMut()) {
            self.names.lock().unwrap().extend(std::thread::current().name().map(str::to_owned));
            self.started.fetch_add(1, Ordering::Relaxed);
            work();
            self.ended.fetch_add(1, Ordering::Relaxed);
        }

        fn batch(&self, batch: BatchId, work: &mut dyn FnMut()) {
            assert!(batch.index < 6);
            work();
            self.batches.fetch_add(1, Ordering::Relaxed);
        }

        fn stage(&self, stage: Stage, work: &mut dyn FnMut()) {
            assert_eq!(stage, Stage::Assemble);
            work();
            self.stages.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_observer_sees_each_worker_batch_and_stage() {
        let counting = Arc::new(Counting::default());
        let mut loader = Loader::observed(things(43), settings(2), Arc::clone(&counting)).unwrap();
        for _ in 0..10 {
            loader.next_batch().unwrap();
        }
        drop(loader);
        assert_eq!(counting.started.load(Ordering::Relaxed), 2);
        assert_eq!(counting.ended.load(Ordering::Relaxed), 2);
        let batches = counting.batches.load(Ordering::Relaxed);
        assert!((10..=16).contains(&batches));
        assert_eq!(counting.stages.load(Ordering::Relaxed), batches);
        let mut names = counting.names.lock().unwrap().clone();
        names.sort();
        assert_eq!(names, ["loader 0", "loader 1"]);
    }

    #[test]
    fn without_workers_only_the_stages_are_seen() {
        let counting = Arc::new(Counting::default());
        let mut loader = Loader::observed(things(43), settings(0), Arc::clone(&counting)).unwrap();
        loader.next_batch().unwrap();
        let seen = [&counting.started, &counting.batches, &counting.stages].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(seen, [0, 0, 1]);
    }

    struct Refusing;

    impl LoaderObserver for Refusing {
        fn batch(&self, batch: BatchId, work: &mut dyn FnMut()) {
            assert!(batch.index < 2, "a hook that panics");
            work();
        }
    }

    #[test]
    fn a_panicking_hook_is_an_error_for_the_consumer() {
        let mut loader = Loader::observed(things(43), settings(2), Arc::new(Refusing)).unwrap();
        loader.next_batch().unwrap();
        loader.next_batch().unwrap();
        assert!(matches!(loader.next_batch(), Err(LoaderError::WorkerStopped { worker: 0 })));
        assert!(matches!(loader.next_batch(), Err(LoaderError::WorkerStopped { worker: 1 })));
    }
}
