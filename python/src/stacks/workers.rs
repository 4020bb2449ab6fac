//! What the loader's workers do while the training thread waits for one of them: a sample of its stack continues in theirs.

use super::frames::PythonProcess;
use super::running::RunningThread;
use crate::memory::{Address, Process};
use crate::worker;

/// Most loader workers whose stacks are read at a time.
pub(super) const MAX_WORKERS: usize = 16;
/// Shown around the frames of a loader worker.
pub(super) const LOADER_WORKER: &str = "loader worker";
/// The frame in which the training thread asks its workers for a batch...
const ASKS: &str = "_MultiProcessingDataLoaderIter._try_get_data (";
/// ...a part of those in which it takes the memory of a batch over...
const TAKES: &str = "(torch/multiprocessing/reductions.py:";
/// ...and the one in which a worker makes it.
const FETCHES: &str = "DatasetFetcher.fetch (";

/// Whether the training thread, which waits and has these frames, waits for a worker to make a batch, and is not just taking it.
pub(super) fn are_waited_for(frames: &[&str]) -> bool {
    let asks = frames.iter().any(|frame| frame.starts_with(ASKS));
    asks && !frames.iter().any(|frame| frame.contains(TAKES))
}

/// The loader workers, each with what is known of its frames.
#[derive(Default)]
pub(super) struct SampledWorkers {
    all: Vec<RunningThread>,
    /// The place of the one that is read first, in turn.
    next: usize,
}

impl SampledWorkers {
    /// The frames of one that makes a batch, outermost first: `loader worker`, and those from the fetch inwards. Empty if there is none,
    /// or none can be read.
    pub(super) fn read(&mut self, own: &PythonProcess) -> Vec<String> {
        self.follow(own, &worker::python_workers());
        let count = self.all.len();
        for at in 0..count.min(MAX_WORKERS) {
            let worker = (self.next + at) % count;
            let frames = frames_of_fetch(&mut self.all[worker]);
            if !frames.is_empty() {
                self.next = worker + 1;
                return frames;
            }
        }
        Vec::new()
    }

    /// Forgets those that are gone, and adds those that are new.
    fn follow(&mut self, own: &PythonProcess, workers: &[(u32, Address)]) {
        let is = |known: &RunningThread, (process, state): &(u32, Address)| {
            u32::try_from(known.python.process.id()) == Ok(*process) && known.state == *state
        };
        self.all.retain(|known| workers.iter().any(|worker| is(known, worker)));
        for worker in workers {
            if !self.all.iter().any(|known| is(known, worker))
                && let Some(process) = Process::descendant(worker.0)
            {
                self.all.push(RunningThread::new(PythonProcess { process, ..own.clone() }, worker.1));
            }
        }
    }
}

fn frames_of_fetch(worker: &mut RunningThread) -> Vec<String> {
    let read = worker.python.process.prepare().and_then(|()| worker.read(|| false));
    let frames = worker.texts(&read.unwrap_or_default());
    let Some(fetch) = frames.iter().position(|frame| frame.contains(FETCHES)) else { return Vec::new() };
    std::iter::once(LOADER_WORKER).chain(frames[fetch..].iter().copied()).map(str::to_owned).collect()
}
