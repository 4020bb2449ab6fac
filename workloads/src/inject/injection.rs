//! What goes wrong, where and when.

use clap::ValueEnum;

use gnntop_data::loading::{Delay, Pause, UsualStep};

/// The only rank of a run without ranks: its number, and how many there are.
pub(crate) const ALONE: (u32, u32) = (0, 1);

/// Help for `--inject`.
pub(crate) const HELP: &str = "\
Make something go wrong, to see whether gnntop finds it. May be given several times. CAUSE is one of:
  stall:TIME             a pause, such as a garbage collection
  faults:SIZE            takes fresh memory from the system, touches every page and frees it
  slow-loader:TIME       each batch takes TIME longer to make
  contention[:THREADS]   threads that compute and publish nothing; default: three per core
  leak:SIZE              memory that is never freed
  denormals[:COUNT]      multiplications of subnormal numbers, counted; default: 400000
  hang                   waits forever, like a lock that is never released
  skip-all-reduce        skips the exchange of gradients, in which the other ranks wait
Slow-loader and contention last for the whole run. The others apply to every step, or to the steps given after @:
  every=N                steps N, 2N, ...
  at=N                   only step N, from 1
  from=N                 no step before N
More keys after @, separated by commas:
  in=PLACE               where to stall or hang: forward (default), backward, optimizer, data-wait, step (no phase)
                         or between (two steps)
  mark=NAME              the mark at a stall's end, by default \"injected stall\"; none for no mark
  rank=N                 only on this rank, from 0; for every cause
TIME is 130ms, or 6x: six times the run's usual step. That is measured over the first ten steps; the cause starts then.
Examples: stall:130ms@every=40   stall:20x@every=40   stall:80ms@every=50,in=between,mark=checkpoint   faults:256MiB@every=37
          slow-loader:6x   contention:6   leak:1MiB   denormals@every=3
          stall:2x@rank=1   slow-loader:6x@rank=1   hang@at=100,rank=1";

/// Something that goes wrong on purpose, as `--inject` describes it.
///
/// ```
/// use gnntop_workloads::inject::{Cause, Injection};
///
/// let leak: Injection = "leak:1MiB@every=10".parse()?;
/// assert_eq!(leak.cause, Cause::Leak { bytes: 1 << 20 });
/// assert!(leak.when.is_due(10) && !leak.when.is_due(11));
/// assert_eq!("leak:1".parse::<Injection>().unwrap_err().to_string(), "expected a size with a unit (256MiB), not 1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// How it was written.
    pub words: String,
    /// What goes wrong.
    pub cause: Cause,
    /// In which steps, for causes that act in steps.
    pub when: When,
    /// On which rank; `None` for all.
    pub rank: Option<u32>,
}

impl Injection {
    /// Whether this applies to the rank with this number.
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
        /// What the time is charged to.
        charged_to: ChargedTo,
        /// The mark at its end; `None` for a pause that the program does not know about.
        mark: Option<String>,
    },
    /// Pages are taken from the system, touched and freed.
    Faults {
        /// How much at once.
        bytes: usize,
    },
    /// The loader sleeps in every batch.
    SlowLoader {
        /// For how long.
        delay: Pause,
    },
    /// Threads compute that have nothing to do with the training loop.
    Contention {
        /// How many; three per core by default.
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
    /// The training thread waits for something that never comes.
    Hang {
        /// What the time is charged to.
        charged_to: ChargedTo,
    },
    /// The gradients of a step are not exchanged, while other ranks wait for that.
    SkipAllReduce,
}

/// Which steps an injection applies to. Steps are counted from 1, through all epochs, as gnntop shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Multiples of this, at least 1.
    pub every: u64,
    /// No step before this one.
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
    /// Whether the injection applies to this step.
    #[must_use]
    pub fn is_due(&self, step: u64) -> bool {
        self.at.is_none_or(|at| at == step) && step >= self.from && step.is_multiple_of(self.every)
    }
}

/// What the time of a stall or hang is charged to.
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

/// How much longer a batch takes on this rank with all of these injections, for its loader.
pub(crate) fn loader_delay(injections: &[Injection], rank: u32, usual_step: &UsualStep) -> Delay {
    let delay = |injection: &Injection| match injection.cause {
        Cause::SlowLoader { delay } => Some(delay),
        _ => None,
    };
    let pauses = injections.iter().filter(|injection| injection.is_for(rank)).filter_map(delay).collect();
    Delay { pauses, usual_step: usual_step.clone() }
}

/// Whether the injection depends on the usual length of a step.
pub(super) fn is_in_steps(injection: &Injection) -> bool {
    matches!(
        injection.cause,
        Cause::Stall { pause: Pause::Steps(_), .. } | Cause::SlowLoader { delay: Pause::Steps(_) }
    )
}
