//! `gnntop top`: many runs in one table, on the screen, as text or as JSON.
//!
//! ```text
//! text.rs   the table as text, for logs and pipes
//! json.rs   the same runs as an object, for programs
//! ```

mod json;
mod text;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::exit::SUCCESS;
use super::patience::{self, check_answers};
use super::settings::{ScreenArguments, Settings};
use super::{output, screen, signals};
use crate::app;
use crate::platform::process::terminal_columns;
use crate::runs_table::{Column, Order};
use gnntop_analysis::many_runs::{RunRow, RunsWatch, SessionsPlace};
use gnntop_sessions::layout;

const EXAMPLES: &str = "\
Examples:
  gnntop top                          all runs of this machine, or of $GNNTOP_DIR; Enter opens one, q comes back
  gnntop top --live --sort usual      only those that run, the one furthest behind its usual pace first
  gnntop top --filter node7           only those with node7 in host, name, user, state, bound, finding or command
  gnntop top /shared/*/gnntop         the runs in these directories, of any user; root: /run/user/*/gnntop
  gnntop top --once                   one table as text, then exit, like `top -b -n1`
  gnntop top --once --json            the same as JSON
  gnntop top --plain --interval 1m    a table a minute; without a terminal too

USUAL is the difference from the run's usual steps a second, over what its files keep. `silent for 43s`: the program runs and has \
written nothing for so long; `no step for 40s`: it runs and has done no step for ten usual ones and 3 s. W is the program's part \
where that is known, else its machines'. LEFT is the time that its Slurm job has left.

No run is read as a whole. With hundreds of runs the figures get older, not the viewer busier: AGE is that of the oldest one.";

/// A table that is printed once waits so long for all figures.
const READING: Duration = Duration::from_secs(10);
/// Time between two looks while tables are printed.
const TURN: Duration = Duration::from_millis(100);

/// Watch many runs in one table
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TopArguments {
    /// Directories of sessions, of any user [default: this user's]
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Only runs that run
    #[arg(long)]
    live: bool,
    /// Column to sort by; the key `s` switches to the next one
    #[arg(long, value_name = "COLUMN", default_value = Column::State.name(), value_parser = column_parser())]
    sort: Column,
    /// Sort the other way round
    #[arg(long)]
    reverse: bool,
    /// Only runs with this text in name, user, host, state, bound, finding or command
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// Print one table and exit
    #[arg(long)]
    once: bool,
    /// Print JSON, an object in a line for each table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    screen: ScreenArguments,
}

fn column_parser() -> impl TypedValueParser<Value = Column> {
    let names = PossibleValuesParser::new(Column::ALL.map(Column::name));
    names.try_map(|name| Column::from_name(&name).ok_or("is not a column"))
}

/// Does `gnntop top`.
pub(super) fn top(arguments: &TopArguments) -> anyhow::Result<u8> {
    let settings = Settings::load(&arguments.screen)?;
    let order = Order { column: arguments.sort, is_reversed: arguments.reverse };
    let mut watch = RunsWatch::new(places(&arguments.dirs)?, !arguments.live, settings.assumptions.clone());
    if arguments.once {
        let read = patience::within(READING + patience::PATIENCE, move || {
            watch.read_all(READING);
            watch
        });
        let Some(mut read) = read else { anyhow::bail!("the sessions' file system does not answer") };
        print(&mut read, order, arguments)?;
        return Ok(SUCCESS);
    }
    if arguments.json || !screen::is_wanted(&settings) {
        return follow(watch, order, arguments, settings.interval);
    }
    screen::show_table(watch, order, arguments.filter.clone(), &settings)
}

/// The directories that were named, or this user's own.
fn places(dirs: &[PathBuf]) -> anyhow::Result<Vec<SessionsPlace>> {
    if dirs.is_empty() {
        let own = layout::sessions_dir();
        check_answers(&own)?;
        return Ok(vec![SessionsPlace::Own(own)]);
    }
    Ok(dirs.iter().cloned().map(SessionsPlace::Named).collect())
}

/// Prints a table each interval until a signal arrives. The first one waits for an interval, so that it has figures.
fn follow(mut watch: RunsWatch, order: Order, arguments: &TopArguments, interval: Duration) -> anyhow::Result<u8> {
    let interruption = signals::Interruption::catch()?;
    let mut next = Instant::now() + interval;
    loop {
        watch.poll();
        if Instant::now() >= next {
            print(&mut watch, order, arguments)?;
            next = Instant::now() + interval;
        }
        if let Some(signal) = interruption.take() {
            return Ok(signals::exit_code(signal));
        }
        thread::sleep(TURN.min(interval));
    }
}

fn print(watch: &mut RunsWatch, order: Order, arguments: &TopArguments) -> anyhow::Result<()> {
    let all = watch.rows();
    let mut rows: Vec<&RunRow> = all.iter().filter(|row| app::passes(row, &arguments.filter)).collect();
    order.sort(&mut rows);
    if arguments.json {
        output::print(&json::table(&rows).to_string())?;
    } else if rows.is_empty() {
        output::print_note("no runs; start one with `gnntop run -- python train.py`");
    } else {
        output::print(&text::table(&rows, terminal_columns()))?;
    }
    for problem in watch.problems() {
        output::print_error(problem);
    }
    Ok(())
}
