//! `gnntop clean`: removes sessions that have ended, by age and by their total size.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;

use super::exit::{FAILURE, SUCCESS, UsageError};
use super::patience::{PATIENCE, within};
use super::{far, mcp, new_file, output, quantities, run};
use crate::python::answers;
use gnntop_analysis::figures::{self, counted};
use gnntop_sessions::{Error, IdleSession, Removal, discover, layout};

const EXAMPLES: &str = "\
Examples:
  gnntop clean --older 30d              sessions that ended more than 30 days ago
  gnntop clean --keep-total 5GiB        the oldest, until the others take 5 GiB
  gnntop clean --older 2w --dry-run     only show what would be removed
  gnntop clean --older 0s               every ended session

A live session is never removed. A directory stays, too, if it contains anything but a session's own files, if it was \
renamed or copied, or if another machine may be writing to it. Recordings and logs stay; the shorter copies that a killed
--keep has left go, and what another killed command has left in the temporary directory.

Without this command, the session of a program that ended well is removed a week later, when a new session begins. \
If the program was killed or failed, its session stays. All ended sessions together take at most 1 GiB, or a quarter \
of a small disk.";

/// Remove ended sessions by age and total size
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CleanArguments {
    /// Remove sessions that ended longer ago than this: 12h, 30d, 2w
    #[arg(long, value_name = "TIME", value_parser = quantities::parse_duration)]
    older: Option<Duration>,
    /// Remove the oldest ended sessions until the others take at most this: 500M, 5GiB
    #[arg(long, value_name = "SIZE", value_parser = quantities::parse_bytes)]
    keep_total: Option<u64>,
    /// Remove nothing; show what would be removed
    #[arg(long, short = 'n')]
    dry_run: bool,
}

/// Does `gnntop clean`.
pub(super) fn clean(arguments: &CleanArguments) -> anyhow::Result<u8> {
    let (dir, now) = (layout::sessions_dir(), SystemTime::now());
    let removal = discover::open(&dir)?.map(|sessions| Removal::new(sessions, now));
    let unreadable = || format!("cannot list the sessions directory {}", dir.display());
    let ended = removal.as_ref().map(find_ended).transpose().with_context(unreadable)?.unwrap_or_default();
    if arguments.older.is_none() && arguments.keep_total.is_none() {
        return Err(UsageError::with_message(advice(&ended, now)));
    }
    let copies = remove_abandoned_copies(arguments.dry_run)?;
    let (stay, go) = split(ended, arguments, now);
    let Some(removal) = removal.filter(|_| !go.is_empty()) else {
        let nothing = if copies == 0 { "nothing to remove" } else { "no ended session to remove" };
        output::print(&format!("{nothing}; {} stay", total(&stay)))?;
        return Ok(SUCCESS);
    };
    remove(&removal, &go, &stay, arguments.dry_run, now)
}

/// Removes what killed commands have left, with a line each: of `--keep` beside the recordings of `gnntop run` and in the current
/// folder, of others in the temporary directory. Returns how many there were.
fn remove_abandoned_copies(dry_run: bool) -> anyhow::Result<usize> {
    let recordings = run::entries().into_iter().filter_map(|(entry, _)| entry.recording);
    let mut folders: BTreeSet<PathBuf> = recordings.filter_map(|path| Some(path.parent()?.to_owned())).collect();
    folders.insert(PathBuf::from("."));
    let mut count = 0;
    let temporary = std::env::temp_dir();
    let folders = folders.into_iter().map(|folder| (folder, remove_copies_in as fn(&Path, bool) -> Vec<String>));
    for (folder, remove) in folders.chain([(temporary, remove_temporary_in as _)]) {
        let shown = folder.display().to_string();
        match within(PATIENCE, move || remove(&folder, dry_run)) {
            Some(removed) => {
                count += removed.len();
                removed.iter().try_for_each(|line| output::print(line))?;
            }
            None => output::print_note(&format!("left alone: {shown}: its file system does not answer")),
        }
    }
    Ok(count)
}

/// A line for each copy in this folder that was removed, or would be.
fn remove_copies_in(folder: &Path, dry_run: bool) -> Vec<String> {
    let line = |path: PathBuf| {
        let bytes = path.metadata().map_or(0, |found| found.len());
        // One that cannot be removed stays.
        let is_gone = dry_run || fs::remove_file(&path).is_ok();
        let size = figures::bytes(bytes as f64);
        is_gone.then(|| format!("{} {}  a copy that a killed --keep has left  {size}", verb(dry_run), path.display()))
    };
    new_file::abandoned(folder).filter_map(line).collect()
}

/// The same for folders with copies of other machines' sessions, the jobs of `mcp`, and what Pythons have said of themselves.
fn remove_temporary_in(folder: &Path, dry_run: bool) -> Vec<String> {
    let line = |path: PathBuf| format!("{} {}  a killed command has left it", verb(dry_run), path.display());
    let whole = far::abandoned(folder).chain(mcp::abandoned(folder));
    let whole = whole.filter(|path| dry_run || fs::remove_dir_all(path).is_ok());
    let answers = if dry_run { answers::abandoned(folder).collect() } else { answers::remove_abandoned(folder) };
    whole.chain(answers).map(line).collect()
}

fn verb(dry_run: bool) -> &'static str {
    if dry_run { "would remove" } else { "removed" }
}

/// Every session that has provably ended, the newest first. Reports what is named like a session and is not one.
fn find_ended(removal: &Removal) -> Result<Vec<IdleSession>, Error> {
    let found = removal.candidates()?;
    let mut left_alone: Vec<(String, Error)> = found.others;
    let mut ended = Vec::new();
    for idle in found.idle {
        match removal.check(&idle) {
            Ok(()) => ended.push(idle),
            Err(error) => left_alone.push((idle.name, error)),
        }
    }
    ended.sort_by(|a, b| (b.last_written, &a.name).cmp(&(a.last_written, &b.name)));
    left_alone.sort_by(|a, b| a.0.cmp(&b.0));
    left_alone.iter().for_each(|(name, error)| leave_alone(name, error));
    Ok(ended)
}

fn leave_alone(name: &str, error: &Error) {
    // Another process may have removed it meanwhile.
    if !matches!(error, Error::Live) && !error.is_not_found() {
        output::print_note(&format!("left alone: {name}: it {error}"));
    }
}

/// Those that stay and those that go, each the newest first.
fn split(ended: Vec<IdleSession>, arguments: &CleanArguments, now: SystemTime) -> (Vec<IdleSession>, Vec<IdleSession>) {
    let mut kept_bytes = 0_u64;
    let mut has_room = true;
    ended.into_iter().partition(|session| {
        let is_old = arguments.older.is_some_and(|older| age(session, now) > older);
        kept_bytes = kept_bytes.saturating_add(if is_old { 0 } else { session.bytes });
        // A session that is older than a removed one does not stay because it is small.
        has_room &= arguments.keep_total.is_none_or(|most| kept_bytes <= most);
        !is_old && has_room
    })
}

/// Removes what goes, the oldest first, with a line each.
fn remove(
    removal: &Removal,
    go: &[IdleSession],
    stay: &[IdleSession],
    dry_run: bool,
    now: SystemTime,
) -> anyhow::Result<u8> {
    let done = verb(dry_run);
    let width = go.iter().map(|session| session.name.len()).max().unwrap_or(0);
    let mut removed = Vec::new();
    let mut code = SUCCESS;
    for session in go.iter().rev() {
        match if dry_run { Ok(()) } else { removal.remove(session) } {
            Ok(()) => {
                let (age, size) = (figures::elapsed_time(age(session, now)), figures::bytes(session.bytes as f64));
                output::print(&format!("{done} {:width$}  ended {age:>7} ago  {size:>8}", session.name))?;
                removed.push(session.clone());
            }
            Err(Error::Io(error)) if error.kind() != ErrorKind::NotFound => {
                output::print_error(&format!("cannot remove {}: {error}", session.name));
                code = FAILURE;
            }
            Err(error) => leave_alone(&session.name, &error),
        }
    }
    output::print(&format!("{done} {}; {} stay", total(&removed), total(stay)))?;
    Ok(code)
}

/// The ended sessions, and which options to give.
fn advice(ended: &[IdleSession], now: SystemTime) -> String {
    let oldest = ended.last().map(|session| figures::elapsed_time(age(session, now)));
    let oldest = oldest.map(|age| format!(", the oldest from {age} ago")).unwrap_or_default();
    let are = if ended.len() == 1 { "is" } else { "are" };
    format!(
        "give --older TIME or --keep-total SIZE, such as `gnntop clean --older 30d`; there {are} {}{oldest}",
        total(ended)
    )
}

fn total(sessions: &[IdleSession]) -> String {
    let bytes: u64 = sessions.iter().map(|session| session.bytes).fold(0, u64::saturating_add);
    let count = counted(sessions.len() as u64, "ended session", "ended sessions");
    if sessions.is_empty() { count } else { format!("{count}, {}", figures::bytes(bytes as f64)) }
}

fn age(session: &IdleSession, now: SystemTime) -> Duration {
    now.duration_since(session.last_written).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str, bytes: u64, age_s: u64, now: SystemTime) -> IdleSession {
        IdleSession { name: name.to_owned(), bytes, last_written: now - Duration::from_secs(age_s), ended_well: true }
    }

    /// The names of those that stay, of four that are ten seconds apart.
    fn stay(older_s: Option<u64>, keep_total: Option<u64>) -> String {
        let now = SystemTime::now();
        let all = ["a", "b", "c", "d"].iter().zip([10, 20, 30, 40]).zip([100, 200, 300, 1]);
        let all = all.map(|((name, age_s), bytes)| session(name, bytes, age_s, now)).collect();
        let older = older_s.map(Duration::from_secs);
        split(all, &CleanArguments { older, keep_total, dry_run: false }, now)
            .0
            .into_iter()
            .map(|one| one.name)
            .collect()
    }

    #[test]
    fn the_oldest_go_first() {
        assert_eq!(stay(Some(25), None), "ab");
        assert_eq!(stay(Some(0), None), "");
        assert_eq!(stay(None, Some(1 << 40)), "abcd");
        assert_eq!(stay(None, Some(600)), "abc", "exactly as much stays");
        assert_eq!(stay(None, Some(599)), "ab", "and the small old one does not take the place of the one before it");
        assert_eq!(stay(None, Some(1)), "");
        assert_eq!(stay(Some(15), Some(100)), "a", "what goes by age takes no room");
    }
}
