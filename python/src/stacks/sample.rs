//! The thread that samples the training thread's stack a number of times a second, and counts samples by phase and path.
//!
//! Each sample is at a random time within its interval, so that a step whose length is a multiple of the interval is not
//! sampled at the same place again and again.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use gnntop_probe::{Fact, NameKind, NameRef, Sampling, TrackRole, after, intern};

use super::frames::{self, Chain, Code, PythonProcess, Raw, format_frame, is_ours};
use super::gil::InterpreterLock;
use super::memory::Address;
use super::paths::StackPaths;
use crate::overdue::{self, CurrentPhase};
use crate::session::{self, Status};
use crate::{names, thread as own_thread};

/// The track of the samples.
const TRACK: &str = "stacks of train, sampled";
/// Stands for time outside all phases.
const GAP: &str = "gap";
/// Frames reported of a stack; of a deeper one, the outermost and the innermost.
const OUTERMOST: usize = 16;
const INNERMOST: usize = 48;
const LEFT_OUT: &str = "(frames left out)";
/// Stands for the frames of a phase that was over before they were read.
const LEFT: &str = "(over before it was read)";
/// Most frames whose text is cached; beyond this, the cache is cleared.
const MAX_TEXTS: usize = 4096;
/// Interval between reports of the figures.
const FIGURES_INTERVAL: Duration = Duration::from_secs(1);

/// How often a stack that changes meanwhile is read.
const TRIES: usize = 4;

/// A frame whose text is known.
type KnownFrame = (Raw, Code);

/// Samples the stacks of a thread.
pub(super) struct Sampler {
    python: PythonProcess,
    /// The thread's state in Python, and its id.
    thread: (Address, libc::pid_t),
    lock: Option<InterpreterLock>,
    session: u32,
    a_second: u32,
    paths: StackPaths,
    /// Text of each frame; `None` for ours.
    texts: HashMap<KnownFrame, Option<Box<str>>>,
    /// Code of the outermost frame, which hardly ever changes: a stack with another one is most likely truncated.
    outermost: Option<Address>,
    taken: u64,
    /// Those in which the thread waited for the interpreter lock.
    held: u64,
    unread: u64,
    /// Why the last one could not be read.
    why: &'static str,
    random: Random,
}

impl Sampler {
    /// Samples the thread with this state while this session is open.
    pub(super) fn new(python: PythonProcess, thread: (Address, libc::pid_t), session: u32, a_second: u32) -> Self {
        let lock = InterpreterLock::find(&python.process, thread.0);
        let a_second = a_second.clamp(1, Sampling::MAX_PER_SECOND);
        let random = Random(after::ticks() | 1);
        let (paths, texts) = (StackPaths::new(), HashMap::new());
        let outermost = None;
        Self {
            python,
            thread,
            lock,
            session,
            a_second,
            paths,
            texts,
            outermost,
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
        if self.texts.len() >= MAX_TEXTS {
            self.texts.clear();
        }
        let read = self.python.process.prepare().and_then(|()| {
            let holder = self.lock.and_then(|lock| lock.holder(&self.python, self.thread));
            self.read().map(|(phase, frames)| (phase, frames, holder))
        });
        let (phase, frames, holder) = match read {
            Ok(read) => read,
            Err(why) => {
                self.unread += 1;
                self.why = why;
                return;
            }
        };
        let frames = frames.iter().rev().filter_map(|frame| match frame {
            Some(frame) => self.texts.get(frame)?.as_deref(),
            None => Some(LEFT_OUT),
        });
        let frames: Vec<&str> = frames.collect();
        let left = frames.is_empty().then_some(LEFT);
        let path = std::iter::once(phase_name(phase)).chain(left).chain(frames).chain(holder.as_deref());
        let (name, count) = self.paths.count(path);
        after::stack_sample(name, after::ticks(), count, false);
        self.taken += 1;
        self.held += u64::from(holder.is_some());
        if let Some((name, count)) = self.paths.repeat() {
            after::stack_sample(name, after::ticks(), count, true);
        }
    }

    /// The thread's phase and its frames, innermost first, whose texts are then in `texts`; `None` stands for those that are
    /// left out. There are no frames if it has left the phase meanwhile: they would belong to another one.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn read(&mut self) -> Result<(CurrentPhase, Vec<Option<KnownFrame>>), &'static str> {
        // It is inconsistent for some nanoseconds only.
        let phase =
            (0..TRIES).find_map(|_| overdue::current()).ok_or("the phase changed each time it was asked for")?;
        let mut found: Result<(Chain, Vec<Option<KnownFrame>>), _> = Err(frames::UNREADABLE);
        for _ in 0..TRIES {
            let chain = frames::read_running(&self.python, self.thread.0);
            if overdue::current() != Some(phase) {
                return Ok((phase, found.map(|(_, frames)| frames).unwrap_or_default()));
            }
            let read = chain.and_then(|chain| self.identify(&chain).map(|frames| (chain, frames)));
            found = match (read, found) {
                // Of a stack that changed meanwhile fewer frames can be read.
                (Ok(read), Ok(earlier)) if read.1.len() < earlier.1.len() => Ok(earlier),
                (Err(_), Ok(earlier)) => Ok(earlier),
                (read, _) => read,
            };
            if found.as_ref().is_ok_and(|(chain, _)| !chain.is_whole || chain.outermost() == self.outermost) {
                break;
            }
        }
        let (chain, frames) = found?;
        if chain.is_whole {
            self.outermost = chain.outermost();
        }
        Ok((phase, frames))
    }

    /// The frames to report, with their code. One that cannot be read is missing.
    ///
    /// # Errors
    /// None of them can be read.
    fn identify(&mut self, chain: &Chain) -> Result<Vec<Option<KnownFrame>>, &'static str> {
        let (inner, outer) = chain.ends(INNERMOST, OUTERMOST);
        let mut frames = self.identify_frames(inner);
        if chain.frames.len() > inner.len() + outer.len() {
            frames.push(None);
        }
        frames.extend(self.identify_frames(outer));
        if frames.iter().all(Option::is_none) { Err(frames::UNREADABLE) } else { Ok(frames) }
    }

    fn identify_frames(&mut self, chain: &[Raw]) -> Vec<Option<KnownFrame>> {
        let mut frames = Vec::new();
        for (raw, code) in chain.iter().zip(frames::codes(&self.python, chain)) {
            let Some(code) = code else { continue };
            let frame = (*raw, code);
            if !self.texts.contains_key(&frame) {
                let Some(decoded) = frames::decode(&self.python, *raw, code) else { continue };
                self.texts.insert(frame, (!is_ours(&decoded)).then(|| format_frame(&decoded).into()));
            }
            frames.push(Some(frame));
        }
        frames
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
    use super::super::{layout, memory::Process};
    use super::*;

    #[test]
    fn identify_fails_where_no_frame_can_be_read() {
        let python = PythonProcess { layout: layout::V3_11, process: Process::own().unwrap() };
        let mut sampler = Sampler::new(python, (0, 0), 0, 20);
        for len in [1, 500] {
            let chain = Chain { frames: vec![(4096, 0); len], is_whole: true };
            assert_eq!(sampler.identify(&chain), Err(frames::UNREADABLE), "{len}");
        }
    }

    #[test]
    fn samples_are_taken_at_random_within_their_interval() {
        let (mut random, interval) = (Random(12345), Duration::from_millis(50));
        let parts: Vec<u128> = (0..2000).map(|_| random.random_within(interval).as_millis()).collect();
        assert!((0..50).all(|ms| parts.contains(&ms)) && parts.iter().all(|ms| *ms < 50));
    }
}
