//! Why an owned program died: put together from its last output, the kernel's figures and its sessions, and added to
//! its sessions.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gnntop_wire::Quantity;

use super::super::patience::{PATIENCE, check_answers, within};
use super::child::Child;
use super::python::PythonSetup;
use crate::death::{Death, Evidence, LastMoment, MemoryChange, OutputEvidence};
use gnntop_analysis::figures::duration;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{Live, Source, SourceState, exit_record};
use gnntop_analysis::store::{SessionState, Store};
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_sessions::{SessionDir, layout};

/// Longest time to find the program's sessions among all others, on a slow disk that answers.
const FIND_WITHIN: Duration = Duration::from_secs(30);
/// The clock of a network file system may be behind by this much.
const CLOCKS_APART: Duration = Duration::from_secs(3600);
/// Longest time to read what the program has published.
const READ_WITHIN: Duration = Duration::from_secs(3);
/// Time between two looks at what it has published.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A session with sensors is written every half second. One that was not for longer had nowhere to write to, or stood still.
const SILENT: Duration = Duration::from_millis(750);
/// Memory of this time before the end is reported.
const MEMORY_NS: u64 = 60_000_000_000;

/// Says why the program died, if it did, and adds that to what it has published.
pub(super) fn examine(
    child: &Child,
    python: &PythonSetup,
    started: SystemTime,
    passed_on: Option<i32>,
) -> Option<Death> {
    let ended = child.ended().filter(|_| !child.ended_well())?;
    let ended_at = SystemTime::now();
    let mut said = OutputEvidence::parse(&child.last_lines());
    // What went to a terminal may have had some.
    said.has_exceptions |= child.log_path().is_none();
    let sessions = find_sessions(child.pid(), python, started).unwrap_or_default();
    let rank = said.failed.as_ref().and_then(|failed| failed.rank);
    let rank = rank.or_else(|| said.exception.as_ref().and_then(|exception| exception.rank));
    let of_rank =
        sessions.iter().find(|session| rank.is_some() && session.info.place.as_ref().map(|place| place.rank) == rank);
    let its_own = of_rank.or_else(|| sessions.first());
    // A program that is started by another, such as a shell, has a process of its own.
    let who = its_own.map_or(child.pid(), |session| session.info.pid);
    said.add_crash_report(&python.crash_report(who));
    let job = std::env::var("SLURM_JOB_ID").ok();
    let death = Death::from_evidence(&Evidence {
        name: child.name(),
        ended,
        passed_on,
        slurm_job: job.as_deref(),
        output: &said,
        memory: child.memory_figures(),
        is_shell: child.is_shell(),
        cpu: child.cpu_figures(),
        moment: its_own.cloned().and_then(|session| moment_within(session, ended_at)).unwrap_or_default(),
    })?;
    let (text, cause) = (death.text.clone(), death.cause);
    // If it cannot be added, it is still shown on the screen and in the list of programs.
    let _ = within(PATIENCE, move || {
        sessions.iter().for_each(|session| drop(exit_record::add(&session.dir, &text, cause.id())));
    });
    Some(death)
}

/// Adds to the sessions of a program that it has ended well, where it could not say so itself: after `os._exit`, `exec`, or a fork
/// whose parent leaves. If that cannot be added, the session seems to have been killed. Returns why it or a part of it has no session,
/// if that is known.
pub(super) fn note_end(child: &Child, python: &PythonSetup, started: SystemTime) -> Option<String> {
    let ended_at = SystemTime::now();
    let sessions = find_sessions(child.pid(), python, started)?;
    if sessions.is_empty() {
        let what = python.explain_end(started.elapsed().unwrap_or_default())?;
        return Some(format!("{} {what}", child.name()));
    }
    let pids: Vec<u32> = sessions.iter().map(|session| session.info.pid).collect();
    // Of the others it is known if they called `os._exit`.
    let (of_child, others): (Vec<_>, Vec<_>) =
        sessions.into_iter().partition(|session| session.info.pid == child.pid());
    let left = |pid| python.crash_report(pid).into_iter().next().filter(|line| line == "os._exit");
    let left: Vec<_> = others.into_iter().filter_map(|session| Some((left(session.info.pid)?, session.dir))).collect();
    let _ = within(PATIENCE, move || {
        left.iter().for_each(|(how, dir)| drop(exit_record::add_end(dir, how)));
        of_child
            .iter()
            .for_each(|session| drop(exit_record::add_end(&session.dir, &end(session, &of_child, ended_at))));
    });
    python.problem(&pids)
}

/// How a process with this session and `all` of these has ended, of which is known that it ended well.
fn end(session: &ListedSession, all: &[ListedSession], at: SystemTime) -> String {
    // After an `exec`, the process has another session.
    let start_ns = |session: &ListedSession| session.info.start.wall_ns;
    let is_last = all.iter().all(|other| start_ns(other) <= start_ns(session));
    let silent = silence(session, at).filter(|_| is_last);
    let silent =
        silent.map(|silent| format!("; nothing was recorded in its last {}", duration(silent.as_nanos() as u64)));
    format!("exit code 0{}", silent.unwrap_or_default())
}

/// The sessions of the program and of the Pythons that it started, all of which have ended; `None` if their directory does not answer.
fn find_sessions(pid: u32, python: &PythonSetup, started: SystemTime) -> Option<Vec<ListedSession>> {
    // Clocks are read one after the other; a tolerance of a second does no harm.
    let since = started.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(Duration::from_secs(1));
    let mut pids: BTreeSet<u32> = python.pids().collect();
    pids.insert(pid);
    let is_of_it = |session: &ListedSession| {
        pids.contains(&session.info.pid) && u128::from(session.info.start.wall_ns) >= since.as_nanos()
    };
    // Directories that have not changed since the program began are not opened.
    let changed_since = started.checked_sub(CLOCKS_APART).unwrap_or(UNIX_EPOCH);
    let dir = layout::sessions_dir();
    check_answers(&dir).ok()?;
    let listing = within(FIND_WITHIN, move || discover::list_since(&dir, changed_since))?.unwrap_or_default();
    Some(listing.sessions.into_iter().filter(|session| !session.alive && is_of_it(session)).collect())
}

/// What the program was doing at its end, unless its session's file system hangs.
fn moment_within(session: ListedSession, ended_at: SystemTime) -> Option<LastMoment> {
    within(READ_WITHIN + PATIENCE, move || last_moment(&session, ended_at)).flatten()
}

/// How long before the end of its program a session was written for the last time, if that is long.
fn silence(session: &ListedSession, ended_at: SystemTime) -> Option<Duration> {
    let dir = SessionDir::open(&session.dir).ok()?;
    // Since then nothing could be written: a file that was changed later has lost what did not fit.
    if let Some(stopped) = dir.publisher().stopped {
        return ended_at.duration_since(UNIX_EPOCH + Duration::from_nanos(stopped.wall_ns)).ok();
    }
    let written = dir.modified(dir.segments().ok()?.pop()?)?;
    ended_at.duration_since(written).ok().filter(|silent| *silent > SILENT)
}

/// What the program was doing at its end. Of several ranks, others may still run.
fn last_moment(session: &ListedSession, ended_at: SystemTime) -> Option<LastMoment> {
    let (mut source, mut run) = (Live::follow(&session.dir), Run::default());
    let give_up_at = Instant::now() + READ_WITHIN;
    while !matches!(source.status().state, SourceState::Ended(_)) {
        if !source.poll(&mut run, Duration::from_millis(100)).more {
            thread::sleep(POLL_INTERVAL);
        }
        if Instant::now() >= give_up_at {
            return None;
        }
    }
    let store = run.store();
    Some(LastMoment {
        last_step: store.steps().last().map(|row| row.step().0),
        phase: phase(store),
        stack: stack(store),
        memory: memory(store),
        silent_ns: silence(session, ended_at).map(|silent| silent.as_nanos() as u64),
    })
}

/// The phase that was open, if no later span says that it had ended.
fn phase(store: &Store) -> Option<(String, Option<u64>)> {
    let training = store.training_track()?;
    // A program that ended its session has left its phases.
    let has_left = matches!(store.session().state(), SessionState::Ended(_));
    let (track, open) = store.open_spans().find(|(track, _)| track.id == training.id && !has_left)?;
    let is_newest = track.lane().and_then(|lane| lane.last_end_ns()).is_none_or(|end_ns| end_ns <= open.t_ns);
    is_newest.then(|| (store.name(open.name).to_owned(), Some(open.step.0).filter(|step| *step > 0)))
}

/// The newest stack of the training thread since its last step ended.
fn stack(store: &Store) -> Option<(String, u64)> {
    let since_ns = store.steps().last().map_or(0, |row| row.end_ns());
    let mut newest = store.stacks().iter().rev().take_while(|stack| stack.t_ns > since_ns);
    let stack = newest.find(|stack| !store.is_loader_stack(stack))?;
    Some((store.stack_place(stack)?, store.now_ns().saturating_sub(stack.t_ns)))
}

/// Memory of its last minute.
fn memory(store: &Store) -> Option<MemoryChange> {
    let series = &store.signals().find(Quantity::ProcessRss)?.series;
    let mut known = series.points().filter_map(|point| Some((point.t_ns(), point.value()?)));
    let (to_ns, to) = known.next_back()?;
    let (from_ns, from) = known.find(|(t_ns, _)| *t_ns >= to_ns.saturating_sub(MEMORY_NS))?;
    Some(MemoryChange { from_bytes: from as f64, to_bytes: to as f64, over_ns: to_ns.saturating_sub(from_ns) })
}
