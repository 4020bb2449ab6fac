//! `gnntop list`: the sessions of this user, those of one run together.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::exit::SUCCESS;
use super::output;
use super::run::{self, Entry};
use crate::wrap;
use gnntop_analysis::figures;
use gnntop_analysis::source::discover::{self, Session};
use gnntop_analysis::source::runs::{self, SessionGroup};
use gnntop_wire::text::clean;

const EXAMPLES: &str = "\
Examples:
  gnntop list               live sessions first, then ended ones
  gnntop list --live        only live sessions

A program that `gnntop run` has started and that publishes nothing has dashes: `gnntop attach PID` shows its hardware.
The ranks of a run are listed below it. `gnntop attach` and `gnntop record` accept its id for all of them.

An ended session is kept for a day: `gnntop attach PID` shows its last minutes, `gnntop record PID` saves them.";

/// Longer command lines are cut.
const MAX_COMMAND_CHARS: usize = 60;
/// Columns of the lines that say why a program died.
const NOTE_COLUMNS: usize = 110;

/// List live and ended sessions
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArguments {
    /// List only live sessions
    #[arg(long)]
    live: bool,
}

/// Does `gnntop list`.
pub(super) fn list(arguments: &ListArguments) -> anyhow::Result<u8> {
    let dir = discover::sessions_dir();
    let listing = discover::list(&dir)?;
    let silent = run::unpublished(&listing.sessions);
    let shown: Vec<_> = listing.sessions.iter().filter(|session| session.alive || !arguments.live).collect();
    if shown.is_empty() && silent.is_empty() {
        output::note(&format!("no sessions in {}; start one with `gnntop run pna`", dir.display()));
    } else {
        output::say(&table(&silent, &shown, SystemTime::now()))?;
    }
    if listing.older > 0 && !arguments.live {
        output::note(&format!("and {} older ended sessions", figures::count(listing.older as u64)));
    }
    for skipped in &listing.skipped {
        output::note(&format!("skipped: {} {}", skipped.path.display(), skipped.reason));
    }
    Ok(SUCCESS)
}

fn table(silent: &[Entry], sessions: &[&Session], now: SystemTime) -> String {
    let sessions: Vec<Session> = sessions.iter().map(|session| (*session).clone()).collect();
    let mut rows = vec![["NAME", "PID", "STATE", "STARTED", "ACTIVE", "SIZE", "COMMAND"].map(str::to_owned)];
    rows.extend(silent.iter().map(|program| silent_row(program, now)));
    let mut notes: Vec<(usize, &str)> = Vec::new();
    let groups = runs::group(&sessions);
    for group in &groups {
        rows.extend(run_row(group, now));
        for session in &group.sessions {
            // What one rank died of is the same for all.
            let is_new = |died: &&str| notes.iter().all(|(_, text)| text != died);
            let note = session.died.as_deref().filter(is_new).map(|died| (rows.len(), died));
            notes.extend(note);
            rows.push(row(session, now));
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let cells = |row: &[String; 7]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    let with_note = |(at, row): (usize, &[String; 7])| {
        let note = notes.iter().find(|(of, _)| *of == at);
        let note = note.map(|(_, died)| format!("\n{}", wrap::hanging("    ", "    ", died, NOTE_COLUMNS)));
        format!("{}{}", cells(row), note.unwrap_or_default())
    };
    rows.iter().enumerate().map(with_note).collect::<Vec<_>>().join("\n")
}

/// The row above the ranks of a run; none for a session by itself.
fn run_row(group: &SessionGroup, now: SystemTime) -> Option<[String; 7]> {
    let (ranks, published) = group.ranks();
    let id = group.id().filter(|_| ranks > 1)?;
    let sessions = &group.sessions;
    let state = match group.living() {
        0 => "ended".to_owned(),
        living if living == sessions.len() => "live".to_owned(),
        living => format!("{living} live"),
    };
    let started = sessions.iter().map(|session| session.info.start.wall_ns).min();
    let size: u64 = sessions.iter().map(|session| session.size_bytes).sum();
    let note = match group.rivals() {
        0 if (published as u32) < ranks => format!("{published} of {ranks} ranks have published"),
        0 => String::new(),
        rivals => format!("TWO RUNS SHARE THE ID: {rivals} ranks are claimed by two sessions at the same time"),
    };
    Some([
        id.to_owned(),
        format!("{ranks} ranks"),
        state,
        ago(started.and_then(wall), now),
        ago(sessions.iter().filter_map(|session| session.last_active).max(), now),
        figures::bytes(size as f64),
        note,
    ])
}

/// A program that `gnntop run` has started and that publishes nothing: only its hardware can be seen.
fn silent_row(program: &Entry, now: SystemTime) -> [String; 7] {
    [
        clean(program.name.as_bytes()),
        program.program.to_string(),
        "live".to_owned(),
        ago(UNIX_EPOCH.checked_add(Duration::from_secs(program.started_s)), now),
        "-".to_owned(),
        "-".to_owned(),
        shortened(&clean(program.command.as_bytes())),
    ]
}

fn row(session: &Session, now: SystemTime) -> [String; 7] {
    let info = &session.info;
    let rank = info.place.as_ref().filter(|place| place.ranks > 1).map(|place| format!("  rank {}, ", place.rank));
    [
        format!("{}{}", rank.unwrap_or_default(), info.name),
        info.pid.to_string(),
        if session.alive { "live" } else { "ended" }.to_owned(),
        ago(wall(info.start.wall_ns), now),
        ago(session.last_active, now),
        figures::bytes(session.size_bytes as f64),
        shortened(&info.command),
    ]
}

fn wall(ns: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_nanos(ns))
}

fn ago(time: Option<SystemTime>, now: SystemTime) -> String {
    let passed = time.and_then(|time| now.duration_since(time).ok());
    passed.map_or_else(|| "-".to_owned(), |passed| format!("{} ago", figures::elapsed_time(passed)))
}

/// A command line cut to what fits beside the other columns.
fn shortened(command: &str) -> String {
    match command.char_indices().nth(MAX_COMMAND_CHARS) {
        Some((end, _)) => format!("{}...", &command[..end]),
        None => command.to_owned(),
    }
}
