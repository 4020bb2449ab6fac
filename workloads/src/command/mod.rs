//! The command lines of the trainings: they turn options and presets into what a trainer takes. Only this
//! file knows them all, by the names that `gnntop train NAME` and `gnntop run NAME` take. A new one adds two lines
//! here.

mod choices;
mod gcn;
mod pipeline;
mod pna;
mod sampled;
mod sampled_models;
#[cfg(test)]
mod tests;
mod training_command;
mod vig;

use std::ffi::OsString;

use clap::Parser;

use self::gcn::GcnCommand;
use self::pna::PnaCommand;
use self::sampled::SampledCommand;
use self::sampled_models::{GatOptions, GinOptions, SageOptions};
use self::training_command::TrainingCommand;
use self::vig::VigCommand;
use crate::launch::{given, training_begins};
use crate::train::{Observer, Summary, TrainError};

/// All trainings.
pub const WORKLOADS: [Registered; 6] = [
    Registered { name: "gat", parse: parse::<SampledCommand<GatOptions>> },
    Registered { name: "gcn", parse: parse::<GcnCommand> },
    Registered { name: "gin", parse: parse::<SampledCommand<GinOptions>> },
    Registered { name: "pna", parse: parse::<PnaCommand> },
    Registered { name: "sage", parse: parse::<SampledCommand<SageOptions>> },
    Registered { name: "vig", parse: parse::<VigCommand> },
];

/// A training that can be started by name.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its name, such as `pna`.
    pub name: &'static str,
    parse: fn(Vec<OsString>) -> Result<Workload, clap::Error>,
}

/// A training with its options, checked and ready to start.
#[derive(Debug)]
pub struct Workload(Box<dyn TrainingCommand>);

impl Workload {
    /// The workload `name` with these command-line options.
    ///
    /// # Errors
    /// There is no such workload, or its options are wrong; `--help` gives [`TrainError::Usage`], too.
    pub fn parse(name: &str, options: &[OsString]) -> Result<Self, TrainError> {
        let Some(found) = WORKLOADS.iter().find(|known| known.name == name) else {
            let known = WORKLOADS.map(|known| known.name).join(", ");
            return Err(TrainError::Unknown { name: name.to_owned(), known });
        };
        // The first argument is the program's name, which clap shows in its usage line.
        let program = OsString::from(format!("gnntop train {name}"));
        Ok((found.parse)(std::iter::once(program).chain(options.iter().cloned()).collect())?)
    }

    /// How many processes an MPI launcher must start for this training; `None` if this process is already one of them,
    /// or needs no others.
    ///
    /// # Errors
    /// MPI is requested, but this program was built without it.
    pub fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        self.0.processes_to_launch()
    }

    /// Trains to the end.
    ///
    /// # Errors
    /// Data, loader or model fail.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        training_begins();
        self.0.run(observer)
    }
}

/// A parsed command line, and which part of it all ranks of a run must have in common.
fn parse<C: Parser + TrainingCommand + 'static>(arguments: Vec<OsString>) -> Result<Workload, clap::Error> {
    let mut command = C::command();
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    let settings = given(&command, &matches);
    let mut options = C::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    options.run_options().given = settings;
    Ok(Workload(Box::new(options)))
}
