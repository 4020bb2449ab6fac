//! What findings are about, by names that are stable for programs and labels.

use serde::Serialize;
use strum::{EnumMessage, IntoStaticStr, VariantArray};

/// What a finding is about. Each kind is found by one check.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FindingKind {
    /// Steps that took much longer than their neighbours.
    #[strum(message = "spikes")]
    Spike,
    /// Steps that are short because their batches are.
    #[strum(message = "partial batches")]
    PartialBatch,
    /// Steps of several lengths that no batch size explains.
    #[strum(message = "kinds of step")]
    StepKinds,
    /// Batches so small that a step's fixed costs are a large part of it.
    #[strum(message = "tiny batches")]
    TinyBatch,
    /// The loop waits for data.
    #[strum(message = "waiting for data")]
    DataBound,
    /// What the loop waits for comes slowly from a disk or over the network.
    #[strum(message = "slow storage")]
    SlowStorage,
    /// Wall time outside every phase.
    #[strum(message = "time outside phases")]
    Gap,
    /// The phase that takes the largest part of the time, if no other finding is about it.
    #[strum(message = "longest phase")]
    Bound,
    /// Steps, or the time between them, that are long at a mark.
    #[strum(message = "stalls at events")]
    Stall,
    /// Steps that are slower after a checkpoint.
    #[strum(message = "slow after checkpoints")]
    AfterCheckpoint,
    /// Validation that takes a large part of the time.
    #[strum(message = "validation")]
    Validation,
    /// A phase in which the process waits and does not compute.
    #[strum(message = "waits in a phase")]
    IdlePhase,
    /// Another thread of the program holds the interpreter that the training thread wants.
    #[strum(message = "waits for the interpreter")]
    Interpreter,
    /// What is meant for debugging is on.
    #[strum(message = "debugging switches")]
    Debugging,
    /// Functions that are compiled again and again.
    #[strum(message = "recompilation")]
    Recompilation,
    /// Page faults, or memory being reclaimed, that cost time.
    #[strum(message = "page faults")]
    PageFaults,
    /// Arithmetic on denormal numbers.
    #[strum(message = "denormal numbers")]
    Denormals,
    /// The CPU was taken away.
    #[strum(message = "CPU contention")]
    Contention,
    /// Far fewer threads than free cores, or more than cores.
    #[strum(message = "number of threads")]
    Threads,
    /// A GPU that has nothing to do.
    #[strum(message = "GPU idle")]
    GpuIdle,
    /// Waits for the GPU in the middle of steps.
    #[strum(message = "waits for the GPU")]
    HostSync,
    /// A GPU that runs slower than it could.
    #[strum(message = "GPU throttled")]
    GpuThrottled,
    /// A CPU whose clock gets lower during the run.
    #[strum(message = "CPU clock falls")]
    CpuClock,
    /// A program far from its GPU, on another NUMA node.
    #[strum(message = "NUMA node")]
    Numa,
    /// Memory that keeps growing.
    #[strum(message = "memory grows")]
    MemoryGrowth,
    /// Memory taken from the system and given back in every step.
    #[strum(message = "allocation churn")]
    AllocationChurn,
    /// GPU memory that runs out, or is held and not used.
    #[strum(message = "GPU memory's allocator")]
    GpuAllocator,
    /// The first steps, which are slower.
    #[strum(message = "warm-up")]
    WarmUp,
    /// Steps that get slower and slower.
    #[strum(message = "getting slower")]
    Drift,
    /// The loss is no number, or has grown far beyond where it began.
    #[strum(message = "loss diverges")]
    Divergence,
    /// The run was ended and started again.
    #[strum(message = "restarts")]
    Restarts,
    /// Steps that have taken longer since some time.
    #[strum(message = "slower than before")]
    SlowerSince,
    /// Steps that are slow at regular times, minutes or hours apart.
    #[strum(message = "slow at regular times")]
    SlowRhythm,
    /// Time that moves from one phase to another as batches grow.
    #[strum(message = "phases shift with batch size")]
    PhaseShift,
    /// An energy number that is computed and not measured.
    #[strum(message = "modelled energy")]
    ModelledEnergy,
    /// An energy counter that does not change and then jumps, or follows another one exactly.
    #[strum(message = "doubtful energy counter")]
    DoubtfulEnergy,
    /// A sensor whose readings fall on the same part of every step.
    #[strum(message = "sampling aliased")]
    Aliasing,
    /// Stages of a pipeline with unequal work.
    #[strum(message = "unequal stages")]
    Imbalance,
    /// A run of several ranks that does not make progress.
    #[strum(message = "no progress")]
    Hang,
    /// A rank that is slower than its peers most of the time.
    #[strum(message = "straggler")]
    Straggler,
    /// A rank that waits for data longer than its peers.
    #[strum(message = "one rank starves")]
    StarvedRank,
    /// Ranks that take turns at having the largest batch, for which all others wait.
    #[strum(message = "uneven batches")]
    UnevenWork,
    /// Copies of the model that together do not cover the training set once an epoch.
    #[strum(message = "work not conserved")]
    WorkNotConserved,
    /// Moving data between ranks takes a large part of the time.
    #[strum(message = "communication-bound")]
    CommunicationBound,
    /// Gradients that are summed over the ranks more often than once a step.
    #[strum(message = "all-reduce in each micro-batch")]
    RepeatedReduce,
    /// Ranks with more threads than their host has cores.
    #[strum(message = "oversubscribed")]
    Oversubscribed,
    /// A speed-up larger than ranks or stages can give.
    #[strum(message = "more than the ideal")]
    AboveIdeal,
    /// Factors that were changed together.
    #[strum(message = "factors confounded")]
    Confounded,
    /// Times that do not add up.
    #[strum(message = "times do not add up")]
    Bookkeeping,
}

impl FindingKind {
    /// All kinds, in the order in which findings of equal weight are listed.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// A stable name for programs and labels, such as `partial-batch`.
    pub fn id(self) -> &'static str {
        self.into()
    }

    /// A few words for a heading or a verdict, such as `partial batches`.
    pub fn title(self) -> &'static str {
        self.get_message().unwrap_or_else(|| self.id())
    }
}
