//! What a run does, from a part of its newest segments that is read into a store like anything else: what bounds it, its worst
//! finding, its GPUs and its power.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use gnntop_sessions::SessionDir;
use gnntop_sessions::discover::ListedSession;
use gnntop_wire::{Item, Quantity, StreamReader};

use super::pace::usual_steps_per_s;
use crate::energy::{Assumptions, EnergyScope};
use crate::findings::{Finding, Judgement, Severity, held_mean, judge_run};
use crate::ranks::Run;
use crate::source::exit_record;
use crate::store::{Limits, Store};

/// Bytes at the start of a segment that are read for its definitions, and at its end for its events.
const HEAD_LEN: u64 = 64 * 1024;
const TAIL_LEN: u64 = 256 * 1024;
/// Sessions of a run that are read: those of its first ranks, of each host at first one.
const MOST_SESSIONS: usize = 8;
/// Power is the mean over this time, and the utilisation of a GPU is in thousandths of a percent.
const SECOND_NS: u64 = 1_000_000_000;
const ALL_OF_A_GPU: f64 = 100_000.0;

/// What a run does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    /// Steps a second that are usual for it, over what its segments keep.
    pub usual_steps_per_s: Option<f64>,
    /// The phase with the largest share of the time, and the share (0 to 1).
    pub bound: Option<(String, f64)>,
    /// The finding that matters most.
    pub finding: Option<WorstFinding>,
    /// GPUs that its machines report, each once.
    pub gpus: usize,
    /// How busy they are on average (0 to 1).
    pub gpu_busy: Option<f64>,
    /// Bytes in use on all of them.
    pub gpu_memory_bytes: Option<f64>,
    /// Power in watts: of the program where its share is known, else of its machines, each once.
    pub watts: Option<f64>,
    /// Sessions that these figures are from, and how many the run has.
    pub sessions: (usize, usize),
    /// Why its program died.
    pub died: Option<String>,
}

/// A finding in a few words.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstFinding {
    /// Its identifier, as in reports.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// What it costs of the wall time (0 to 1), if it says that.
    pub share: Option<f64>,
    /// A sentence.
    pub summary: String,
}

impl RunFigures {
    /// Reads a part of these sessions of a run. Takes some milliseconds for each.
    pub(super) fn read(sessions: &[&ListedSession], assumptions: &Assumptions) -> Self {
        let chosen = of_each_host(sessions);
        let mut run = Run::with_limits(Limits::default().shared_by(MOST_SESSIONS));
        let read = chosen.iter().filter(|session| read_part(session, &mut run).is_ok()).count();
        let judgement = judge_run(&run);
        let stores: Vec<&Store> = run.members().iter().map(|member| &member.store).collect();
        let first = chosen.first();
        Self {
            usual_steps_per_s: first.and_then(|first| usual_steps_per_s(&SessionDir::open(&first.dir).ok()?)),
            finding: worst(&judgement),
            watts: watts(&stores, assumptions),
            sessions: (read, sessions.len()),
            died: first.filter(|first| !first.alive).and_then(|first| exit_record::read(&first.dir)),
            bound: judgement.verdict.bound,
            ..Self::of_gpus(&stores)
        }
    }

    /// The GPUs of all machines, each once, however many ranks report it.
    fn of_gpus(stores: &[&Store]) -> Self {
        let mut gpus: BTreeMap<(String, u32), (Option<f64>, Option<f64>)> = BTreeMap::new();
        for store in stores {
            let hardware = store.hardware();
            let host = store.session().info().map_or_else(String::new, |info| info.host.clone());
            for gpu in hardware.gpus() {
                let read = |quantity: Quantity| hardware.reading(quantity.with_instance(gpu)).ok();
                let (busy, memory) = gpus.entry((host.clone(), gpu)).or_default();
                let now = || read(Quantity::GpuUtil).map(|busy| busy / ALL_OF_A_GPU);
                *busy = busy.or_else(|| busy_in_steps(store, gpu)).or_else(now);
                *memory = memory.or(read(Quantity::GpuMemoryUsed));
            }
        }
        let busy: Vec<f64> = gpus.values().filter_map(|(busy, _)| *busy).collect();
        let memory: Vec<f64> = gpus.values().filter_map(|(_, memory)| *memory).collect();
        let sum = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>());
        Self {
            gpus: gpus.len(),
            gpu_busy: sum(&busy).map(|all| all / busy.len() as f64),
            gpu_memory_bytes: sum(&memory),
            ..Self::default()
        }
    }
}

/// How busy a GPU was on average (0 to 1) during the steps that were read. The newest reading may be from after a run's end.
fn busy_in_steps(store: &Store, gpu: u32) -> Option<f64> {
    let signal = store.signals().find(Quantity::GpuUtil.with_instance(gpu))?;
    let (first, last) = (store.steps().all().next()?, store.steps().last()?);
    held_mean(signal, &(first.period_start_ns()..last.end_ns())).map(|busy| busy / ALL_OF_A_GPU)
}

/// A few of a run's sessions: the first one of each host, then others, in their order.
fn of_each_host<'s>(sessions: &[&'s ListedSession]) -> Vec<&'s ListedSession> {
    let mut hosts = HashSet::new();
    let (mut first, others): (Vec<_>, Vec<_>) =
        sessions.iter().copied().partition(|session| hosts.insert(session.info.host.as_str()));
    first.extend(others);
    first.truncate(MOST_SESSIONS);
    first
}

/// Passes the newest segment of a session on: all of it if it is short, else the definitions in its beginning, and its end.
fn read_part(session: &ListedSession, run: &mut Run) -> io::Result<()> {
    let dir = SessionDir::open(&session.dir)?;
    let number = dir.segments()?.pop().ok_or(io::ErrorKind::NotFound)?;
    let mut file = dir.segment(number)?;
    let len = file.metadata()?.len();
    if len <= HEAD_LEN + TAIL_LEN {
        apply_items(&mut file, len, run, |_| true)?;
    } else {
        apply_items(&mut file, HEAD_LEN, run, |item| !matches!(item, Item::Block(..) | Item::Damage(_)))?;
        file.seek(SeekFrom::Start(len - TAIL_LEN))?;
        // It begins in the middle of a frame.
        apply_items(&mut file, TAIL_LEN, run, |item| !matches!(item, Item::Damage(_)))?;
    }
    run.current_mut().note_publisher(session.alive);
    Ok(())
}

fn apply_items(file: &mut File, len: u64, run: &mut Run, is_wanted: impl Fn(&Item<'_>) -> bool) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    let mut reader = StreamReader::new();
    reader.fill(&bytes);
    while let Some(item) = reader.next() {
        if is_wanted(&item) {
            run.apply(item);
        }
    }
    Ok(())
}

/// The first finding that is more than a note: they are sorted.
fn worst(judgement: &Judgement) -> Option<WorstFinding> {
    let Finding { kind, share, summary, .. } =
        judgement.findings.found.iter().find(|finding| finding.severity > Severity::Note)?;
    Some(WorstFinding { id: kind.id(), title: kind.title(), share: *share, summary: summary.clone() })
}

/// Power over the last second, of each machine or process once; `None` if it is unknown of one of them.
fn watts(stores: &[&Store], assumptions: &Assumptions) -> Option<f64> {
    let books: Vec<_> =
        stores.iter().map(|store| (store.session().info(), store.energy(assumptions), *store)).collect();
    let session = |store: &Store| store.first_ns().unwrap_or(0)..store.now_ns();
    let scope = books.first().map(|(_, book, store)| book.shown_scope(session(store)))?;
    let mut counted = HashSet::new();
    let each = books.iter().filter(|(info, ..)| match (info, scope) {
        (Some(info), EnergyScope::Device) => counted.insert((info.host.as_str(), 0)),
        (Some(info), EnergyScope::Job) => counted.insert((info.host.as_str(), info.pid)),
        (None, _) => false,
    });
    let watts: Option<Vec<f64>> = each
        .map(|(_, book, _)| {
            let end_ns = book.read_until(scope)?;
            book.total_watts(scope, end_ns.saturating_sub(SECOND_NS)..end_ns)
        })
        .collect();
    watts.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

/// When the time of the batch job ends that a program of this machine belongs to, in seconds since 1970.
pub(super) fn job_ends_s(pid: u32) -> Option<u64> {
    crate::source::process::Process::find(pid)?.variable("SLURM_JOB_END_TIME")?.trim().parse().ok()
}

/// The name of a user, or the number where the system has no name for it.
pub(super) fn user_name(uid: u32) -> String {
    name_in(&std::fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default(), uid)
}

fn name_in(passwd: &str, uid: u32) -> String {
    let number = uid.to_string();
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then_some(name)
    });
    gnntop_wire::text::clean(name.unwrap_or(&number).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::fixture::SessionDir as Written;
    use gnntop_fixtures::{MS, ParallelRun, TrainingRun};
    use gnntop_sessions::discover;

    fn figures(sessions: &[Written]) -> RunFigures {
        let listed: Vec<ListedSession> = sessions.iter().map(|dir| discover::read(dir.path()).unwrap()).collect();
        RunFigures::read(&listed.iter().collect::<Vec<_>>(), &Assumptions::default())
    }

    fn written(dir: &Path, bytes: &[u8]) -> Written {
        let session = Written::create(dir, "pna", 7);
        session.write_segment(0, bytes);
        session
    }

    #[test]
    fn figures_are_those_of_the_whole_run() {
        let dir = tempfile::tempdir().unwrap();
        // Long enough that only its ends are read.
        let run = TrainingRun { steps: 20_000, spikes: vec![(19_990, "forward", 900 * MS)], ..TrainingRun::default() };
        let bytes = run.bytes();
        assert!(bytes.len() as u64 > HEAD_LEN + TAIL_LEN, "{}", bytes.len());
        let figures = figures(&[written(dir.path(), &bytes)]);
        let (bound, share) = figures.bound.unwrap();
        assert_eq!((bound.as_str(), (share * 100.0).round()), ("backward", 55.0));
        assert_eq!(figures.finding.map(|finding| finding.id), Some("spike"));
        assert_eq!((figures.gpus, figures.gpu_busy, figures.sessions), (0, None, (1, 1)));
        assert!(figures.usual_steps_per_s.is_some_and(|rate| (24.0..26.0).contains(&rate)));
    }

    #[test]
    fn figures_are_of_some_sessions_and_of_each_host() {
        let dir = tempfile::tempdir().unwrap();
        let run = ParallelRun { ranks: 12, ..ParallelRun::default() };
        let sessions: Vec<Written> = (0..12)
            .map(|rank| {
                let session = Written::create(dir.path(), "sage", 5000 + rank);
                session.write_segment(0, &run.session(rank));
                session
            })
            .collect();
        assert_eq!(figures(&sessions).sessions, (MOST_SESSIONS, 12));
        let mut listed: Vec<ListedSession> = sessions.iter().map(|dir| discover::read(dir.path()).unwrap()).collect();
        listed[11].info.host = "other".to_owned();
        let chosen = of_each_host(&listed.iter().collect::<Vec<_>>());
        let ranks: Vec<u32> = chosen.iter().map(|session| session.info.pid - 5000).collect();
        assert_eq!(ranks, [0, 11, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn users_have_names_where_the_system_knows_them() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nana:x:1000:100::/home/ana:/bin/sh\n";
        assert_eq!([name_in(passwd, 1000), name_in(passwd, 7)], ["ana", "7"]);
    }
}
