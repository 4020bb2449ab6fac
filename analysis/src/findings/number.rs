//! What the numbers of findings are called. These words are the findings' own: a finding leaves out warm-up and looks at the
//! steps it is about, so none of its numbers is a figure of the catalogue, which has names with a point.

use serde::Serialize;
use strum::{EnumMessage, IntoStaticStr, VariantArray};

/// What a number of a finding is; its kind says of what. The words are stable, and as they are in JSON.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Number {
    /// Share of the wall time looked at that it is about, with time that other findings count.
    OfTime,
    /// The part of that which other findings count.
    CountedElsewhere,
    /// Share of the whole run's time.
    OfRun,
    /// Steps that it is about.
    Steps,
    /// Steps that were looked at.
    OfSteps,
    /// The step at which it begins, by the program's count.
    SinceStep,
    /// The last step at which all was well, by the program's count.
    LastGoodStep,
    /// Share of the steps in which it is so.
    OftenSlow,
    /// How often it was seen.
    Times,
    /// How often in a step, on average.
    TimesPerStep,
    /// Steps from one time to the next.
    EverySteps,
    /// Time from one time to the next.
    EveryTime,
    /// How long it lasts.
    Lasting,
    /// What one of them takes, on average.
    Each,
    /// What all of them take together.
    InAll,
    /// Time lost.
    Lost,
    /// What is usual: the median.
    Usual,
    /// The median where it is otherwise: in other steps, for other ranks.
    Otherwise,
    /// How much longer it takes.
    More,
    /// How much longer all of them take together.
    MoreInAll,
    /// How much slower, as a share of the time before or of others.
    Slower,
    /// The same of the middle third of the steps.
    MiddleSlower,
    /// How many times as much as it should be, or as others.
    Ratio,
    /// The least of several ratios.
    LeastRatio,
    /// The largest of several ratios.
    MostRatio,
    /// The longest.
    Longest,
    /// Its period, with validation and the time before the step.
    LongestPeriod,
    /// How far others vary, in standard deviations.
    Noise,
    /// What it was before, or is for the small ones.
    From,
    /// What it became, or is for the large ones.
    To,
    /// By what share it changed, up or down as its sentence says.
    Change,
    /// Coefficient of correlation.
    Correlation,
    /// A median step with the gap before it.
    Step,
    /// A median full batch's step.
    FullBatch,
    /// A median partial batch's step.
    PartialBatch,
    /// Time of a step whatever its batch.
    FixedTime,
    /// Share of a full step that is fixed cost.
    FixedCost,
    /// Time for a thousand graphs, nodes, edges or seeds.
    PerThousand,
    /// Time for one of a batch's items.
    PerItem,
    /// Items in a batch.
    BatchSize,
    /// Share of the compute time.
    OfCompute,
    /// How often the model runs in a step with a validation.
    ModelRuns,
    /// How often it runs in a usual step.
    UsualModelRuns,
    /// Share of the model's parameters that are in embeddings with dense gradients.
    DenseEmbeddings,
    /// Share of the waiting that the slowest tenth of the steps has.
    SlowestTenth,
    /// Share of the waiting that is for the first batches of epochs.
    FirstBatches,
    /// Share of the waiting that is in the first epoch.
    FirstEpoch,
    /// Share of a queue's readings in which it is empty.
    QueueEmpty,
    /// Share of the machine's cores in use.
    MachineBusy,
    /// Loader threads.
    Loaders,
    /// Share of the loader workers' time.
    OfWorkers,
    /// Share of the wait for batches.
    OfWait,
    /// Share of the time in which each of the loader's workers makes batches.
    WorkersBusy,
    /// Batches that take far longer to make than others.
    SlowBatches,
    /// What a batch usually takes to make.
    UsualBatch,
    /// Nodes that a seed brings into its batch.
    NodesPerSeed,
    /// Edges that a seed brings into its batch.
    EdgesPerSeed,
    /// How many times as many nodes a seed brings in the end as in the beginning.
    SeedGrowth,
    /// Share of the gap.
    OfGap,
    /// Times between steps that are far longer than usual.
    LongGaps,
    /// Share of the gap that is in the first steps of epochs.
    FirstSteps,
    /// Time before an epoch's first step, on average.
    EpochStart,
    /// Time that timers around steps, or phases and gap, add up to.
    Timed,
    /// Time that passed on the clock.
    Wall,
    /// Marks in steps.
    Inside,
    /// Marks between steps.
    Outside,
    /// Marks at which time is lost.
    Costly,
    /// Share of the other steps that are as long.
    AsLongElsewhere,
    /// Page faults.
    PageFaults,
    /// Page faults read from a disk.
    FromDisk,
    /// Page faults of a usual step.
    UsualFaults,
    /// Page faults read from a disk, per second.
    FromDiskPerS,
    /// Preemptions.
    Preemptions,
    /// Preemptions per second.
    PreemptionsPerS,
    /// Preemptions of a step before it changed.
    PreemptionsBefore,
    /// Denormal numbers of a step.
    DenormalsPerStep,
    /// Share of the gradients' numbers that is denormal.
    DenormalGradients,
    /// Share of the time in which some process on the machine waits for it.
    Pressure,
    /// Cores that something uses.
    Cores,
    /// Cores in use on the machine.
    BusyCores,
    /// Cores that other processes use.
    OtherCores,
    /// Cores of the machine.
    MachineCores,
    /// Cores that the control group may use.
    QuotaCores,
    /// Cores that the program may use.
    MayUseCores,
    /// Those of them that nothing uses.
    FreeCores,
    /// Bytes that are read in a second, cached ones too.
    ReadPerS,
    /// Bytes that are read with one call.
    ReadSize,
    /// Calls that read, of a step.
    ReadsPerStep,
    /// Bytes that are read from disks in a second.
    FromDisksPerS,
    /// Bytes that are read from disks in an epoch.
    FromDisksPerEpoch,
    /// Bytes that the machine receives in a second.
    ReceivedPerS,
    /// Share of its periods in which the control group is stopped.
    ThrottledPeriods,
    /// Share of the CPU time that the kernel uses.
    InKernel,
    /// Kernels and copies that were traced.
    Kernels,
    /// Readings of a sensor.
    Readings,
    /// Time from one reading to the next.
    ReadingsApart,
    /// How much readings favour one part of a step, from 0 to 1.
    Favours,
    /// That part, as a share of the step.
    AtPart,
    /// Share of idle time that readings show.
    ReadIdle,
    /// Share of the time in which the GPU has nothing to do.
    GpuIdle,
    /// Share of the time in which the GPU copies memory and runs no kernel.
    Copying,
    /// Clock frequency that a tenth of the readings is below.
    LowClock,
    /// Clock frequency that a tenth of the readings is above.
    HighClock,
    /// Bytes of a step.
    BytesPerStep,
    /// Bytes of an hour.
    BytesPerHour,
    /// Allocations of a step.
    AllocationsPerStep,
    /// How often a GPU's memory ran out and cached blocks were given back.
    Retries,
    /// How often that did not help.
    InVain,
    /// Memory that a GPU's allocator holds, or by which that grows.
    Reserved,
    /// The most of it that tensors used.
    UsedAtMost,
    /// The GPU's memory.
    OfGpuMemory,
    /// By how much tensors grow.
    TensorGrowth,
    /// By how much the process grows.
    OwnGrowth,
    /// Stretches of the time in which it rises.
    Rises,
    /// Time until nothing is left.
    Left,
    /// Steps done twice.
    RepeatedSteps,
    /// Time of steps done twice.
    RepeatedTime,
    /// Time from a mark to the first step that it may explain.
    Ahead,
    /// A power.
    Power,
    /// Share of a counter's readings in which it does not change.
    Still,
    /// Steps or events that never arrived.
    Missing,
    /// Share of all events that never arrived.
    MissingShare,
    /// Stacks that were taken.
    Stacks,
    /// A rank's number.
    Rank,
    /// A stage's number.
    Stage,
    /// An epoch's number.
    Epoch,
    /// A GPU's number.
    Gpu,
    /// How long others wait.
    OthersWait,
    /// How many times as large a rank's batches are as its peers'.
    BatchRatio,
    /// Collectives that were compared.
    Collectives,
    /// Share of the collectives at which a rank is last.
    OftenLast,
    /// Time of a micro-batch.
    MicroBatch,
    /// Time of a step with a balanced split, or even stages.
    Balanced,
    /// Time of a step by its stages' own times.
    Needed,
    /// Share of the time in which stages are idle.
    Idle,
    /// The same by the recurrence, for even stages.
    IdleEven,
    /// The same by the recurrence, for these stages.
    IdlePredicted,
    /// Share of the time in which stages have their input and do not run.
    Late,
    /// Blocks of a stage.
    Blocks,
    /// Blocks of all stages.
    OfBlocks,
    /// Seeds or graphs of an epoch.
    Work,
    /// Seeds or graphs of the training set.
    TrainingSet,
    /// Copies of the model.
    Copies,
    /// Stages of a pipeline.
    Stages,
    /// Ranks of a host.
    Ranks,
    /// Threads.
    Threads,
    /// Factors that were changed together.
    Factors,
    /// How many times as fast.
    SpeedUp,
    /// How many times as fast is possible.
    Ideal,
}

impl Number {
    /// All of them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The word, such as `of_time`.
    pub fn id(self) -> &'static str {
        self.into()
    }

    /// What it is, in a sentence.
    pub fn about(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::FigureId;

    #[test]
    fn a_number_of_a_finding_is_never_a_figure() {
        for number in Number::ALL {
            assert!(number.id().parse::<FigureId>().is_err(), "{}", number.id());
        }
    }
}
