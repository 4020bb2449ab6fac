//! What the command line of every training can do.

use std::fmt::Debug;

use crate::launch::RunOptions;
use crate::train::{Observer, Summary, TrainError};

/// The options of one training, as clap parsed them.
pub(super) trait TrainingCommand: Debug {
    /// The options that every training has.
    fn run_options(&mut self) -> &mut RunOptions;

    /// How many processes a launcher of MPI has to start; `None` where this process is one of them already, or where none
    /// are needed.
    ///
    /// # Errors
    /// MPI is asked for, and this program was built without it.
    fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        Ok(None)
    }

    /// Trains until the epochs or steps are done or the observer says stop.
    ///
    /// # Errors
    /// The data cannot be read, or the model cannot be computed.
    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError>;
}
