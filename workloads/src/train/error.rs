//! Why a training run fails.

use std::error::Error;
use std::path::PathBuf;

use super::OutOfMemory;
use crate::parallel::{CollectiveError, SyncError};
use gnntop_data::graph::GraphError;
use gnntop_data::images::{NoSuchImage, ReadImagesError};
use gnntop_data::loading::LoaderError;
use gnntop_data::molecule::MoleculeError;
use gnntop_data::nodes::ReadError;
use gnntop_data::nodes::generate::GenerateError;
use gnntop_data::sampling::NodeBatchError;
use gnntop_nn::device::DeviceError;

/// Why a training run fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// No workload has this name.
    #[error("there is no workload {name}; use one of {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// The options are wrong, or help was asked for: clap's own message.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// The molecules cannot be read.
    #[error(transparent)]
    Molecules(#[from] MoleculeError),
    /// The file has no row to train on.
    #[error("{path} has no molecule with a gap to train on", path = path.display())]
    NoMolecules {
        /// The file.
        path: PathBuf,
    },
    /// The validation molecules do not form batches.
    #[error("cannot batch the validation molecules")]
    Validation(#[from] GraphError),
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
    /// A GPU has too little memory.
    #[error("{0}")]
    OutOfMemory(Box<OutOfMemory>),
    /// A rank failed, and the others with it.
    #[error("rank {rank}")]
    Rank {
        /// The rank that failed first.
        rank: u32,
        /// What happened to it.
        #[source]
        error: Box<TrainError>,
    },
    /// The ranks cannot continue together.
    #[error(transparent)]
    Ranks(#[from] CollectiveError),
    /// The system refuses a rank its threads.
    #[error("rank {rank} cannot start its threads ({message}); use fewer ranks or threads")]
    Threads {
        /// The rank.
        rank: u32,
        /// The system's error.
        message: String,
    },
    /// There is too little memory for an injected cause.
    #[error("cannot allocate {bytes} bytes to inject; use a smaller size")]
    Inject {
        /// How much was asked for.
        bytes: usize,
        /// The system's words.
        source: std::io::Error,
    },
    /// An injection names a rank that does not exist.
    #[error("--inject {words} names a rank that does not exist: {}", ranks_in_words(*.ranks))]
    InjectRank {
        /// The injection.
        words: String,
        /// The number of ranks.
        ranks: u32,
    },
    /// A rank panicked.
    #[error("it panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The model cannot be computed.
    #[error("the model cannot be computed")]
    Model(#[from] candle_core::Error),
}

/// Why the value of an option is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidOption(pub(crate) String);

impl TrainError {
    /// The error and its causes in one line, each once: `rank 1: cannot open reddit/: No such file or directory`.
    #[must_use]
    pub fn with_causes(&self) -> String {
        // With a backtrace, candle's errors would take pages.
        let line = |error: &dyn Error| error.to_string().lines().next().unwrap_or_default().to_owned();
        let (mut told, mut cause) = (line(self), self.source());
        while let Some(error) = cause {
            told = format!("{told}: {}", line(error));
            cause = error.source();
        }
        told
    }
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

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use gnntop_data::files::FileError;
    use gnntop_data::loading::BatchId;

    #[test]
    fn every_cause_is_told_once() {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no such thing");
        let path = || PathBuf::from("there");
        let batch = BatchId { epoch: 2, index: 3 };
        let errors: [TrainError; 9] = [
            MoleculeError::from(FileError::Open { path: path(), source: missing() }).into(),
            MoleculeError::from(FileError::Read { path: path(), line: 7, source: missing() }).into(),
            ReadError::from(FileError::Open { path: path(), source: missing() }).into(),
            ReadError::from(FileError::Read { path: path(), line: 7, source: missing() }).into(),
            ReadImagesError::Read { path: path(), source: missing() }.into(),
            LoaderError::Spawn { worker: 1, source: missing() }.into(),
            LoaderError::Assemble { batch, source: Box::new(missing()) }.into(),
            candle_core::Error::Msg("no such thing".to_owned()).into(),
            TrainError::Inject { bytes: 4, source: missing() },
        ];
        for error in errors {
            let told = TrainError::Rank { rank: 1, error: Box::new(error) }.with_causes();
            assert!(told.starts_with("rank 1: ") && told.ends_with(": no such thing"), "{told}");
            assert_eq!(told.matches("no such thing").count(), 1, "{told}");
        }
    }
}
