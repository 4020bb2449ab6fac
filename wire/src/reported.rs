//! What a program reports of itself that readers know by more than its text: the parts of a collective, a pipeline's
//! micro-batches, sizes, and a device's memory.

use crate::device_memory::{DeviceMemory, Purpose};
use crate::ids::NameId;

/// The known meaning of a span, a counter or a mark with a value; [`NameKind::Reported`](crate::NameKind::Reported).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reported {
    /// A span inside an all-reduce: the rank waits for the others.
    Wait,
    /// A span inside an all-reduce: data are exchanged and added up.
    Reduce,
    /// A span: the rank waits until all ranks are there.
    Barrier,
    /// A span: one rank's values go to all.
    Broadcast,
    /// A span: the pass of a micro-batch through a stage, by its number from 0.
    MicroBatch(u32),
    /// Graphs or seeds a second that one rank alone gets through.
    OneRank,
    /// Blocks of the rank's stage.
    Blocks,
    /// Blocks of another rank's stage, by the stage's number from 0.
    BlocksOfStage(u32),
    /// Micro-batches per step.
    MicroBatches,
    /// Seeds or graphs in the training set.
    TrainingSet,
    /// A number that follows from what is in the training set: other data have another one.
    TrainingData,
    /// Micro-batches that a stage holds.
    LiveActivations,
    /// The pipeline does all forward passes, then all backward ones. The value says nothing.
    GPipe,
    /// The pipeline alternates between forward and backward passes. The value says nothing.
    OneForwardOneBackward,
    /// Denormal numbers in the arithmetic of a step.
    Denormals,
    /// How many of a million numbers of gradients are denormal, by a sample.
    DenormalGradients,
    /// The time that this processor takes for arithmetic with denormal numbers, in percent of what others take.
    DenormalCost,
    /// Rows of a batch that is not a graph.
    Samples,
    /// Positions of a batch of texts, with those that only fill it up: its sequences times the length of the longest.
    Tokens,
    /// A mark: a validation ended, which may be a phase as well.
    Validation,
    /// A device's memory.
    Memory(DeviceMemory),
    /// How often the program waited for a device in a step, as to read a value of it.
    DeviceWaits,
    /// How long all of that took, in nanoseconds.
    DeviceWaitTime,
    /// A span: one such wait. The rest of its text says by what call, and where in the program.
    DeviceWait,
    /// A span: a function is compiled that was compiled before. The rest of its text says which, and why.
    Recompilation,
    /// A span inside the making of a batch: its items are put together.
    Collate,
    /// A span of a device: it copies memory or fills it, which is no kernel. The rest of its text says from where to where.
    DeviceCopy,
    /// A span: a collective of ranks on several machines. The rest of its text says which.
    BetweenMachines,
}

/// What carries no number of its own, with its text. The place here is the number in the stream.
const PLAIN: [(Reported, &str); 36] = [
    (Reported::Wait, "wait"),
    (Reported::Reduce, "reduce"),
    (Reported::Barrier, "barrier"),
    (Reported::Broadcast, "broadcast"),
    (Reported::OneRank, "one rank items/s"),
    (Reported::Blocks, "blocks"),
    (Reported::MicroBatches, "micro-batches"),
    (Reported::TrainingSet, "training set"),
    (Reported::LiveActivations, "live activations"),
    (Reported::GPipe, "schedule gpipe"),
    (Reported::OneForwardOneBackward, "schedule 1f1b"),
    (Reported::Denormals, "denormals"),
    (Reported::Samples, "samples"),
    (Reported::Memory(DeviceMemory::Used), "device memory used"),
    (Reported::Memory(DeviceMemory::Peak), "device memory peak"),
    (Reported::Memory(DeviceMemory::Reserved), "device memory reserved"),
    (Reported::Memory(DeviceMemory::ReservedPeak), "device memory reserved peak"),
    (Reported::Memory(DeviceMemory::Free), "device memory free"),
    (Reported::Memory(DeviceMemory::Total), "device memory total"),
    (Reported::Memory(DeviceMemory::Allocations), "device memory allocations"),
    (Reported::Memory(DeviceMemory::Of(Purpose::Parameters)), "device memory of parameters"),
    (Reported::Memory(DeviceMemory::Of(Purpose::Gradients)), "device memory of gradients"),
    (Reported::Memory(DeviceMemory::Of(Purpose::OptimizerState)), "device memory of optimizer state"),
    (Reported::Memory(DeviceMemory::Of(Purpose::Batch)), "device memory of batch"),
    (Reported::Memory(DeviceMemory::Of(Purpose::Activations)), "device memory of activations"),
    (Reported::Memory(DeviceMemory::Of(Purpose::Workspace)), "device memory of workspace"),
    (Reported::Validation, "validation"),
    (Reported::Memory(DeviceMemory::Retries), "device memory retries"),
    (Reported::Memory(DeviceMemory::OutOfMemory), "device memory out of memory"),
    (Reported::DeviceWaits, "waits for the device"),
    (Reported::DeviceWaitTime, "waits for the device (ns)"),
    (Reported::Collate, "collate"),
    (Reported::TrainingData, "training data"),
    (Reported::Tokens, "tokens"),
    (Reported::DenormalGradients, "denormal gradients in a million"),
    (Reported::DenormalCost, "cost of denormals in percent"),
];

/// Numbers in the stream of what carries a number of its own, and the beginnings of their texts.
const MICRO_BATCH: (u64, &str) = (64, "micro-batch ");
const BLOCKS_OF_STAGE: (u64, &str) = (65, "blocks of stage ");
const PEAK_IN: (u64, &str) = (66, "device memory peak in ");
const RESERVED_PEAK_IN: (u64, &str) = (67, "device memory reserved peak in ");
/// The same of what says more in the rest of its text.
const DEVICE_WAIT: (u64, &str) = (68, "wait for the device: ");
const RECOMPILATION: (u64, &str) = (69, "compile again: ");
const DEVICE_COPY: (u64, &str) = (70, "Memcpy ");
const BETWEEN_MACHINES: (u64, &str) = (71, "between machines: ");
/// Spans whose texts begin with what is known of them.
const WITH_MORE: [Reported; 4] =
    [Reported::DeviceWait, Reported::Recompilation, Reported::DeviceCopy, Reported::BetweenMachines];

impl Reported {
    /// What [`Recompilation`](Self::Recompilation) says of a CUDA graph that is recorded.
    pub const CUDA_GRAPH: &str = "CUDA graph";

    /// All that carry no number of their own.
    pub fn plain() -> impl Iterator<Item = Self> {
        PLAIN.into_iter().map(|(reported, _)| reported)
    }

    /// Whether it is a span, and not a number.
    pub fn is_span(self) -> bool {
        use Reported::{Barrier, Broadcast, Collate, MicroBatch, Reduce, Wait};
        matches!(self, Wait | Reduce | Barrier | Broadcast | Collate | MicroBatch(_)) || WITH_MORE.contains(&self)
    }

    /// Its text, which is for people; the beginning of it for what carries a number or a phase.
    pub fn text(self) -> &'static str {
        match self {
            Self::MicroBatch(_) => MICRO_BATCH.1,
            Self::BlocksOfStage(_) => BLOCKS_OF_STAGE.1,
            Self::Memory(DeviceMemory::PeakIn(_)) => PEAK_IN.1,
            Self::Memory(DeviceMemory::ReservedPeakIn(_)) => RESERVED_PEAK_IN.1,
            Self::DeviceWait => DEVICE_WAIT.1,
            Self::Recompilation => RECOMPILATION.1,
            Self::DeviceCopy => DEVICE_COPY.1,
            Self::BetweenMachines => BETWEEN_MACHINES.1,
            _ => PLAIN.iter().find(|(known, _)| *known == self).map_or("", |(_, text)| text),
        }
    }

    /// What has this text, for imports and for calls that name it so. `phase` gives the id of a phase's name.
    pub fn from_text(text: &str, phase: impl FnOnce(&str) -> NameId) -> Option<Self> {
        let number = |prefix: &str| text.strip_prefix(prefix)?.parse::<u32>().ok();
        let plain = PLAIN.iter().find(|(_, known)| *known == text).map(|(reported, _)| *reported);
        let numbered = || number(MICRO_BATCH.1).map(Self::MicroBatch);
        let of_stage = || number(BLOCKS_OF_STAGE.1).map(Self::BlocksOfStage);
        let begins = |what: &Self| text.starts_with(what.text());
        let with_more = || WITH_MORE.into_iter().find(begins);
        let found = plain.or_else(numbered).or_else(of_stage).or_else(with_more);
        let reserved = text.strip_prefix(RESERVED_PEAK_IN.1);
        match (found, reserved, text.strip_prefix(PEAK_IN.1)) {
            (None, Some(name), _) => Some(Self::Memory(DeviceMemory::ReservedPeakIn(phase(name)))),
            (None, None, Some(name)) => Some(Self::Memory(DeviceMemory::PeakIn(phase(name)))),
            (found, ..) => found,
        }
    }

    /// Its number in the stream, and above the lowest byte the number that it carries.
    pub(crate) fn bits(self) -> u64 {
        let (code, number) = match self {
            Self::MicroBatch(number) => (MICRO_BATCH.0, number),
            Self::BlocksOfStage(stage) => (BLOCKS_OF_STAGE.0, stage),
            Self::Memory(DeviceMemory::PeakIn(phase)) => (PEAK_IN.0, phase.0),
            Self::Memory(DeviceMemory::ReservedPeakIn(phase)) => (RESERVED_PEAK_IN.0, phase.0),
            Self::DeviceWait => (DEVICE_WAIT.0, 0),
            Self::Recompilation => (RECOMPILATION.0, 0),
            Self::DeviceCopy => (DEVICE_COPY.0, 0),
            Self::BetweenMachines => (BETWEEN_MACHINES.0, 0),
            _ => (PLAIN.iter().position(|(known, _)| *known == self).unwrap_or(0) as u64, 0),
        };
        u64::from(number) << 8 | code
    }

    /// What has these bits; `None` for those of newer versions.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let number = u32::try_from(bits >> 8).ok()?;
        let code = bits & 0xFF;
        Some(match code {
            _ if code == MICRO_BATCH.0 => Self::MicroBatch(number),
            _ if code == BLOCKS_OF_STAGE.0 => Self::BlocksOfStage(number),
            _ if code == PEAK_IN.0 => Self::Memory(DeviceMemory::PeakIn(NameId(number))),
            _ if code == RESERVED_PEAK_IN.0 => Self::Memory(DeviceMemory::ReservedPeakIn(NameId(number))),
            _ if code == DEVICE_WAIT.0 => Self::DeviceWait,
            _ if code == RECOMPILATION.0 => Self::Recompilation,
            _ if code == DEVICE_COPY.0 => Self::DeviceCopy,
            _ if code == BETWEEN_MACHINES.0 => Self::BetweenMachines,
            _ => PLAIN.get(code as usize)?.0,
        })
    }

    /// The name that it refers to, if any.
    pub fn phase_mut(&mut self) -> Option<&mut NameId> {
        match self {
            Self::Memory(DeviceMemory::PeakIn(phase) | DeviceMemory::ReservedPeakIn(phase)) => Some(phase),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_comes_back_from_its_text_and_from_its_bits() {
        let phase = |name: &str| NameId(name.len() as u32);
        let own = [Reported::MicroBatch(70_000), Reported::BlocksOfStage(2)].map(|it| match it {
            Reported::MicroBatch(n) | Reported::BlocksOfStage(n) => (it, format!("{}{n}", it.text())),
            _ => unreachable!("only these"),
        });
        let peaks = [DeviceMemory::PeakIn(NameId(7)), DeviceMemory::ReservedPeakIn(NameId(7))].map(Reported::Memory);
        let peaks = peaks.map(|it| (it, format!("{}forward", it.text())));
        let plain = Reported::plain().map(|it| (it, it.text().to_owned()));
        let with_more = WITH_MORE.map(|it| (it, format!("{}f (a.py:1)", it.text())));
        let all: Vec<_> = plain.chain(own).chain(peaks).chain(with_more).collect();
        for (reported, text) in &all {
            assert_eq!(Reported::from_text(text, phase), Some(*reported), "{text}");
            assert_eq!(Reported::from_bits(reported.bits()), Some(*reported), "{text}");
        }
        assert_eq!(all.iter().map(|(it, _)| it.bits()).collect::<std::collections::HashSet<_>>().len(), all.len());
        for text in ["", "queue depth", "micro-batch x", "micro-batch ", "waits", "device memory"] {
            assert_eq!(Reported::from_text(text, phase), None, "{text}");
        }
        assert_eq!([50, 200, u64::MAX].map(Reported::from_bits), [None; 3]);
    }
}
