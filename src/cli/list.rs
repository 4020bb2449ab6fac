//! `gnntop list`: the sessions of this user.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{SUCCESS, output};
use crate::figures;
use crate::source::discover::{self, Session};

const EXAMPLES: &str = "\
Examples:
  gnntop list               live sessions first, then those that ended
  gnntop list --live        only live ones

An ended session stays for a day: `gnntop attach PID` shows its last minutes, `gnntop record PID` saves them.";

/// Longer command lines are cut.
const MAX_COMMAND_CHARS: usize = 60;

/// Show who publishes, and who has
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArguments {
    /// Leave out sessions that have ended
    #[arg(long)]
    live: bool,
}

/// Does `gnntop list`.
pub(super) fn list(arguments: &ListArguments) -> anyhow::Result<u8> {
    let dir = discover::sessions_dir();
    let listing = discover::list(&dir)?;
    let shown: Vec<_> = listing.sessions.iter().filter(|session| session.alive || !arguments.live).collect();
    if shown.is_empty() {
        output::note(&format!("no sessions in {}; start one with `gnntop run pna`", dir.display()));
    } else {
        output::say(&table(&shown, SystemTime::now()))?;
    }
    for skipped in &listing.skipped {
        output::note(&format!("skipped: {} {}", skipped.path.display(), skipped.reason));
    }
    Ok(SUCCESS)
}

fn table(sessions: &[&Session], now: SystemTime) -> String {
    let mut rows = vec![["NAME", "PID", "STATE", "STARTED", "ACTIVE", "SIZE", "COMMAND"].map(str::to_owned)];
    rows.extend(sessions.iter().map(|session| row(session, now)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let cells = |row: &[String; 7]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(cells).collect::<Vec<_>>().join("\n")
}

fn row(session: &Session, now: SystemTime) -> [String; 7] {
    let ago = |time: Option<SystemTime>| {
        let passed = time.and_then(|time| now.duration_since(time).ok());
        passed.map_or_else(|| "-".to_owned(), |passed| format!("{} ago", figures::elapsed_time(passed)))
    };
    let started = UNIX_EPOCH.checked_add(Duration::from_nanos(session.info.start.wall_ns));
    [
        session.info.name.clone(),
        session.info.pid.to_string(),
        if session.alive { "live" } else { "ended" }.to_owned(),
        ago(started),
        ago(session.last_active),
        figures::bytes(session.size_bytes as f64),
        shortened(&session.info.command),
    ]
}

/// A command line cut to what fits beside the other columns.
fn shortened(command: &str) -> String {
    match command.char_indices().nth(MAX_COMMAND_CHARS) {
        Some((end, _)) => format!("{}...", &command[..end]),
        None => command.to_owned(),
    }
}
