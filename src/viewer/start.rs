//! What can be shown: a source, beside another one or alone, the choice of one, or a table of many runs.

use super::options::{Outcome, ScreenOptions};
use super::run::{Followed, Viewer};
use super::runs_feed::RunsFeed;
use crate::app::{App, Background, ColorDepth, Preferences};
use crate::runs_table::Order;
use crate::ui::theme::Theme;
use gnntop_analysis::many_runs::RunsWatch;
use gnntop_analysis::source::Source;
use gnntop_analysis::source::catalog::EmptySource;

/// Shows what the source yields until a key or a signal ends it. The terminal is as before when this returns.
///
/// # Errors
/// When the terminal cannot be taken, read or written.
pub fn run_screen(source: Box<dyn Source>, options: ScreenOptions) -> anyhow::Result<Outcome> {
    run_comparison(source, None, options)
}

/// Shows the catalog of the options to choose from, and then what was chosen.
///
/// # Errors
/// As [`run_screen`].
pub fn run_choice(options: ScreenOptions) -> anyhow::Result<Outcome> {
    show(Shown::Choice, options)
}

/// Shows many runs in a table, in this order and with this filter, and those that are opened from it.
///
/// # Errors
/// As [`run_screen`], and if the system cannot start a thread.
pub fn run_table(watch: RunsWatch, order: Order, filter: String, options: ScreenOptions) -> anyhow::Result<Outcome> {
    show(Shown::Table { runs: RunsFeed::start(watch)?, order, filter }, options)
}

/// As [`run_screen`], with another session to compare with.
///
/// # Errors
/// When the terminal cannot be taken, read or written.
pub fn run_comparison(
    source: Box<dyn Source>,
    against: Option<Box<dyn Source>>,
    options: ScreenOptions,
) -> anyhow::Result<Outcome> {
    show(Shown::Source { source, against }, options)
}

/// What is shown at first.
enum Shown {
    /// A source, beside another one if there is one to compare with.
    Source { source: Box<dyn Source>, against: Option<Box<dyn Source>> },
    /// What can be opened.
    Choice,
    /// Many runs.
    Table { runs: RunsFeed, order: Order, filter: String },
}

fn show(shown: Shown, mut options: ScreenOptions) -> anyhow::Result<Outcome> {
    let env = |name: &str| std::env::var(name).ok();
    let depth = options.colors.unwrap_or_else(|| ColorDepth::detect(env));
    let background = options.background.or_else(|| Background::detect(env));
    let preferences = std::mem::take(&mut options.preferences);
    let preferences = Preferences { background: background.unwrap_or_default(), ..preferences };
    let mut app = App::with_preferences(options.log_path.is_some(), preferences);
    if options.is_started_here {
        app.own_the_program();
    }
    if let Some(hint) = options.hint.take() {
        app.show_hint(hint);
    }
    if options.catalog.is_some() {
        app.offer_sessions(matches!(shown, Shown::Choice));
    }
    let mut followed = Followed { source: Box::new(EmptySource), against: None, runs: None };
    match shown {
        Shown::Source { source, against } => (followed.source, followed.against) = (source, against),
        Shown::Choice => (),
        Shown::Table { runs, order, filter } => {
            app.offer_runs(order, filter);
            followed.runs = Some(runs);
        }
    }
    // The sixteen and no colours are the terminal's own on any background.
    let asks_background = background.is_none() && matches!(depth, ColorDepth::True | ColorDepth::Indexed);
    Viewer::new(app, Theme::new(depth, options.ascii), followed, options)?.run(asks_background)
}
