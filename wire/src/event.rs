//! The contents of a stream: definitions, and events of a track.
//!
//! All times are nanoseconds of the publisher's `CLOCK_MONOTONIC`; [`Anchor`](crate::Anchor)s relate them to wall-clock
//! and boot time.

use crate::device_span::DeviceSpan;
use crate::fact::Fact;
use crate::ids::{NameId, SignalId, StepId, TrackId};
use crate::name::NameKind;
use crate::quantity::AnyMetric;
use crate::signal::SignalSource;

/// One thing that happened on a track.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A closed interval with a name.
    Span(Span),
    /// A finished step.
    Step(Step),
    /// A new value of a counter.
    Counter(Counter),
    /// An instant with a text: epoch start, garbage collection, checkpoint.
    Mark(Mark),
    /// A span that has been open on the track for a while and still is.
    Open(Open),
    /// A sensor reading.
    Sample(Sample),
    /// A signal that cannot be read (any more), with the reason.
    Absent(Absent),
    /// One allocation or release at or above the publisher's threshold.
    Allocation(Allocation),
    /// A phase's memory totals so far.
    PhaseMemory(PhaseMemory),
    /// A span or step by a device's own clock.
    DeviceSpan(DeviceSpan),
    /// A frame of a stack that was read because a phase took too long.
    StackFrame(StackFrame),
    /// A stack of those that are read many times a second.
    StackSample(StackSample),
    /// Another program that uses the CPU.
    Rival(Rival),
}

impl Event {
    /// When the event became known, in nanoseconds: the end of a span or step, the instant of other events.
    pub fn t_ns(&self) -> u64 {
        match self {
            Self::Span(e) => e.end_ns,
            Self::Step(e) => e.end_ns,
            Self::Counter(e) => e.t_ns,
            Self::Mark(e) => e.t_ns,
            Self::Open(e) => e.t_ns,
            Self::Sample(e) => e.t_ns,
            Self::Absent(e) => e.t_ns,
            Self::Allocation(e) => e.t_ns,
            Self::PhaseMemory(e) => e.t_ns,
            Self::DeviceSpan(e) => e.end_ns,
            Self::StackFrame(e) => e.t_ns,
            Self::StackSample(e) => e.t_ns,
            Self::Rival(e) => e.t_ns,
        }
    }
}

/// A named interval on a track. Its name's [`NameKind`] says whether it is a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its name.
    pub name: NameId,
    /// Start.
    pub start_ns: u64,
    /// End; not before the start.
    pub end_ns: u64,
    /// The step it belongs to, or [`StepId::NONE`].
    pub step: StepId,
}

/// A finished step, with what is known of its batch and of its cost to its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Ordinal in the session, from 1.
    pub step: StepId,
    /// Epoch, as the program counts.
    pub epoch: u64,
    /// Start.
    pub start_ns: u64,
    /// End; not before the start.
    pub end_ns: u64,
    /// The batch's size, as far as known.
    pub batch: BatchShape,
    /// The loss, if the program read it.
    pub loss: Option<f64>,
    /// The thread's page faults and switches since the last step that has them, if the system counts them. Steps of less
    /// than 250 µs share one count.
    pub usage: Option<ThreadUsage>,
    /// Whether a deep trace slowed it down. Percentiles leave such steps out.
    pub is_traced: bool,
}

/// The size of a step's batch; unknown parts are `None`, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchShape {
    /// Graphs in the batch.
    pub graphs: Option<u64>,
    /// Nodes in the batch.
    pub nodes: Option<u64>,
    /// Directed edges in the batch.
    pub edges: Option<u64>,
    /// Seed nodes of a sampled batch.
    pub seeds: Option<u64>,
}

/// A thread's page faults and context switches during one or more steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Times the thread gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from the thread.
    pub involuntary_switches: u64,
}

/// A counter's value at an instant, such as the depth of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// The counted quantity.
    pub name: NameId,
    /// When.
    pub t_ns: u64,
    /// The value.
    pub value: f64,
}

/// A named instant, with an optional value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mark {
    /// The mark's text.
    pub name: NameId,
    /// When.
    pub t_ns: u64,
    /// Its value, if it has one.
    pub value: Option<f64>,
    /// How long what ended at it took, if it is the end of something.
    pub took_ns: Option<u64>,
}

/// A frame of a stack, on a track of the role [`TrackRole::Stacks`]. The frames of one stack follow one another, innermost
/// first, and have the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrame {
    /// The frame, such as `collate (data.py:81)`.
    pub name: NameId,
    /// When the stack was read.
    pub t_ns: u64,
    /// Frames inside it; 0 for the innermost.
    pub depth: u32,
    /// The thread whose stack it is.
    pub thread: StackThread,
}

/// Whose stack was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StackThread {
    /// The training thread.
    #[default]
    Training = 0,
    /// The worker process that the training thread waited for.
    LoaderWorker = 1,
}

impl StackThread {
    /// The thread with this number in the stream.
    pub fn from_code(code: u8) -> Self {
        if code == Self::LoaderWorker as u8 { Self::LoaderWorker } else { Self::Training }
    }
}

/// How often one of the stacks that are read many times a second was seen, on a track of the role [`TrackRole::Samples`].
///
/// Counts are those of the whole session, and all of them are repeated in turn. So the newest part of a stream has them
/// all, even if its beginning was dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackSample {
    /// The stack: a name of the kind [`NameKind::Path`], or a [`NameKind::Sampling`], which counts something else.
    pub path: NameId,
    /// When.
    pub t_ns: u64,
    /// Of a path, samples of exactly this stack since the session began, this one included; of a sampling, that figure.
    pub count: u64,
    /// Whether there was no sample and the count is only repeated.
    pub is_repeat: bool,
}

/// Another program that uses much of the machine's CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rival {
    /// Its command.
    pub name: NameId,
    /// When this was measured.
    pub t_ns: u64,
    /// Its process; `None` if several of this command are counted together.
    pub pid: Option<u32>,
    /// Cores that it uses.
    pub cores: f64,
}

impl Rival {
    /// What it is, for people, given the text of its name.
    pub fn describe(&self, command: &str) -> String {
        match self.pid {
            Some(pid) => format!("other process: {command} (pid {pid})"),
            None => format!("other processes: {command}"),
        }
    }
}

/// The innermost span open on a track, so that a slow or hung phase is visible while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The open span's name.
    pub name: NameId,
    /// When it began.
    pub since_ns: u64,
    /// When the publisher looked.
    pub t_ns: u64,
    /// The step it belongs to, or [`StepId::NONE`].
    pub step: StepId,
}

/// One reading of a signal, in the signal's [`Unit`](crate::Unit); cumulative counters are raw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which signal.
    pub signal: SignalId,
    /// When this value was read.
    pub t_ns: u64,
    /// The raw value.
    pub value: i64,
}

/// A signal has no value from here on, until its next [`Sample`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Which signal.
    pub signal: SignalId,
    /// When this was found.
    pub t_ns: u64,
    /// Why, as text for people.
    pub reason: NameId,
}

/// One large allocation or release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The phase of the allocating thread, or [`NameId::NONE`].
    pub phase: NameId,
    /// When.
    pub t_ns: u64,
    /// Bytes taken; negative for a release.
    pub bytes: i64,
    /// Bytes live in the process after it.
    pub live_bytes: u64,
}

/// Cumulative memory totals of one phase over all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseMemory {
    /// The phase, or [`NameId::NONE`] for memory outside every phase.
    pub phase: NameId,
    /// When the totals were read.
    pub t_ns: u64,
    /// Bytes allocated in this phase since the start.
    pub allocated_bytes: u64,
    /// Allocations in this phase since the start.
    pub allocated_count: u64,
    /// Bytes released in this phase since the start.
    pub freed_bytes: u64,
    /// Releases in this phase since the start.
    pub freed_count: u64,
    /// Bytes live in the whole process when the totals were read.
    pub live_bytes: u64,
    /// Most bytes live in the whole process while any thread was in this phase.
    pub peak_bytes: u64,
}

/// What a track's thread is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TrackRole {
    /// No particular role.
    #[default]
    Other = 0,
    /// Runs the training loop: its steps and phases are the run's.
    Training = 1,
    /// Prepares batches.
    Loader = 2,
    /// Carries sensor readings.
    Sensors = 3,
    /// Carries [`DeviceSpan`]s: when a device did the work that the training thread submitted.
    Device = 4,
    /// The same, but the training thread waits for the device at both ends of every phase, so that the host's clock
    /// includes the device's time. This is a control experiment: it slows the training.
    SynchronisedDevice = 5,
    /// Carries [`StackFrame`]s: stacks that were read while a phase took too long.
    Stacks = 6,
    /// Carries [`StackSample`]s: stacks that are read many times a second.
    Samples = 7,
    /// Carries the collectives of one communicator, by the clock of the ranks' devices.
    Communicator = 8,
    /// Carries the kernels and copies of one stream of a device.
    Stream = 9,
    /// Carries the operators that a deep trace has recorded on one thread.
    Operators = 10,
}

impl TrackRole {
    /// The role with this number in the stream.
    pub fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Training,
            2 => Self::Loader,
            3 => Self::Sensors,
            4 => Self::Device,
            5 => Self::SynchronisedDevice,
            6 => Self::Stacks,
            7 => Self::Samples,
            8 => Self::Communicator,
            9 => Self::Stream,
            10 => Self::Operators,
            _ => Self::Other,
        }
    }

    /// Whether it shows when a device was busy.
    pub fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::SynchronisedDevice | Self::Stream)
    }
}

/// Defines an id. Repeated at the start of each segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Definition {
    /// A name.
    Name {
        /// Its id.
        id: NameId,
        /// What it is used for.
        kind: NameKind,
        /// The text.
        text: String,
    },
    /// A track.
    Track {
        /// Its id.
        id: TrackId,
        /// What its thread is for.
        role: TrackRole,
        /// The system's id of its thread, 0 where unknown.
        thread_id: u64,
        /// The track's name.
        text: String,
    },
    /// A signal.
    Signal {
        /// Its id.
        id: SignalId,
        /// What it measures.
        metric: AnyMetric,
        /// Where its readings come from.
        source: SignalSource,
        /// The device measured, empty for the machine or process itself.
        device: String,
    },
    /// A fact about the session.
    Fact(Fact),
}
