//! `gnntop mcp`: what a coding agent asks of a run, as tools of the Model Context Protocol over standard input and output.
//!
//! ```text
//! a line ─▶ protocol.rs ─▶ tools.rs ─▶ run_tools.rs, list_runs.rs, wait_for.rs ─▶ Answer ─▶ a line
//!                        │           └▶ job_tools.rs ─▶ jobs.rs: programs that it started
//!                        └▶ resources.rs
//! ```
//!
//! `answer.rs` is the form of every tool's answer, and bounds it; `parameters.rs` reads what a client asked with. Without `--allow-run`
//! nothing here starts, stops or changes a program. Texts of programs (names, commands, output) are values of an answer and never part of a sentence of
//! ours.

mod answer;
mod job_tools;
mod jobs;
mod list_runs;
mod parameters;
mod protocol;
mod refusal;
mod resources;
mod run_tools;
mod setup;
mod tools;
mod wait_for;

use std::io;

use super::exit::SUCCESS;
use super::output;
pub(super) use jobs::abandoned;
use setup::Client;

const EXAMPLES: &str = "\
Examples:
  gnntop mcp --setup            what to write for each client
  gnntop mcp --setup claude     the line for one of them
  gnntop mcp                    the server itself, which a client starts
  gnntop mcp --allow-run        with tools that start programs: to profile one, to prove a change, to trace steps

A client starts `gnntop mcp` and asks, for example, `diagnose` of the current run: docs/agents.md has a transcript.";

/// Answer a coding agent's questions about runs, over standard input and output (Model Context Protocol)
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct McpArguments {
    /// Print what to write for a client, so that it starts this server; changes nothing
    #[arg(long, value_name = "CLIENT", value_enum, num_args = 0..=1)]
    setup: Option<Option<Client>>,
    /// Also offer tools that start programs: profile, prove, trace
    #[arg(long)]
    allow_run: bool,
}

/// Does `gnntop mcp`.
pub(super) fn mcp(arguments: &McpArguments) -> anyhow::Result<u8> {
    match arguments.setup {
        Some(client) => output::print(setup::instructions(client).trim_end())?,
        None => {
            let jobs = arguments.allow_run.then(jobs::Jobs::new).transpose()?;
            protocol::serve(io::stdin().lock(), io::stdout().lock(), jobs)?;
        }
    }
    Ok(SUCCESS)
}
