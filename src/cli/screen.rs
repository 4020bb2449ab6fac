//! Shows a source: on the screen if there is a terminal, otherwise as plain lines.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use super::exit::SUCCESS;
use super::settings::Settings;
use super::{plain, signals};
use crate::platform::files::TERMINAL;
use crate::runs_table::Order;
use crate::viewer::{Outcome, ScreenOptions, run_choice, run_comparison, run_screen, run_table};
use gnntop_analysis::many_runs::RunsWatch;
use gnntop_analysis::source::Source;
use gnntop_analysis::source::catalog::Catalog;
use gnntop_sessions::layout;

/// Whether a screen can be shown: standard output is a terminal that can be drawn on, and keys can be read, even while
/// a recording arrives through standard input.
pub(super) fn is_possible() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let has_keys = || io::stdin().is_terminal() || File::open(TERMINAL).is_ok();
    io::stdout().is_terminal() && !dumb && has_keys()
}

/// Shows `source` until a person leaves or, without a terminal, until it ends; a key shows its output, if that is
/// known. Returns the exit code.
///
/// # Errors
/// If the terminal or standard output cannot be used.
pub(super) fn show(source: Box<dyn Source>, settings: &Settings, log_path: Option<PathBuf>) -> anyhow::Result<u8> {
    if !is_wanted(settings) {
        return plain::follow(source, settings.interval);
    }
    let options = ScreenOptions { catalog: Some(catalog()), ..settings.options(log_path) };
    Ok(exit_code(run_screen(source, options)?))
}

/// Shows `source` as [`show`] does, with a hint on its first screens.
///
/// # Errors
/// As for [`show`].
pub(super) fn show_with_hint(source: Box<dyn Source>, hint: String, settings: &Settings) -> anyhow::Result<u8> {
    if !is_wanted(settings) {
        return plain::follow(source, settings.interval);
    }
    let options = ScreenOptions { hint: Some(hint), ..settings.options(None) };
    Ok(exit_code(run_screen(source, options)?))
}

/// Whether a screen can be shown, and plain lines were not requested.
pub(super) fn is_wanted(settings: &Settings) -> bool {
    !settings.plain && is_possible()
}

/// Shows `source` as [`show`] does, beside what to compare it with, if there is any. A comparison needs a terminal.
///
/// # Errors
/// When the terminal or standard output cannot be used.
pub(super) fn show_against(
    source: Box<dyn Source>,
    against: Option<Box<dyn Source>>,
    settings: &Settings,
    log_path: Option<PathBuf>,
) -> anyhow::Result<u8> {
    let Some(against) = against else { return show(source, settings, log_path) };
    if !is_wanted(settings) {
        anyhow::bail!("--against needs a terminal; `gnntop compare` compares recordings without one");
    }
    let options = ScreenOptions { catalog: Some(catalog()), ..settings.options(log_path) };
    Ok(exit_code(run_comparison(source, Some(against), options)?))
}

/// Lets a person choose on the screen what to watch. Returns the exit code.
///
/// # Errors
/// When the terminal cannot be used.
pub(super) fn choose(settings: &Settings) -> anyhow::Result<u8> {
    let options = ScreenOptions { catalog: Some(catalog()), ..settings.options(None) };
    Ok(exit_code(run_choice(options)?))
}

/// Shows many runs in a table. Returns the exit code.
///
/// # Errors
/// When the terminal cannot be used.
pub(super) fn show_table(watch: RunsWatch, order: Order, filter: String, settings: &Settings) -> anyhow::Result<u8> {
    let options = ScreenOptions { catalog: Some(catalog()), ..settings.options(None) };
    Ok(exit_code(run_table(watch, order, filter, options)?))
}

/// This user's sessions, and the recordings of the current directory.
pub(super) fn catalog() -> Catalog {
    Catalog { sessions_dir: layout::sessions_dir(), recordings_dir: PathBuf::from(".") }
}

fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        // Only a program that was started with the view can be waited for or stopped.
        Outcome::Quit | Outcome::Wait | Outcome::Stop => SUCCESS,
        Outcome::Signal(signal) => signals::exit_code(signal),
    }
}

/// Shows `source`, a program that was just started, on the screen; a key shows its log.
///
/// # Errors
/// When the terminal cannot be used.
pub(super) fn show_started(
    source: Box<dyn Source>,
    settings: &Settings,
    log_path: Option<PathBuf>,
) -> anyhow::Result<Outcome> {
    run_screen(source, ScreenOptions { is_started_here: true, ..settings.options(log_path) })
}
