//! The thread that samples the training thread's stack a number of times a second, and counts samples by phase and path.
//!
//! Each sample is at a random time within its interval, so that a step whose length is a multiple of the interval is not
//! sampled at the same place again and again.

use std::thread;
use std::time::{Duration, Instant};

use gnntop_probe::{Fact, NameKind, NameRef, Sampling, TrackRole, after, intern};

use super::blocked;
use super::frames::PythonProcess;
use super::gil::InterpreterLock;
use super::paths::StackPaths;
use super::running::{ReadFrame, RunningThread};
use super::workers::{self, SampledWorkers};
use crate::memory::Address;
use crate::overdue::{self, CurrentPhase};
use crate::session::{self, Status};
use crate::{names, thread as own_thread};

/// The track of the samples.
const TRACK: &str = "stacks of train, sampled";
/// Stands for time outside all phases.
const GAP: &str = "gap";
/// Stands for the frames of a phase that was over before they were read.
const LEFT: &str = "(over before it was read)";
/// Interval between reports of the figures.
const FIGURES_INTERVAL: Duration = Duration::from_secs(1);

/// How often a phase that changes is asked for.
const TRIES: usize = 4;

/// A phase, its frames, where the holder of the lock is, and the system call.
type ReadSample = (CurrentPhase, Vec<ReadFrame>, Option<String>, Option<String>);

/// Samples the stacks of a thread.
pub(super) struct Sampler {
    thread: RunningThread,
    thread_id: libc::pid_t,
    workers: SampledWorkers,
    lock: Option<InterpreterLock>,
    session: u32,
    a_second: u32,
    paths: StackPaths,
    taken: u64,
    /// Those in which the thread waited for the interpreter lock.
    held: u64,
    unread: u64,
    /// Why the last one could not be read.
    why: &'static str,
    random: Random,
}

impl Sampler {
    /// Samples the thread with this state and this id while this session is open.
    pub(super) fn new(
        python: PythonProcess,
        (state, thread_id): (Address, libc::pid_t),
        session: u32,
        a_second: u32,
    ) -> Self {
        let lock = InterpreterLock::find(&python.process, state);
        let a_second = a_second.clamp(1, Sampling::MAX_PER_SECOND);
        let random = Random(after::ticks() | 1);
        Self {
            thread: RunningThread::new(python, state),
            thread_id,
            workers: SampledWorkers::default(),
            lock,
            session,
            a_second,
            paths: StackPaths::new(),
            taken: 0,
            held: 0,
            unread: 0,
            why: "",
            random,
        }
    }

    /// Samples until the session is closed.
    pub(super) fn run(mut self) {
        own_thread::with(false, |thread| thread.track(TRACK, TrackRole::Samples));
        let figures = Sampling::ALL.map(|figure| (intern(NameKind::Sampling(figure), figure.text()), figure));
        let interval = Duration::from_secs(1) / self.a_second;
        let (mut begin, mut last_figures) = (Instant::now(), Instant::now());
        self.publish_figures(&figures);
        loop {
            thread::sleep((begin + self.random.random_within(interval)).saturating_duration_since(Instant::now()));
            if session::state() != (Status::Publishing, self.session) {
                break;
            }
            self.sample();
            // If this thread was late, take one sample, not all that it missed.
            begin = (begin + interval).max(Instant::now().checked_sub(interval).unwrap_or(begin));
            if last_figures.elapsed() >= FIGURES_INTERVAL {
                last_figures = Instant::now();
                self.publish_figures(&figures);
            }
        }
        own_thread::with((), |thread| thread.track_end());
    }

    /// Takes a sample, and repeats the count of another path.
    fn sample(&mut self) {
        let (phase, frames, holder, call) = match self.read() {
            Ok(read) => read,
            Err(why) => {
                self.unread += 1;
                self.why = why;
                return;
            }
        };
        let frames = self.thread.texts(&frames);
        let python = &self.thread.python;
        let waits = call.is_some() && workers::are_waited_for(&frames);
        let of_worker = if waits { self.workers.read(python) } else { Vec::new() };
        let left = frames.is_empty().then_some(LEFT);
        // What it waits for is within its frames, unless these are not known.
        let call = call.filter(|_| left.is_none() && of_worker.is_empty());
        let innermost = of_worker.iter().chain(&holder).chain(&call).map(String::as_str);
        let path = std::iter::once(phase_name(phase)).chain(left).chain(frames).chain(innermost);
        let (name, count) = self.paths.count(path);
        after::stack_sample(name, after::ticks(), count, false);
        self.taken += 1;
        self.held += u64::from(holder.is_some());
        if let Some((name, count)) = self.paths.repeat() {
            after::stack_sample(name, after::ticks(), count, true);
        }
    }

    /// The thread's phase and its frames, innermost first; none if it has left the phase meanwhile. With them, where the thread is that
    /// holds the lock for which it waits, or the system call that it waits in.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn read(&mut self) -> Result<ReadSample, &'static str> {
        self.thread.python.process.prepare()?;
        let holder = self.lock.and_then(|lock| lock.holder(&self.thread.python, (self.thread.state, self.thread_id)));
        let call = blocked::frame(&self.thread.python.process, self.thread_id).filter(|_| holder.is_none());
        // It is inconsistent for some nanoseconds only.
        let phase =
            (0..TRIES).find_map(|_| overdue::current()).ok_or("the phase changed each time it was asked for")?;
        let frames = self.thread.read(|| overdue::current() != Some(phase))?;
        Ok((phase, frames, holder, call))
    }

    /// Reports the figures of the sampling itself.
    fn publish_figures(&self, figures: &[(NameRef, Sampling)]) {
        if self.taken == 0 && self.unread > 0 {
            let why = format!("none: {} could not be read: {}", self.unread, self.why);
            session::fact_at_once(Fact::NoStacks { why });
        }
        for (name, figure) in figures {
            let value = match figure {
                Sampling::Taken => self.taken,
                Sampling::Held => self.held,
                Sampling::Unread => self.unread,
                Sampling::CostUs => own_time_us(),
                Sampling::Rate => u64::from(self.a_second),
            };
            after::stack_sample(*name, after::ticks(), value, false);
        }
    }
}

/// Random numbers by xorshift; never 0.
struct Random(u64);

impl Random {
    /// A random part of the interval.
    fn random_within(&mut self, interval: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        interval.mul_f64((self.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// The name of the training thread's phase.
fn phase_name(phase: CurrentPhase) -> &'static str {
    names::get(phase.name).map_or(GAP, |named| &named.text)
}

/// CPU time of the calling thread, in microseconds.
fn own_time_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_at_random_within_their_interval() {
        let (mut random, interval) = (Random(12345), Duration::from_millis(50));
        let parts: Vec<u128> = (0..2000).map(|_| random.random_within(interval).as_millis()).collect();
        assert!((0..50).all(|ms| parts.contains(&ms)) && parts.iter().all(|ms| *ms < 50));
    }
}
