//! `gnntop list`: the sessions of this user, those of one run together.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::exit::{SUCCESS, UsageError};
use super::output;
use super::run::{self, ProgramEntry};
use crate::platform::process::terminal_columns;
use crate::wrap;
use gnntop_analysis::figures;
use gnntop_analysis::source::exit_record;
use gnntop_analysis::source::latest::Latest;
use gnntop_analysis::source::runs::{self, SessionGroup};
use gnntop_analysis::source::time_left::time_left;
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_sessions::{SessionDir, layout};
use gnntop_wire::text::clean;

const EXAMPLES: &str = "\
Examples:
  gnntop list               live sessions first, then ended ones
  gnntop list --live        only live sessions
  gnntop list --all         all ended sessions, not only the newest 20
  gnntop list --job 4711    those of a Slurm job
  gnntop list ssh:node[1-8]    those of other machines, one after the other

Dashes mean that `gnntop run` has started the program and it publishes nothing: `gnntop attach PID` shows its hardware.
The ranks of a run are listed below it; if it was restarted, those of the newest start. `gnntop attach` and \
`gnntop record` accept the run's id for all of them.

`live, 1h 20m left`: at its pace, up to the steps that its Trainer or `gnntop run --goal` says.
`no step for 40s` in place of live: the program runs, and has done no step for ten usual ones and 3 s; `gnntop attach PID` \
shows where it is. AGE is the time since the start, ENDED the time since the last write. SIZE is what the session's files take on the disk.

`gnntop attach PID` shows the last minutes of an ended session, `gnntop record PID` saves them. A session that ended \
well is kept for a week; if its program was killed or failed, it is kept until `gnntop clean` removes it or 1 GiB is \
exceeded.";

/// Ended runs that are shown, unless `--all` is given.
const ENDED_SHOWN: usize = 20;
/// Stands for a value that is not known, or not yet.
const ABSENT: &str = "-";
/// A command gets at least this many columns.
const MIN_COMMAND_COLUMNS: usize = 10;

/// Longer command lines are cut where the output has no width.
const MAX_COMMAND_COLUMNS: usize = 60;
/// Columns of a name, which is cut beyond.
const MAX_NAME_COLUMNS: usize = 30;
/// Columns of the lines that say why a program died.
const NOTE_COLUMNS: usize = 110;
const HEADINGS: [&str; 6] = ["NAME", "PID", "STATE", "AGE", "ENDED", "SIZE"];
/// Columns between two cells.
const BETWEEN: usize = 2;

/// List live and ended sessions
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArguments {
    /// List only live sessions
    #[arg(long, conflicts_with = "all")]
    live: bool,
    /// List all ended sessions
    #[arg(long)]
    all: bool,
    /// List only the sessions of this Slurm job
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Other machines: `ssh:node[1-8]`, or `slurm:JOB` for those of a job
    #[arg(value_name = "FAR")]
    far: Option<String>,
}

/// Does `gnntop list`.
pub(super) fn list(arguments: &ListArguments) -> anyhow::Result<u8> {
    // With such an address, `list` runs on those machines.
    if let Some(far) = &arguments.far {
        let text = format!("{far} names no machines; write ssh:HOST, ssh:node[1-8] or slurm:JOB");
        return Err(UsageError::with_message(text));
    }
    let dir = layout::sessions_dir();
    let listing = discover::list(&dir)?;
    let silent = if arguments.job.is_none() { run::unpublished(&listing.sessions) } else { Vec::new() };
    let mut groups = runs::group(&listing.sessions);
    if let Some(job) = &arguments.job {
        groups.retain(|group| group.id().is_some_and(|id| is_of_job(id, job)));
    }
    let most_ended = match arguments {
        ListArguments { live: true, .. } => 0,
        ListArguments { all: true, .. } => usize::MAX,
        _ => ENDED_SHOWN,
    };
    let left_out = leave_out(&mut groups, most_ended);
    if groups.is_empty() && silent.is_empty() {
        let what = if arguments.live { "no live sessions" } else { "no sessions" };
        output::print_note(&format!("{what} in {}; start one with `gnntop run pna`", dir.display()));
    } else {
        output::print(&table(&silent, &groups, SystemTime::now(), terminal_columns()))?;
    }
    match (arguments.live, left_out + listing.older) {
        (true, _) | (_, 0) => (),
        (_, older) => output::print_note(&more_hint(older, left_out)),
    }
    for skipped in &listing.skipped {
        output::print_note(&format!("skipped: {} {}", skipped.path.display(), skipped.error));
    }
    Ok(SUCCESS)
}

/// Whether the run with this id is a part of the job: its id begins with the job's.
pub(super) fn is_of_job(id: &str, job: &str) -> bool {
    id.strip_prefix(job).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Keeps live runs and this many ended ones, the newest; returns how many sessions are left out.
fn leave_out(groups: &mut Vec<SessionGroup>, most_ended: usize) -> usize {
    let (mut ended, mut left_out) = (0, 0);
    groups.retain(|group| {
        ended += usize::from(group.living() == 0);
        let is_kept = group.living() > 0 || ended <= most_ended;
        left_out += if is_kept { 0 } else { group.sessions.len() };
        is_kept
    });
    left_out
}

/// Says that older sessions are not listed, and how to list them.
fn more_hint(older: usize, left_out: usize) -> String {
    let older = figures::counted(older as u64, "older ended session", "older ended sessions");
    let listed = if left_out > 0 { "`gnntop list --all` lists them, " } else { "" };
    format!("and {older}; {listed}`gnntop clean` removes old ones")
}

/// A line of the table.
struct SessionRow {
    cells: [String; 6],
    /// The text after the cells.
    tail: RowTail,
    /// Why the program died, on separate lines.
    died: Option<String>,
}

enum RowTail {
    /// A command, cut to the remaining width.
    Command(String),
    /// A sentence that is not cut.
    Note(String),
}

fn table(silent: &[ProgramEntry], groups: &[SessionGroup], now: SystemTime, columns: Option<usize>) -> String {
    let mut rows = vec![SessionRow::new(HEADINGS.map(str::to_owned), RowTail::Note("COMMAND".to_owned()))];
    rows.extend(silent.iter().map(|program| silent_row(program, now)));
    for group in groups {
        rows.extend(run_row(group, now));
        rows.extend(listed(group).into_iter().map(|session| row(session, group, now)));
    }
    merge_notes(&mut rows);
    let width = |column: usize| rows.iter().map(|row| row.cells[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let before: usize = widths.iter().map(|width| width + BETWEEN).sum();
    let room = columns.map_or(MAX_COMMAND_COLUMNS, |columns| columns.saturating_sub(before).max(MIN_COMMAND_COLUMNS));
    rows.iter().map(|row| row.in_columns(&widths, room)).collect::<Vec<_>>().join("\n")
}

/// The reason is the same for all ranks, and said once.
fn merge_notes(rows: &mut [SessionRow]) {
    let mut said = HashSet::new();
    for row in rows {
        row.died.take_if(|died| !said.insert(died.clone()));
    }
}

impl SessionRow {
    fn new(mut cells: [String; 6], tail: RowTail) -> Self {
        cells[0] = shortened(&cells[0], MAX_NAME_COLUMNS);
        Self { cells, tail, died: None }
    }

    fn in_columns(&self, widths: &[usize; 6], room: usize) -> String {
        let cells = self.cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}{:BETWEEN$}", ""));
        let tail = match &self.tail {
            RowTail::Command(command) => shortened(command, room),
            RowTail::Note(note) => note.clone(),
        };
        let line = cells.chain([tail]).collect::<String>();
        let died = self.died.as_ref().map(|died| format!("\n{}", wrap::hanging("    ", "    ", died, NOTE_COLUMNS)));
        format!("{}{}", line.trim_end(), died.unwrap_or_default())
    }
}

/// The row above the ranks of a run; `None` for a single session.
fn run_row(group: &SessionGroup, now: SystemTime) -> Option<SessionRow> {
    let (ranks, published) = group.ranks();
    let starts = group.starts();
    let id = group.id().filter(|_| ranks > 1 || starts > 1)?;
    let sessions = &group.sessions;
    let state = match group.living() {
        0 => "ended".to_owned(),
        living if living == newest_of_ranks(group).len() => "live".to_owned(),
        living => format!("{living} live"),
    };
    let started = sessions.iter().map(|session| session.info.start.wall_ns).min();
    let ended = sessions.iter().filter_map(|session| session.last_active).max().filter(|_| group.living() == 0);
    let size: u64 = sessions.iter().map(|session| session.size_bytes).sum();
    let note = match group.rivals() {
        0 if (published as u32) < ranks => format!("{published} of {ranks} ranks have published"),
        0 if ranks > 1 && starts > 1 => starts_in_words(starts),
        0 => String::new(),
        rivals => format!("TWO RUNS SHARE THE ID: {rivals} ranks are claimed by two sessions at the same time"),
    };
    let cells = [
        id.to_owned(),
        if ranks > 1 { format!("{ranks} ranks") } else { starts_in_words(starts) },
        state,
        age(started.and_then(system_time), now),
        ago(ended, now),
        figures::bytes(size as f64),
    ];
    Some(SessionRow::new(cells, RowTail::Note(note)))
}

fn starts_in_words(starts: usize) -> String {
    figures::counted(starts as u64, "start", "starts")
}

/// The newest session of each rank.
fn newest_of_ranks(group: &SessionGroup) -> Vec<&ListedSession> {
    let rank = |session: &ListedSession| session.info.place.as_ref().map(|place| place.rank);
    group.sessions.chunk_by(|a, b| rank(a) == rank(b)).filter_map(<[ListedSession]>::last).collect()
}

/// The sessions of a run that are listed: if it was restarted, the newest of each rank.
fn listed(group: &SessionGroup) -> Vec<&ListedSession> {
    if group.starts() > 1 { newest_of_ranks(group) } else { group.sessions.iter().collect() }
}

/// A program that `gnntop run` has started and that publishes nothing: only its hardware can be seen.
fn silent_row(program: &ProgramEntry, now: SystemTime) -> SessionRow {
    let cells = [
        clean(program.name.as_bytes()),
        program.program.to_string(),
        "live".to_owned(),
        age(UNIX_EPOCH.checked_add(Duration::from_secs(program.started_s)), now),
        ABSENT.to_owned(),
        ABSENT.to_owned(),
    ];
    SessionRow::new(cells, RowTail::Command(clean(program.command.as_bytes())))
}

fn row(session: &ListedSession, group: &SessionGroup, now: SystemTime) -> SessionRow {
    let info = &session.info;
    let before = match &info.place {
        Some(place) if place.ranks > 1 => format!("  rank {}, ", place.rank),
        _ if group.starts() > 1 => "  newest, ".to_owned(),
        _ => String::new(),
    };
    let cells = [
        format!("{before}{}", info.name),
        info.pid.to_string(),
        state(session, group.starts() > 1),
        age(system_time(info.start.wall_ns), now),
        ago(session.last_active.filter(|_| !session.alive), now),
        figures::bytes(session.size_bytes as f64),
    ];
    let died = if session.alive { None } else { exit_record::read(&session.dir) };
    SessionRow { died, ..SessionRow::new(cells, RowTail::Command(info.command.clone())) }
}

/// Whether it runs, and whether it advances.
fn state(session: &ListedSession, is_restarted: bool) -> String {
    let still = || Latest::read(session)?.still;
    let silent = session.copy.as_ref().and_then(|copy| copy.silent);
    match (session.alive, silent) {
        (false, Some(_)) => "gone".to_owned(),
        (false, None) => "ended".to_owned(),
        (true, Some(silent)) => format!("silent for {}", figures::elapsed_time(silent)),
        (true, None) => match still() {
            Some(still) => format!("no step for {}", figures::elapsed_time(still)),
            None => live_state(session, is_restarted),
        },
    }
}

/// What a session that advances has before it, if it says how far it is meant to go.
fn live_state(session: &ListedSession, is_restarted: bool) -> String {
    let left = || time_left(&SessionDir::open(&session.dir).ok()?, is_restarted);
    left().map_or_else(|| "live".to_owned(), |left| format!("live, {} left", figures::elapsed_time(left)))
}

fn system_time(ns: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_nanos(ns))
}

fn age(time: Option<SystemTime>, now: SystemTime) -> String {
    let passed = time.and_then(|time| now.duration_since(time).ok());
    passed.map_or_else(|| ABSENT.to_owned(), figures::elapsed_time)
}

fn ago(time: Option<SystemTime>, now: SystemTime) -> String {
    let age = age(time, now);
    if age == ABSENT { age } else { format!("{age} ago") }
}

/// A command line cut to this many columns.
fn shortened(command: &str, room: usize) -> String {
    const CUT: &str = "...";
    if command.chars().count() <= room {
        return command.to_owned();
    }
    command.chars().take(room.saturating_sub(CUT.len())).chain(CUT.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_wire::SessionInfo;

    #[test]
    fn a_line_fits_into_eighty_columns() {
        let now = SystemTime::now();
        let day = Duration::from_secs(86_400);
        let command = "python3 train.py --data /data/ogbn-products --hidden 256".to_owned();
        let info = SessionInfo { name: "python3 train.py".into(), pid: 4_194_303, command, ..SessionInfo::default() };
        let session = ListedSession {
            dir: "x".into(),
            info,
            alive: false,
            copy: None,
            size_bytes: 64 << 20,
            last_active: Some(now - day * 29),
            owner: 0,
        };
        let group = SessionGroup { sessions: vec![session] };
        let lines =
            |columns| table(&[], std::slice::from_ref(&group), now, columns).lines().map(str::len).max().unwrap();
        assert!((70..=80).contains(&lines(Some(80))), "{}", lines(Some(80)));
        assert!(lines(None) > 100);
    }

    #[test]
    fn a_long_name_is_cut() {
        let name = "python -m a.module.with.a.very.long.name.indeed";
        let row = SessionRow::new(std::array::from_fn(|_| name.to_owned()), RowTail::Note(String::new()));
        assert_eq!(row.cells[0], "python -m a.module.with.a.v...");
    }

    #[test]
    fn a_command_is_cut_where_it_has_no_room() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefg", 6), "abc...");
        assert_eq!(shortened("", 0), "");
    }
}
