//! What is to go wrong, where and when.

use clap::ValueEnum;

use crate::loading::{Delay, Pause, UsualStep};

/// The one rank of a training that is not one of several: its number, and how many there are.
pub(crate) const ALONE: (u32, u32) = (0, 1);

/// Help for `--inject`.
pub(crate) const HELP: &str = "\
Make something go wrong, to see whether it is found. May be given several times. CAUSE is one of:
  stall:TIME             a pause, such as a garbage collection
  faults:SIZE            fresh memory from the system, every page touched and given back
  slow-loader:TIME       every batch takes so much longer to make
  contention[:THREADS]   threads that compute and publish nothing; three a core if not said
  leak:SIZE              memory that is never given back
  denormals[:COUNT]      multiplications of subnormal numbers, counted; 400000 if not said
  hang                   waits for ever, as for a lock that nobody gives back
  skip-all-reduce        leaves out the exchange of gradients in which the other ranks wait
All but slow-loader and contention befall every step, or those named behind an @:
  every=N                steps N, 2N, ...
  at=N                   only step N, from 1
  from=N                 none before step N
and behind a comma:
  in=PLACE               where a stall or hang is: forward (if not said), backward, optimizer, data-wait, step (no phase)
                         or between
  mark=NAME              the mark at a stall's end, \"injected stall\" if not said; none for no mark
  rank=N                 only on this rank, from 0; for every cause
A TIME is 130ms, or 6x: six times the training's usual step, measured over its first ten steps, after which it begins.
Examples: stall:130ms@every=40   stall:20x@every=40   stall:80ms@every=50,in=between,mark=checkpoint   faults:256MiB@every=37
          slow-loader:6x   contention:6   leak:1MiB   denormals@every=3
          stall:2x@rank=1   slow-loader:6x@rank=1   hang@at=100,rank=1";

/// Something that is to go wrong, as `--inject` describes it.
///
/// ```
/// use gnntop_workloads::inject::{Cause, Injection};
///
/// let leak: Injection = "leak:1MiB@every=10".parse()?;
/// assert_eq!(leak.cause, Cause::Leak { bytes: 1 << 20 });
/// assert!(leak.when.is_due(10) && !leak.when.is_due(11));
/// assert_eq!("leak:1".parse::<Injection>().unwrap_err(), "give a size with its unit, as 256MiB: 1");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// How it was written.
    pub words: String,
    /// What goes wrong.
    pub cause: Cause,
    /// In which steps, where the cause is one of steps.
    pub when: When,
    /// On which rank; on all where `None`.
    pub rank: Option<u32>,
}

impl Injection {
    /// Whether the rank with this number is meant.
    #[must_use]
    pub fn is_for(&self, rank: u32) -> bool {
        self.rank.is_none_or(|meant| meant == rank)
    }
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The training thread sleeps.
    Stall {
        /// For how long.
        pause: Pause,
        /// To what the time is charged.
        charged_to: ChargedTo,
        /// The mark at its end; none for a pause that the program does not know of.
        mark: Option<String>,
    },
    /// Pages are taken from the system, touched and given back.
    Faults {
        /// How much at once.
        bytes: usize,
    },
    /// The loader sleeps for every batch.
    SlowLoader {
        /// For how long.
        delay: Pause,
    },
    /// Threads compute that have nothing to do with the training.
    Contention {
        /// How many; three a core if it is not said.
        threads: Option<usize>,
    },
    /// Memory is taken and kept.
    Leak {
        /// How much each time.
        bytes: usize,
    },
    /// Subnormal numbers are multiplied.
    Denormals {
        /// How many.
        count: u32,
    },
    /// The training thread waits for what never comes.
    Hang {
        /// In what.
        charged_to: ChargedTo,
    },
    /// The gradients of a step are not exchanged, while other ranks wait for that.
    SkipAllReduce,
}

/// Which steps are meant. Steps are counted from 1, through all epochs, as gnntop shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Multiples of this, at least 1.
    pub every: u64,
    /// None before this one.
    pub from: u64,
    /// Only this one.
    pub at: Option<u64>,
}

impl Default for When {
    fn default() -> Self {
        Self { every: 1, from: 1, at: None }
    }
}

impl When {
    /// Whether this step is meant.
    #[must_use]
    pub fn is_due(&self, step: u64) -> bool {
        self.at.is_none_or(|at| at == step) && step >= self.from && step.is_multiple_of(self.every)
    }
}

/// To what the time of a stall or hang is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ChargedTo {
    /// The phase of this name.
    #[default]
    Forward,
    /// The phase of this name.
    Backward,
    /// The phase of this name.
    Optimizer,
    /// The phase of this name.
    DataWait,
    /// The step, in no phase.
    Step,
    /// The time between this step and the next.
    Between,
}

/// By how much longer a batch takes on this rank with all of these: what its loader is told.
pub(crate) fn loader_delay(injections: &[Injection], rank: u32, usual_step: &UsualStep) -> Delay {
    let delay = |injection: &Injection| match injection.cause {
        Cause::SlowLoader { delay } => Some(delay),
        _ => None,
    };
    let pauses = injections.iter().filter(|injection| injection.is_for(rank)).filter_map(delay).collect();
    Delay { pauses, usual_step: usual_step.clone() }
}

/// Whether something of this depends on how long the training's steps usually take.
pub(super) fn is_in_steps(injection: &Injection) -> bool {
    matches!(
        injection.cause,
        Cause::Stall { pause: Pause::Steps(_), .. } | Cause::SlowLoader { delay: Pause::Steps(_) }
    )
}
