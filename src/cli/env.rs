//! `gnntop env`: the variables by which a Python shows what it does, for programs that something else starts: workers of Ray,
//! containers of a Kubernetes job, a notebook's kernel.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::Context;
use gnntop_sessions::layout::RUN;

use super::exit::SUCCESS;
use super::{output, run};
use crate::python::package;

const EXAMPLES: &str = "\
Examples:
  eval \"$(gnntop env)\"; python train.py       as `gnntop run` starts it, without its log, keeper and view
  gnntop env --json                           for Ray: ray.init(runtime_env={\"env_vars\": json.loads(...)})

The paths must exist where the program runs: call this on that machine, or have the home directory on all of them. PYTHONPATH has ours \
in front of what it has here.";

/// Print the variables that make Python programs publish
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct EnvArguments {
    /// One run for all that have these variables
    #[arg(long = "run", value_name = "ID", value_parser = run::run_id)]
    run_id: Option<String>,
    /// Write JSON instead of a shell's commands
    #[arg(long)]
    json: bool,
}

/// Does `gnntop env`.
pub(super) fn env(arguments: &EnvArguments) -> anyhow::Result<u8> {
    let package = package::package().context("cannot unpack the Python package")?;
    let mut variables = package::worker_environment(package.folder());
    variables.extend(arguments.run_id.as_ref().map(|id| (RUN, OsString::from(id))));
    let variables: BTreeMap<&str, String> =
        variables.into_iter().map(|(name, value)| (name, value.to_string_lossy().into_owned())).collect();
    if arguments.json {
        output::print(&serde_json::to_string_pretty(&variables)?)?;
        return Ok(SUCCESS);
    }
    for (name, value) in variables {
        output::print(&format!("export {name}='{}'", value.replace('\'', r"'\''")))?;
    }
    Ok(SUCCESS)
}
