//! Starts the ranks of a training, each on a thread with its own thread pool and its own session, and passes their news
//! to the single observer.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use candle_core::Device;
use gnntop_probe::{Name, Place, Reported, TrackRole, Warning, span};

use super::hosts::{Host, Hosts};
use super::refused::this_process_is;
use super::{DeviceChoice, Engine, RankOptions, RunOptions, Settings, alike, gpus};
#[cfg(feature = "mpi")]
use crate::parallel::mpi;
use crate::parallel::{Collective, CollectiveError};
use crate::train::{Observer, StepReport, Summary, TrainError};
use gnntop_nn::device::DeviceError;

/// The ranks agree on whether to continue.
static BROADCAST: Name = Name::reported(Reported::Broadcast);
/// How often the observer is asked whether to stop while no rank has news.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// A training on several ranks.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The sessions' name.
    pub name: &'a str,
    /// How many ranks, with how many threads.
    pub ranks: &'a RankOptions,
    /// What every training has.
    pub run: &'a RunOptions,
    /// Stages of a pipeline that the ranks form, 1 without one. Rank `r` computes stage `r % stages` of copy `r / stages`.
    pub stages: usize,
    /// What must be the same on every rank, besides its options.
    pub settings: &'a Settings,
}

/// One rank of a training, as its body sees it.
pub struct Rank {
    group: Arc<dyn Collective>,
    place: Place,
    is_first_here: bool,
    /// The common options, with the device of this rank.
    run: RunOptions,
    wants_stop: Arc<AtomicBool>,
}

impl Rank {
    /// The way to the other ranks.
    #[must_use]
    pub fn collective(&self) -> &dyn Collective {
        &*self.group
    }

    /// Its place among them.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Opens the device that this rank trains on: with NCCL its own GPU, else the requested one.
    ///
    /// # Errors
    /// It cannot be used.
    pub(crate) fn open_device(&self) -> Result<Device, DeviceError> {
        self.run.open_device()
    }

    /// Starts to publish the device's time and memory on the calling thread's track, if it is a GPU.
    ///
    /// # Errors
    /// The driver refuses.
    pub(crate) fn observe(&self, device: &Device) -> candle_core::Result<()> {
        self.run.observe(device)
    }

    /// Whether the observer wants the training to stop. Every rank asks at the same point of the same step and gets the
    /// same answer, so that none waits for one that has stopped.
    ///
    /// # Errors
    /// A rank is gone.
    pub fn agree_to_stop(&self) -> Result<bool, CollectiveError> {
        let _broadcast = span(&BROADCAST);
        let mut wish = [f32::from(self.wants_stop.load(Ordering::Relaxed))];
        self.group.broadcast(0, &mut wish)?;
        Ok(wish[0] != 0.0)
    }
}

/// News from a rank.
enum News {
    Line(String),
    Step(StepReport),
}

impl Launch<'_> {
    /// Runs `body` on every rank, and returns what rank 0 returns.
    ///
    /// # Errors
    /// That of the first rank that failed: the others end because of it.
    pub fn run<F>(&self, observer: &mut dyn Observer, body: F) -> Result<Summary, TrainError>
    where
        F: Fn(&Rank, &mut dyn Observer) -> Result<Summary, TrainError> + Sync,
    {
        let members = self.ranks.join(self.run.device)?;
        if let [only] = members.as_slice() {
            this_process_is(u32::try_from(only.rank()).unwrap_or(u32::MAX));
        }
        let wants_stop = Arc::new(AtomicBool::new(false));
        let (news, heard) = channel();
        let starts: Vec<_> = members.into_iter().map(|group| (warning(&*group, observer), group)).collect();
        let results = thread::scope(|scope| {
            let start = |(warning, group): (WarningHook, Arc<dyn Collective>)| {
                let (voice, body) = (Reporter::new(&*group, &news), &body);
                let wants_stop = Arc::clone(&wants_stop);
                thread::Builder::new()
                    .name(format!("rank {}", group.rank()))
                    .spawn_scoped(scope, move || self.on_rank(group, wants_stop, voice, warning, body))
            };
            let started: Vec<_> = starts.into_iter().map(start).collect();
            drop(news);
            listen(&heard, observer, &wants_stop);
            started.into_iter().map(|thread| thread.map(|thread| thread.join())).collect::<Vec<_>>()
        });
        if let Some(ranks) = Some(results.len()).filter(|ranks| *ranks > 1)
            && let Err(error) = self.run.join_recordings(ranks)
        {
            observer.report_line(&format!("the ranks' recordings stay separate files: {error}"));
        }
        let summary = first_failure(results)?;
        #[cfg(feature = "mpi")]
        if self.ranks.are_processes() {
            mpi::part();
        }
        Ok(summary)
    }

    /// Everything that ranks must have in common.
    fn alike(&self) -> Settings {
        let workload = ("workload".to_owned(), self.name.to_owned());
        let engine = ("--engine".to_owned(), format!("{:?}", self.ranks.engine()).to_lowercase());
        [workload, engine].into_iter().chain(self.run.given.iter().chain(self.settings).cloned()).collect()
    }

    /// The device that a rank trains on.
    fn device(&self, hosts: &Hosts) -> Result<DeviceChoice, TrainError> {
        let (Engine::Nccl, DeviceChoice::Cuda(first)) = (self.ranks.engine(), self.run.device) else {
            return Ok(self.run.device);
        };
        let shown = gpus::Shown { first, count: DeviceChoice::gpus()?, to_each_its_own: self.ranks.are_processes() };
        Ok(DeviceChoice::Cuda(shown.of_rank(hosts.number_here, hosts.ranks_here)?))
    }

    /// The rank's host and device and its place on the host; asks the others.
    fn place(&self, group: &dyn Collective, hosts: &Hosts, device: DeviceChoice) -> Result<Place, CollectiveError> {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (rank, ranks, stages) = (group.rank(), group.ranks(), self.stages.max(1));
        // A number that rank 0 draws, the same on all ranks.
        let run = group.gather(f64::from(random()))?[0] as u32;
        Ok(Place {
            run: format!("{}-{run:08x}", self.name),
            rank: number(rank),
            ranks: number(ranks),
            stage: number(rank % stages),
            stages: number(stages),
            copy: number(rank / stages),
            copies: number(ranks / stages),
            engine: group.engine(),
            kind: group.kind(),
            device: if device.is_cuda() { device.to_string() } else { "CPU".to_owned() },
            threads: number(self.ranks.threads_per_rank.unwrap_or(hosts.threads)),
            host_ranks: number(hosts.ranks_here),
            host_cores: number(hosts.cores_here),
            clock: hosts.clock,
            attempt: None,
        })
    }

    /// A rank from start to end. If it fails, the others learn of it, so that none waits for it.
    fn on_rank<F>(
        &self,
        group: Arc<dyn Collective>,
        wants_stop: Arc<AtomicBool>,
        mut voice: Reporter,
        warning: WarningHook,
        body: &F,
    ) -> Result<Summary, TrainError>
    where
        F: Fn(&Rank, &mut dyn Observer) -> Result<Summary, TrainError> + Sync,
    {
        let live = || {
            alike::check(&*group, &self.alike())?;
            let hosts = Hosts::new(&*group, &Host::here(), gnntop_probe::monotonic_ns)?;
            let run = RunOptions { device: self.device(&hosts)?, ..self.run.clone() };
            let place = self.place(&*group, &hosts, run.device)?;
            voice.report_line(&describe(&place));
            let is_first_here = hosts.number_here == 0;
            let rank = Rank { group: Arc::clone(&group), place, is_first_here, run, wants_stop };
            let pool = self.pool(&rank)?;
            pool.install(|| {
                let session = self.run.start_rank(self.name, rank.place.clone(), rank.is_first_here, warning);
                let _track = session.track("train", TrackRole::Training);
                body(&rank, &mut voice)
            })
        };
        match catch_unwind(AssertUnwindSafe(live)) {
            Ok(Ok(summary)) => Ok(summary),
            Ok(Err(error)) => {
                group.leave(&format!("has failed: {}", error.with_causes()));
                Err(error)
            }
            Err(panic) => {
                let message = words_of(&*panic);
                group.leave(&format!("has panicked: {}", message.lines().next().unwrap_or_default()));
                Err(TrainError::Panicked { message })
            }
        }
    }

    /// The threads that a rank computes with.
    fn pool(&self, rank: &Rank) -> Result<rayon::ThreadPool, TrainError> {
        let number = rank.place.rank;
        let name = move |thread: usize| format!("rank {number} thread {thread}");
        let builder = rayon::ThreadPoolBuilder::new().num_threads(rank.place.threads as usize).thread_name(name);
        builder.build().map_err(|error| TrainError::Threads { rank: number, message: error.to_string() })
    }
}

type WarningHook = Box<dyn FnMut(&Warning) + Send>;

/// A panic's message.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

/// The ranks publish into one folder, so a problem with it is reported once.
fn warning(group: &dyn Collective, observer: &mut dyn Observer) -> WarningHook {
    if group.rank() == 0 { observer.warning() } else { Box::new(|_| ()) }
}

fn describe(place: &Place) -> String {
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    let Place { ranks, threads, host_ranks, host_cores, .. } = *place;
    let here = if host_ranks == ranks { String::new() } else { format!(", {host_ranks} of them") };
    let over = if host_ranks * threads > host_cores { ": oversubscribed, ranks take turns" } else { "" };
    format!(
        "{ranks} ranks of {threads} thread{}{here} on {host_cores} core{}{over}; {}",
        plural(threads),
        plural(host_cores),
        place.engine
    )
}

fn random() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}

/// Passes on the ranks' news until the last rank is done.
fn listen(heard: &Receiver<News>, observer: &mut dyn Observer, wants_stop: &AtomicBool) {
    loop {
        match heard.recv_timeout(ASK_INTERVAL) {
            Ok(News::Line(line)) => observer.report_line(&line),
            Ok(News::Step(report)) => observer.step(&report),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if observer.should_stop() {
            wants_stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The observer of a rank's training: rank 0 speaks for all. The ranks agree among themselves on when to stop.
struct Reporter {
    news: Option<Sender<News>>,
}

impl Reporter {
    fn new(group: &dyn Collective, news: &Sender<News>) -> Self {
        Self { news: (group.rank() == 0).then(|| news.clone()) }
    }

    fn send(&self, news: News) {
        if let Some(sender) = &self.news {
            // No one listens only once all is over.
            let _ = sender.send(news);
        }
    }
}

impl Observer for Reporter {
    fn report_line(&mut self, line: &str) {
        self.send(News::Line(line.to_owned()));
    }

    fn step(&mut self, report: &StepReport) {
        self.send(News::Step(*report));
    }
}

/// Rank 0's summary, or the failure that caused the others.
fn first_failure(
    results: Vec<std::io::Result<thread::Result<Result<Summary, TrainError>>>>,
) -> Result<Summary, TrainError> {
    let mut summary = Summary::default();
    let mut follows = None;
    for (rank, result) in results.into_iter().enumerate() {
        match result {
            Err(error) => return Err(TrainError::Threads { rank: rank as u32, message: error.to_string() }),
            Ok(Err(panic)) => resume_unwind(panic),
            Ok(Ok(Ok(own))) if rank == 0 => summary = own,
            Ok(Ok(Ok(_))) => (),
            // It only reports that another rank is gone.
            Ok(Ok(Err(error @ TrainError::Ranks(CollectiveError::Gone { .. })))) => follows = follows.or(Some(error)),
            // It names the ranks itself.
            Ok(Ok(Err(error @ TrainError::Ranks(_)))) => return Err(error),
            Ok(Ok(Err(error))) => return Err(TrainError::Rank { rank: rank as u32, error: Box::new(error) }),
        }
    }
    follows.map_or(Ok(summary), Err)
}

#[cfg(test)]
mod tests;
