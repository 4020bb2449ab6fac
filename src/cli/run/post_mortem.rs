//! Why an owned program died: put together from its last output, the kernel's figures and its sessions, and added to
//! its sessions.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gnntop_wire::Quantity;

use super::super::patience::{PATIENCE, check_answers, within};
use super::child::Child;
use super::python::PythonSetup;
use crate::death::{Death, Evidence, LastMoment, MemoryChange, OutputEvidence};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{SourceState, exit_record, follow};
use gnntop_analysis::store::{SessionState, Store};
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_sessions::layout;

/// Longest time to find the program's sessions among all others, on a slow disk that answers.
const FIND_WITHIN: Duration = Duration::from_secs(30);
/// The clock of a network file system may be behind by this much.
const CLOCKS_APART: Duration = Duration::from_secs(3600);
/// Longest time to read what the program has published.
const READ_WITHIN: Duration = Duration::from_secs(3);
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
    let mut said = OutputEvidence::parse(&child.last_lines());
    // What went to a terminal may have had some.
    said.has_exceptions |= child.log_path().is_none();
    let sessions = find_sessions(child.pid(), python, started);
    let rank = said.failed.as_ref().and_then(|failed| failed.rank);
    let rank = rank.or_else(|| said.exception.as_ref().and_then(|exception| exception.rank));
    let of_rank =
        sessions.iter().find(|session| rank.is_some() && session.info.place.as_ref().map(|place| place.rank) == rank);
    // A program that is started by another, such as a shell, has a process of its own.
    let who = of_rank.or_else(|| sessions.first()).map_or(child.pid(), |session| session.info.pid);
    said.add_crash_report(&python.crash_report(who));
    let job = std::env::var("SLURM_JOB_ID").ok();
    let death = Death::from_evidence(&Evidence {
        name: child.name(),
        ended,
        passed_on,
        slurm_job: job.as_deref(),
        output: &said,
        memory: child.memory_figures(),
        moment: sessions.first().cloned().and_then(|session| moment_within(session, rank)).unwrap_or_default(),
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
    let sessions = find_sessions(child.pid(), python, started);
    if sessions.is_empty() {
        let why = python.explain_end(started.elapsed().unwrap_or_default())?;
        return Some(format!("{} showed no steps: {why}", child.name()));
    }
    let pids: Vec<u32> = sessions.iter().map(|session| session.info.pid).collect();
    let left = |pid| python.crash_report(pid).first().is_some_and(|line| line == "os._exit");
    let how = |pid| if pid == child.pid() { Some("exit code 0") } else { left(pid).then_some("os._exit") };
    let ends: Vec<_> = sessions.into_iter().filter_map(|session| Some((session.dir, how(session.info.pid)?))).collect();
    let _ = within(PATIENCE, move || ends.iter().for_each(|(dir, how)| drop(exit_record::add_end(dir, how))));
    python.problem(&pids)
}

/// The sessions of the program and of the Pythons that it started, all of which have ended.
fn find_sessions(pid: u32, python: &PythonSetup, started: SystemTime) -> Vec<ListedSession> {
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
    let answers = check_answers(&dir).is_ok();
    let listing = answers.then(|| within(FIND_WITHIN, move || discover::list_since(&dir, changed_since))).flatten();
    let listing = listing.and_then(Result::ok).unwrap_or_default();
    listing.sessions.into_iter().filter(|session| !session.alive && is_of_it(session)).collect()
}

/// What the program was doing at its end, unless its session's file system hangs.
fn moment_within(session: ListedSession, rank: Option<u32>) -> Option<LastMoment> {
    within(READ_WITHIN + PATIENCE, move || last_moment(&session, rank)).flatten()
}

/// What the program was doing at its end, on this rank if one is given.
fn last_moment(session: &ListedSession, rank: Option<u32>) -> Option<LastMoment> {
    let (mut source, mut run) = (follow(session), Run::default());
    let give_up_at = Instant::now() + READ_WITHIN;
    while !matches!(source.status().state, SourceState::Ended(_)) {
        source.poll(&mut run, Duration::from_millis(100));
        if Instant::now() >= give_up_at {
            return None;
        }
    }
    let ranks = run.ranks();
    let store = rank.and_then(|rank| ranks.get(rank)).map_or(run.store(), |rank| rank.store);
    Some(LastMoment {
        last_step: store.steps().last().map(|row| row.step().0),
        phase: phase(store),
        stack: stack(store),
        memory: memory(store),
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
