//! What can be typed, which command does it, and what `gnntop --version` prints.

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};

use super::exit::{FAILURE, NotStarted, SUCCESS, USAGE, UsageError};
use super::patience::check_answers;
use super::settings::{ScreenArguments, SettingsError};
use super::{
    attach, check, clean, compare, completions, config, demo, doctor, env, export, far, import, list, mcp, output,
    prove, push, record, replay, report, run, serve, share, stop, study, suggestion, top, trace, train, watch,
};
use crate::platform::signals::refuse_past_file_limit;
use crate::study::FileError;
use gnntop_sessions::layout;

const EXAMPLES: &str = "\
Examples:
  gnntop demo                       watch a recorded training with a fault
  gnntop run pna                    train a PNA on generated molecules and watch it
  gnntop run -- python train.py     start any program and watch it
  gnntop                            watch the current run
  gnntop record --last 5m           save the last five minutes
  gnntop replay pna.gnntop          watch it again
  gnntop report pna.gnntop --json   percentiles as JSON

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 a check failed, 4 a check is undecided, 130 interrupted; `run` returns its
program's exit code.
Environment: GNNTOP_DIR is the sessions directory, GNNTOP=0 turns publishing off, NO_COLOR turns colours off;
for GNNTOP_THEME and others see `gnntop config --help`.";

/// A live profiler in the terminal for training runs, graph neural networks first.
///
/// Without a command, opens the only live session or offers a choice.
#[derive(Debug, Parser)]
#[command(name = "gnntop", version, long_version = LONG_VERSION.as_str(), after_help = EXAMPLES, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<CliCommand>,
    #[command(flatten)]
    screen: ScreenArguments,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Run(run::RunArguments),
    Train(train::TrainArguments),
    Demo(demo::DemoArguments),
    Attach(attach::AttachArguments),
    Stop(stop::StopArguments),
    List(list::ListArguments),
    Top(top::TopArguments),
    Clean(clean::CleanArguments),
    Watch(watch::WatchArguments),
    Trace(trace::TraceArguments),
    Record(record::RecordArguments),
    Replay(replay::ReplayArguments),
    Report(report::ReportArguments),
    Compare(compare::CompareArguments),
    Check(check::CheckArguments),
    Prove(prove::ProveArguments),
    Export(export::ExportArguments),
    Serve(serve::ServeArguments),
    Push(push::PushArguments),
    Import(import::ImportArguments),
    Study(study::StudyArguments),
    Env(env::EnvArguments),
    Doctor(doctor::DoctorArguments),
    Mcp(mcp::McpArguments),
    Config(config::ConfigArguments),
    Completions(completions::CompletionsArguments),
    Man(completions::ManArguments),
    #[command(hide = true)]
    Keep(run::KeepArguments),
    #[command(hide = true)]
    Collect(run::CollectArguments),
    #[command(hide = true)]
    Share(share::ShareArguments),
    #[command(hide = true)]
    Send(far::SendArguments),
    #[command(hide = true)]
    JobDir(far::JobDirArguments),
}

/// Does what the command line says and returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    refuse_past_file_limit();
    let words: Vec<OsString> = arguments.into_iter().collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(mut error) => {
            let command = Arguments::command();
            let names: Vec<&str> =
                command.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name).collect();
            suggestion::amend(&mut error, &words, &names);
            return output::print_usage(&error);
        }
    };
    match far::run(&words).unwrap_or_else(|| dispatch(arguments)) {
        Ok(code) => code,
        // The reader of our output has left, as `head` does.
        Err(error) if output::is_broken_pipe(&error) => SUCCESS,
        Err(error) => {
            output::print_error(&format!("{error:#}"));
            let is_usage = error.is::<UsageError>() || error.is::<SettingsError>() || error.is::<FileError>();
            let code = error.downcast_ref::<NotStarted>().map(|error| error.code);
            code.unwrap_or(if is_usage { USAGE } else { FAILURE })
        }
    }
}

fn dispatch(arguments: Arguments) -> anyhow::Result<u8> {
    use CliCommand::{Attach, Clean, List, Stop, Trace, Watch};
    if matches!(arguments.command, None | Some(Attach(_) | Clean(_) | List(_) | Stop(_) | Trace(_) | Watch(_))) {
        check_answers(&layout::sessions_dir())?;
    }
    match arguments.command {
        None => attach::choose(&arguments.screen),
        Some(CliCommand::Run(arguments)) => run::run(arguments),
        Some(CliCommand::Train(arguments)) => train::train(&arguments),
        Some(CliCommand::Demo(arguments)) => demo::demo(&arguments),
        Some(CliCommand::Attach(arguments)) => attach::attach(&arguments),
        Some(CliCommand::Stop(arguments)) => stop::stop(&arguments),
        Some(CliCommand::Keep(arguments)) => run::keep(&arguments),
        Some(CliCommand::Collect(arguments)) => run::collect(&arguments),
        Some(CliCommand::Share(arguments)) => share::share(&arguments),
        Some(CliCommand::Send(arguments)) => far::send(&arguments),
        Some(CliCommand::JobDir(arguments)) => far::job_dir(&arguments),
        Some(CliCommand::List(arguments)) => list::list(&arguments),
        Some(CliCommand::Top(arguments)) => top::top(&arguments),
        Some(CliCommand::Clean(arguments)) => clean::clean(&arguments),
        Some(CliCommand::Watch(arguments)) => watch::watch(&arguments),
        Some(CliCommand::Trace(arguments)) => trace::trace(&arguments),
        Some(CliCommand::Record(arguments)) => record::record(&arguments),
        Some(CliCommand::Replay(arguments)) => replay::replay(arguments),
        Some(CliCommand::Report(arguments)) => report::report(&arguments),
        Some(CliCommand::Compare(arguments)) => compare::run(&arguments),
        Some(CliCommand::Check(arguments)) => check::check(&arguments),
        Some(CliCommand::Prove(arguments)) => prove::prove(&arguments),
        Some(CliCommand::Export(arguments)) => export::export(arguments),
        Some(CliCommand::Serve(arguments)) => serve::serve(&arguments),
        Some(CliCommand::Push(arguments)) => push::push(&arguments),
        Some(CliCommand::Import(arguments)) => import::import(&arguments),
        Some(CliCommand::Study(arguments)) => study::study(&arguments),
        Some(CliCommand::Env(arguments)) => env::env(&arguments),
        Some(CliCommand::Doctor(arguments)) => doctor::doctor(&arguments),
        Some(CliCommand::Mcp(arguments)) => mcp::mcp(&arguments),
        Some(CliCommand::Config(arguments)) => config::config(&arguments),
        Some(CliCommand::Completions(arguments)) => completions::completions(&arguments, Arguments::command()),
        Some(CliCommand::Man(arguments)) => completions::man(&arguments, Arguments::command()),
    }
}

/// Set by the scripts that build releases; asking git in each build would compile everything again after each commit.
const COMMIT: Option<&str> = option_env!("GNNTOP_COMMIT");

const FEATURES: [(&str, bool); 4] = [
    ("workloads", cfg!(feature = "workloads")),
    ("cuda", cfg!(feature = "cuda")),
    ("mpi", cfg!(feature = "mpi")),
    ("nccl", cfg!(feature = "nccl")),
];

/// Such as `0.1.0 (commit 1a2b3c4; workloads, cuda)`.
pub(super) static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let features: Vec<_> = FEATURES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "without built-in trainings".to_owned() } else { features.join(", ") };
    let commit =
        COMMIT.filter(|commit| !commit.is_empty()).map(|commit| format!("commit {commit}; ")).unwrap_or_default();
    format!("{} ({commit}{features})", env!("CARGO_PKG_VERSION"))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_explains_itself_with_an_example() {
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name}");
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.contains(&format!("gnntop {name}")), "{name}: {examples}");
        }
    }
}
