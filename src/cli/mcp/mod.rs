//! `gnntop mcp`: what a coding agent asks of a run, as tools of the Model Context Protocol over standard input and output.
//!
//! ```text
//! a line ─▶ protocol.rs ─▶ tools.rs ─▶ run_tools.rs, list_runs.rs, wait_for.rs ─▶ Answer ─▶ a line
//!                        └▶ resources.rs
//! ```
//!
//! `answer.rs` is the form of every answer, and bounds it; `parameters.rs` reads what a client asked with. Nothing here starts,
//! stops or changes a program. Texts of programs (names, commands, output) are values of an answer and never part of a sentence of
//! ours.

mod answer;
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
use setup::Client;

const EXAMPLES: &str = "\
Examples:
  gnntop mcp --setup            what to write for each client
  gnntop mcp --setup claude     the line for one of them
  gnntop mcp                    the server itself, which a client starts

A client starts `gnntop mcp` and asks, for example, `diagnose` of the current run: docs/agents.md has a transcript.";

/// Answer a coding agent's questions about runs, over standard input and output (Model Context Protocol)
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct McpArguments {
    /// Print what to write for a client, so that it starts this server; changes nothing
    #[arg(long, value_name = "CLIENT", value_enum, num_args = 0..=1)]
    setup: Option<Option<Client>>,
}

/// Does `gnntop mcp`.
pub(super) fn mcp(arguments: &McpArguments) -> anyhow::Result<u8> {
    match arguments.setup {
        Some(client) => output::print(setup::instructions(client).trim_end())?,
        None => protocol::serve(io::stdin().lock(), io::stdout().lock())?,
    }
    Ok(SUCCESS)
}
