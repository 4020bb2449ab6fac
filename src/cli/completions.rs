//! `gnntop completions` and `gnntop man`: completions and manual pages, made from the same definitions as the command
//! line itself.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap_complete::Shell;

use super::exit::SUCCESS;
use super::output;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  gnntop completions bash > ~/.local/share/bash-completion/completions/gnntop
  gnntop completions zsh > ~/.zfunc/_gnntop
  gnntop completions fish > ~/.config/fish/completions/gnntop.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  gnntop man | man -l -                     read the manual page
  gnntop man ~/.local/share/man/man1        write a page for each command";

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(super) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write a page for each command
#[derive(Debug, clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(super) struct ManArguments {
    /// Directory for the pages
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Does `gnntop completions` for this command line.
pub(super) fn completions(arguments: &CompletionsArguments, mut program: clap::Command) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "gnntop", &mut script);
    output::print_bytes(&script)?;
    Ok(SUCCESS)
}

/// Does `gnntop man` for this command line.
pub(super) fn man(arguments: &ManArguments, program: clap::Command) -> anyhow::Result<u8> {
    let Some(dir) = &arguments.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(program).render(&mut page)?;
        output::print_bytes(&page)?;
        return Ok(SUCCESS);
    };
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    clap_mangen::generate_to(program, dir)
        .with_context(|| format!("cannot write manual pages into {}", dir.display()))?;
    Ok(SUCCESS)
}
