//! The process's one session: opened on request, closed at the end, and left alone by children. Also what it says of events that
//! no table had room for, and what a person asks of it through `gnntop trace`: the drain thread finds that, and Python looks at
//! the end of each step whether there is something, and reads the text.

use std::mem::discriminant;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use gnntop_probe::{Engine, Fact, Goal, GoalUnit, Launched, Origin, Place, RankKind, Session, SessionBuilder};

use crate::warning;

/// Most facts of a kind in a session.
const MAX_FACTS: usize = 64;
/// The key of the framework in what a session is opened with.
const FRAMEWORK: &str = "framework";

/// What happens to events now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    /// There is no session yet, or it was closed.
    NotOpen = 0,
    Publishing = 1,
    /// Turned off by `GNNTOP=0`.
    Off = 2,
    /// This is a child of a process that had a session.
    Forked = 3,
    /// Nothing will ever be published: without a thread. If there is no room, the session waits for it.
    Failed = 4,
}

impl Status {
    fn from_code(code: u32) -> Self {
        match code & 0xFF {
            1 => Self::Publishing,
            2 => Self::Off,
            3 => Self::Forked,
            4 => Self::Failed,
            _ => Self::NotOpen,
        }
    }
}

/// The status in the low byte; above it, the number of sessions so far, so that a thread can see that its track belongs to
/// an earlier one.
static STATE: AtomicU32 = AtomicU32::new(Status::NotOpen as u32);
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Whether there is a request, or the end of one, that has not been dealt with.
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);
static REQUEST: Mutex<String> = Mutex::new(String::new());
static OWN: Mutex<OwnSession> = Mutex::new(OwnSession { session: None, facts: Vec::new() });

struct OwnSession {
    session: Option<Session>,
    facts: Vec<Fact>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What happens to events now, and the number of the session.
#[inline]
pub(crate) fn state() -> (Status, u32) {
    let state = STATE.load(Ordering::Relaxed);
    (Status::from_code(state), state >> 8)
}

/// Whether what is recorded now is published.
pub(crate) fn is_publishing() -> bool {
    with_session(Session::is_publishing).unwrap_or(false)
}

pub(crate) fn is_forked() -> bool {
    state().0 == Status::Forked
}

/// Whether a person has turned everything off. Reads the environment.
pub(crate) fn is_off() -> bool {
    state().0 == Status::Off || std::env::var_os("GNNTOP").is_some_and(|value| value == "0")
}

/// Number of forks between the first process and this one, as far as they were noticed.
pub(crate) fn generation() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

fn set_status(status: Status) {
    let _ = STATE.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |state| Some(state & !0xFF | status as u32));
}

/// Opens the session, unless there is one; returns whether there is one now. `facts` are lines `key=value`.
pub(crate) fn open(name: &str, facts: &str) -> bool {
    match state().0 {
        Status::Publishing => return true,
        Status::NotOpen => {}
        Status::Off | Status::Forked | Status::Failed => return false,
    }
    if is_off() {
        set_status(Status::Off);
        return false;
    }
    warning::set_panic_hook();
    watch_forks();
    let mut own = lock(&OWN);
    if own.session.is_none() {
        let (place, facts) = split_place(facts);
        facts.into_iter().for_each(|(key, value)| own.set_fact(opening_fact(key, value)));
        compute_threads(&place).into_iter().for_each(|fact| own.set_fact(fact));
        let builder = in_directory(Session::builder(name).origin(Origin::Python), &place);
        let builder = with_place(builder, place).on_request(set_request);
        let session = builder.on_warning(|warning| warning::note(&warning.to_string())).start();
        let status = if session.dir().is_some() { Status::Publishing } else { Status::Failed };
        own.facts.iter().for_each(|fact| session.add_fact(fact.clone()));
        own.session = Some(session);
        // A kill leaves no time to say it later.
        own.publish_lost(|count| count.load(Ordering::Relaxed));
        let number = (STATE.load(Ordering::Relaxed) >> 8).wrapping_add(1);
        STATE.store(number << 8 | status as u32, Ordering::SeqCst);
    }
    state().0 == Status::Publishing
}

/// Ends the session normally. Its facts then have the exact numbers of lost events.
pub(crate) fn close() {
    if !matches!(state().0, Status::Publishing | Status::Failed) {
        return;
    }
    set_status(Status::NotOpen);
    let mut own = lock(&OWN);
    LOST[LostEvent::Thread as usize].fetch_add(KEPT.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    own.publish_lost(|count| count.swap(0, Ordering::Relaxed));
    // What is not recorded is of one session alone.
    own.facts.retain(|fact| !matches!(fact, Fact::NotRecorded { .. }));
    let session = own.session.take();
    drop(own);
    drop(session);
}

/// Runs `f` with the session, if one is open.
pub(crate) fn with_session<T>(f: impl FnOnce(&Session) -> T) -> Option<T> {
    if state().0 != Status::Publishing {
        return None;
    }
    lock(&OWN).session.as_ref().map(f)
}

/// Adds a fact to the current session, or to the next one.
pub(crate) fn fact(fact: Fact) {
    if matches!(state().0, Status::Off | Status::Forked) {
        return;
    }
    let mut own = lock(&OWN);
    own.set_fact(fact.clone());
    if let Some(session) = &own.session {
        session.add_fact(fact);
    }
}

/// Says how far the run is meant to go: this many steps more than `done`, which are those of the session so far, and those before
/// its checkpoint. With no steps, this many epochs in all.
pub(crate) fn goal(done: u64, more_steps: u64, epochs: u64, by: String) {
    let resumed = lock(&OWN).facts.iter().find_map(|fact| match fact {
        Fact::Resumed { steps } => Some(*steps),
        _ => None,
    });
    let goal = match (more_steps, epochs) {
        (0, 0) => return,
        (0, number) => Goal { unit: GoalUnit::Epochs, number },
        (more, _) => {
            let before = done.saturating_add(resumed.unwrap_or(0));
            Goal { unit: GoalUnit::Steps, number: before.saturating_add(more) }
        }
    };
    fact(Fact::Goal { goal, by });
}

/// Adds a fact to the current session, and to no later one, unless another thread has its lock.
pub(crate) fn fact_at_once(fact: Fact) {
    if state().0 == Status::Publishing
        && let Ok(own) = OWN.try_lock()
        && let Some(session) = &own.session
    {
        session.add_fact(fact);
    }
}

impl OwnSession {
    /// Says exactly how many events were lost so far, as `read` from their counts.
    fn publish_lost(&self, read: impl Fn(&AtomicU64) -> u64) {
        let Some(session) = &self.session else { return };
        let counts = LOST_FACTS.iter().zip(LOST.iter().map(read)).filter(|(_, count)| *count > 0);
        counts.for_each(|(what, count)| session.add_fact(not_recorded(what, count.to_string())));
    }

    fn set_fact(&mut self, fact: Fact) {
        let alike = self.facts.iter().filter(|known| discriminant(*known) == discriminant(&fact)).count();
        match self.facts.iter_mut().find(|known| known.key() == fact.key()) {
            Some(known) => *known = fact,
            None if alike < MAX_FACTS => self.facts.push(fact),
            None => {}
        }
    }
}

/// A fact that a session is opened with.
fn opening_fact(key: &str, value: &str) -> Fact {
    match key {
        FRAMEWORK => Fact::Framework(value.into()),
        _ => Fact::Other { key: key.to_owned(), text: value.to_owned() },
    }
}

/// What no table had room for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LostEvent {
    /// Spans inside of spans.
    Deep = 0,
    /// Threads.
    Thread = 1,
    /// Events before there is a session.
    Early = 2,
}

/// What the facts about it are about.
const LOST_FACTS: [&str; 3] =
    ["spans nested too deep", "events of threads without a track", "the oldest events before the session"];
static LOST: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// Events that threads keep for a track which they may never get.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// Counts an event that is lost. The fact follows at each power of two, since a program that loses millions must not pay for each,
/// and only if that takes no wait.
#[cold]
pub(crate) fn count_lost(lost: LostEvent) {
    let at = lost as usize;
    let count = LOST[at].fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_power_of_two() {
        fact_at_once(not_recorded(LOST_FACTS[at], format!("{count} or more")));
    }
}

/// Counts events that a thread keeps until it has a track.
pub(crate) fn count_kept(events: u64) {
    KEPT.fetch_add(events, Ordering::Relaxed);
}

/// Counts events that a thread kept and that are written now.
pub(crate) fn count_written(events: u64) {
    let _ = KEPT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| Some(kept.saturating_sub(events)));
}

/// Counts this many lost events, and says it now, since a kill leaves no time for it.
pub(crate) fn add_lost(lost: LostEvent, number: u64) {
    if number > 0 {
        let at = lost as usize;
        let count = LOST[at].fetch_add(number, Ordering::Relaxed) + number;
        fact_at_once(not_recorded(LOST_FACTS[at], count.to_string()));
    }
}

fn not_recorded(what: &str, amount: String) -> Fact {
    Fact::NotRecorded { what: what.to_owned(), amount }
}

/// Takes a request, or an empty text when it was withdrawn.
fn set_request(text: &str) {
    let mut request = lock(&REQUEST);
    text.clone_into(&mut request);
    // That it was withdrawn must be noticed, too: a trace may be running.
    IS_REQUESTED.store(true, Ordering::Relaxed);
}

/// Whether there is a request, or the end of one, that has not been dealt with.
#[inline]
pub(crate) fn is_requested() -> bool {
    IS_REQUESTED.load(Ordering::Relaxed)
}

/// The newest request; empty without one and after it was withdrawn.
pub(crate) fn request() -> String {
    lock(&REQUEST).clone()
}

/// The request with this text has been dealt with. A newer one stays open.
pub(crate) fn close_request(text: &str) {
    let request = lock(&REQUEST);
    if *request == text {
        IS_REQUESTED.store(false, Ordering::Relaxed);
    }
}

/// The session's directory; empty without one.
pub(crate) fn directory() -> String {
    with_session(|session| session.dir().map(|dir| dir.display().to_string())).flatten().unwrap_or_default()
}

/// Makes forked children notice that they are not the process with the session: they have neither its threads nor its files.
pub(crate) fn watch_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        LOST.iter().chain([&KEPT]).for_each(|count| count.store(0, Ordering::Relaxed));
        if matches!(state().0, Status::Publishing | Status::Failed) {
            set_status(Status::Forked);
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only changes atomics, which is allowed between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// The pairs of lines `key=value`.
type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// Separates a process's place in a run from facts.
fn split_place(lines: &str) -> (Pairs<'_>, Pairs<'_>) {
    const PLACE: [&str; 13] = [
        "directory",
        "run",
        "rank",
        "ranks",
        "engine",
        "device",
        "threads",
        "host_ranks",
        "host_cores",
        "stage",
        "stages",
        "copy",
        "copies",
    ];
    let pairs = lines.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim()));
    pairs.partition(|(key, _)| PLACE.contains(key))
}

/// Sets the directory of sessions, if it is said.
fn in_directory(builder: SessionBuilder, place: &Pairs<'_>) -> SessionBuilder {
    match place.iter().find(|(key, directory)| *key == "directory" && !directory.is_empty()) {
        Some((_, directory)) => builder.directory(directory),
        None => builder,
    }
}

/// How many threads the program computes with, which a run of a single session says too.
fn compute_threads(place: &Pairs<'_>) -> Option<Fact> {
    let (_, threads) = place.iter().find(|(key, _)| *key == "threads")?;
    threads.parse().ok().map(Fact::ComputeThreads)
}

/// Sets the session's place among several ranks; a run of a single session has none.
fn with_place(builder: SessionBuilder, pairs: Vec<(&str, &str)>) -> SessionBuilder {
    let text = |key: &str| pairs.iter().find(|(known, _)| *known == key).map_or("", |(_, value)| value);
    let number = |key: &str, otherwise: u32| text(key).parse().unwrap_or(otherwise);
    let ranks = number("ranks", 1);
    if ranks < 2 {
        return builder;
    }
    let rank = number("rank", 0);
    let run = Some(text("run").to_owned()).filter(|run| !run.is_empty()).unwrap_or_else(|| Launched::from_env().run);
    builder.place(Place {
        run,
        rank,
        ranks,
        stage: number("stage", 0),
        stages: number("stages", 1),
        copy: number("copy", rank),
        copies: number("copies", ranks),
        engine: Engine::from(text("engine")),
        kind: RankKind::Process,
        device: text("device").to_owned(),
        threads: number("threads", 1),
        host_ranks: number("host_ranks", 1),
        host_cores: number("host_cores", 1),
        clock: None,
        attempt: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_request_stays_open() {
        set_request("trace 1 5\n");
        assert!(is_requested());
        set_request("trace 2 5\n");
        close_request("trace 1 5\n");
        assert!(is_requested() && request() == "trace 2 5\n");
        close_request("trace 2 5\n");
        assert!(!is_requested());
        set_request("trace 3 5\n");
        set_request("");
        assert!(is_requested() && request().is_empty());
        close_request("");
        assert!(!is_requested());
    }
}
