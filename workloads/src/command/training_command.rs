//! What every training's command line can do.

use std::fmt::Debug;

use crate::launch::RunOptions;
use crate::train::{Observer, Summary, TrainError};

/// The options of one training, as clap parsed them.
pub(super) trait TrainingCommand: Debug {
    /// The options that every training has.
    fn run_options(&mut self) -> &mut RunOptions;

    /// How many processes an MPI launcher must start; `None` if this process is already one of them, or none are
    /// needed.
    ///
    /// # Errors
    /// MPI is requested, but this program was built without it.
    fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        Ok(None)
    }

    /// Trains until the epochs or steps are done or the observer says stop.
    ///
    /// # Errors
    /// The data cannot be read, or the model cannot be computed.
    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError>;
}
