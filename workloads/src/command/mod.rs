//! The trainings by name, as `gnntop train NAME` and `gnntop run NAME` start them. Nothing here prints: an
//! [`Observer`] is told what happens.

mod device;
mod options;
mod out_of_memory;
mod refused;
mod training;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use gnntop_probe::{BatchShape, Warning};

use crate::gat::GatCommand;
use crate::gcn::GcnCommand;
use crate::images::{NoSuchImage, ReadImagesError};
use crate::loading::LoaderError;
use crate::molecule::MoleculeError;
use crate::nodes::ReadError;
use crate::nodes::generate::GenerateError;
use crate::parallel::{CollectiveError, Settings, SyncError, given};
use crate::pna::{PnaCommand, ValidationError};
use crate::sage::SageCommand;
use crate::sampling::NodeBatchError;
use crate::vig::VigCommand;

#[cfg(any(feature = "cuda", test))]
pub(crate) use device::asked_for;
pub use device::{DeviceChoice, DeviceError};
pub use options::RunOptions;
pub(crate) use options::at_least_one;
pub use out_of_memory::OutOfMemory;
pub use refused::EndsWhenRefused;
pub(crate) use refused::this_process_is;
pub(crate) use training::{Position, StepOutcome, Training, train};

/// Names of all workloads, each with a line on what it is.
pub const WORKLOADS: [(&str, &str); 5] = [
    ("gat", "GAT on a graph like Reddit, sampled, telling communities by attention"),
    ("gcn", "GCN on Cora, telling the topics of papers (full batch, sampled, half precision, compiled)"),
    ("pna", "PNA on small molecules, predicting the HOMO-LUMO gap (regression)"),
    ("sage", "GraphSAGE on a graph like Reddit, sampled, telling communities"),
    ("vig", "ViG on images like CIFAR-10, pixels as nodes, classifying"),
];

/// Is told how a training goes. Every method has a default that does nothing.
pub trait Observer {
    /// Something worth a line.
    fn tell(&mut self, _line: &str) {}

    /// How far reading or making the data is, such as `12000 molecules`. Called often.
    fn loading(&mut self, _done: std::fmt::Arguments<'_>) {}

    /// A step is done.
    fn step(&mut self, _report: &StepReport) {}

    /// Asked before each step.
    fn should_stop(&mut self) -> bool {
        false
    }

    /// What to do when publishing turns out to be impossible; called from another thread, at most once.
    fn warning(&mut self) -> Box<dyn FnMut(&Warning) + Send> {
        Box::new(|_| ())
    }
}

/// An observer that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// A step as far as a progress line needs it.
#[derive(Clone, Copy, Debug)]
pub struct StepReport {
    /// Epoch, from 0.
    pub epoch: u64,
    /// Epochs in all.
    pub epochs: u64,
    /// Step in the epoch, from 0.
    pub index: u64,
    /// Steps in an epoch.
    pub batches: u64,
    /// Loss of this step.
    pub loss: f64,
    /// What was in its batch.
    pub shape: BatchShape,
    /// From asking for the batch to the end of the optimizer.
    pub time: Duration,
}

/// How a training ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Steps done.
    pub steps: u64,
    /// Loss of the last one.
    pub loss: Option<f64>,
}

/// Why a training cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// No workload has this name.
    #[error("no workload is called {name}; there is: {}", names())]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The options are wrong, or help was asked for: clap's own message.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// The molecules cannot be read.
    #[error(transparent)]
    Molecules(#[from] MoleculeError),
    /// The file has no row that can be trained on.
    #[error("{path} has no molecule with a gap to train on", path = path.display())]
    NoMolecules {
        /// The file.
        path: PathBuf,
    },
    /// The molecules kept apart cannot be used.
    #[error(transparent)]
    Validation(#[from] ValidationError),
    /// The graph cannot be read.
    #[error(transparent)]
    Nodes(#[from] ReadError),
    /// The graph cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// Neighbours cannot be sampled as asked.
    #[error(transparent)]
    Sample(#[from] NodeBatchError),
    /// The images cannot be read.
    #[error(transparent)]
    Images(#[from] ReadImagesError),
    /// A batch of images cannot be put together.
    #[error(transparent)]
    NoSuchImage(#[from] NoSuchImage),
    /// A batch cannot be loaded.
    #[error(transparent)]
    Loader(#[from] LoaderError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A GPU's memory does not suffice.
    #[error("{0}")]
    OutOfMemory(Box<OutOfMemory>),
    /// A rank failed, and the others with it.
    #[error("rank {rank}: {error}")]
    Rank {
        /// The rank that failed first.
        rank: u32,
        /// What happened to it; a part of the message, and no source that would be told a second time.
        error: Box<TrainError>,
    },
    /// The ranks cannot go on together.
    #[error(transparent)]
    Ranks(#[from] CollectiveError),
    /// The system refuses a rank its threads.
    #[error("rank {rank} cannot start its threads ({message}); use fewer ranks or threads")]
    Threads {
        /// The rank.
        rank: u32,
        /// What the system said.
        message: String,
    },
    /// The memory that a cause needs is not there.
    #[error("the system does not give the {bytes} bytes to inject; ask for less")]
    Inject {
        /// How much was asked for.
        bytes: usize,
        /// The system's words.
        source: std::io::Error,
    },
    /// What is to go wrong is meant for a rank that there is not.
    #[error("--inject {words} names a rank that is not there: {}", ranks_in_words(*.ranks))]
    InjectRank {
        /// What was asked for.
        words: String,
        /// Ranks that there are.
        ranks: u32,
    },
    /// A rank ended in a way that nobody foresaw.
    #[error("it panicked: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
    /// The model cannot be computed.
    #[error("the model cannot be computed: {0}")]
    Model(#[from] candle_core::Error),
}

impl From<SyncError> for TrainError {
    fn from(error: SyncError) -> Self {
        match error {
            SyncError::Ranks(error) => Self::Ranks(error),
            SyncError::Model(error) => Self::Model(error),
        }
    }
}

fn ranks_in_words(ranks: u32) -> String {
    if ranks <= 1 { "there is only rank 0".to_owned() } else { format!("there are ranks 0 to {}", ranks - 1) }
}

fn names() -> String {
    WORKLOADS.map(|(name, _)| name).join(", ")
}

/// A training with its options, checked and ready to start.
#[derive(Clone, Debug)]
pub enum Workload {
    /// GAT on a large graph.
    Gat(GatCommand),
    /// GCN on Cora.
    Gcn(GcnCommand),
    /// PNA on molecules.
    Pna(PnaCommand),
    /// GraphSAGE on a large graph.
    Sage(SageCommand),
    /// ViG on images.
    Vig(VigCommand),
}

impl Workload {
    /// The workload `name` with these command-line options.
    ///
    /// # Errors
    /// There is no such workload, or its options are wrong; asking for `--help` is [`TrainError::Usage`] too.
    pub fn parse(name: &str, options: &[OsString]) -> Result<Self, TrainError> {
        // The first argument is the program's name, which clap shows in its usage line.
        let arguments = std::iter::once(OsString::from(format!("gnntop train {name}"))).chain(options.iter().cloned());
        let (mut workload, given) = match name {
            "gat" => parsed(Self::Gat, arguments)?,
            "gcn" => parsed(Self::Gcn, arguments)?,
            "pna" => parsed(Self::Pna, arguments)?,
            "sage" => parsed(Self::Sage, arguments)?,
            "vig" => parsed(Self::Vig, arguments)?,
            _ => return Err(TrainError::Unknown { name: name.to_owned() }),
        };
        workload.run_options().given = given;
        Ok(workload)
    }

    /// The options that every training has.
    pub(crate) fn run_options(&mut self) -> &mut RunOptions {
        match self {
            Self::Gat(command) => command.run_options(),
            Self::Gcn(command) => command.run_options(),
            Self::Pna(command) => command.run_options(),
            Self::Sage(command) => command.run_options(),
            Self::Vig(command) => command.run_options(),
        }
    }

    /// How many processes a launcher of MPI has to start for this training; `None` where this process is one of them already,
    /// or needs no others.
    ///
    /// # Errors
    /// MPI is asked for, and this program was built without it.
    pub fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        let ranks = match self {
            Self::Gat(command) => command.ranks(),
            Self::Sage(command) => command.ranks(),
            Self::Vig(command) => return command.processes_to_launch(),
            Self::Gcn(_) | Self::Pna(_) => return Ok(None),
        };
        Ok(ranks.processes_to_launch()?)
    }

    /// Trains to the end.
    ///
    /// # Errors
    /// Data, loader or model fail.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        refused::training_begins();
        match self {
            Self::Gat(command) => command.run(observer),
            Self::Gcn(command) => command.run(observer),
            Self::Pna(command) => command.run(observer),
            Self::Sage(command) => command.run(observer),
            Self::Vig(command) => command.run(observer),
        }
    }
}

/// What a command line says, and what of it all ranks of a training must have in common.
fn parsed<C: Parser>(
    workload: impl FnOnce(C) -> Workload,
    arguments: impl Iterator<Item = OsString>,
) -> Result<(Workload, Settings), clap::Error> {
    let mut command = C::command();
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    let settings = given(&command, &matches);
    let options = C::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    Ok((workload(options), settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_workload_can_be_parsed() {
        for (name, _) in WORKLOADS {
            Workload::parse(name, &[]).unwrap();
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = Workload::parse("pan", &[]).unwrap_err().to_string();
        assert_eq!(error, "no workload is called pan; there is: gat, gcn, pna, sage, vig");
    }

    #[test]
    fn help_is_a_usage_error_with_examples() {
        let error = Workload::parse("pna", &["--help".into()]).unwrap_err().to_string();
        assert!(error.contains("Examples:") && error.contains("gnntop train pna"), "{error}");
    }
}
