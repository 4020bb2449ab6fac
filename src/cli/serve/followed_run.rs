//! A run that is followed for its figures, and all runs of this machine as they come and go.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::output;
use crate::export::openmetrics::{Identity, ServedSession};
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::findings::{Judgement, Watch};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::runs::{self, SessionGroup};
use gnntop_analysis::source::{Source, SourceState, follow};
use gnntop_analysis::store::{Limits, Store};
use gnntop_sessions::discover;

/// How long one look at all runs may take, and so how long a request may have to wait.
const POLL_BUDGET: Duration = Duration::from_millis(50);
/// Time between two looks for new runs.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// The last figures of a run stay for so long: several scrapes find them.
const KEPT: Duration = Duration::from_secs(300);
/// Figures need far less than a screen, which draws what was.
const PART_OF_A_STORE: usize = 8;

/// A run and its history.
pub(super) struct FollowedRun {
    source: Box<dyn Source>,
    run: Run,
    watch: Watch,
    judgement: Judgement,
    /// When it was seen that it is over.
    ended: Option<Instant>,
}

impl FollowedRun {
    /// Only this run.
    pub(super) fn new(source: Box<dyn Source>) -> Self {
        Self::with_limits(source, Limits::default())
    }

    fn with_limits(source: Box<dyn Source>, limits: Limits) -> Self {
        let run = Run::with_limits(limits);
        Self { source, run, watch: Watch::new(), judgement: Judgement::default(), ended: None }
    }

    /// Takes what has arrived; returns whether there is more, and why it is over when that is seen first.
    fn poll(&mut self, budget: Duration) -> (bool, Option<String>) {
        let more = self.source.poll(&mut self.run, budget).more;
        let SourceState::Ended(why) = self.source.status().state else { return (more, None) };
        let is_new = self.ended.is_none();
        self.ended.get_or_insert_with(Instant::now);
        (more, is_new.then_some(why))
    }

    fn judge(&mut self) {
        if let Some(judgement) = self.watch.update(&self.run) {
            self.judgement = judgement;
        }
    }

    /// The selected session alone.
    fn alone(&self) -> ServedSession<'_> {
        ServedSession::alone(Catalogue::new(self.run.store()).with_judgement(self.judgement.clone()))
    }

    /// All its ranks with their labels.
    fn ranks(&self) -> impl Iterator<Item = ServedSession<'_>> {
        let ranks: Vec<&Store> = self.run.ranks().all().iter().map(|rank| rank.store).collect();
        let stores = if ranks.is_empty() { vec![self.run.store()] } else { ranks };
        stores.into_iter().filter_map(|store| {
            let has_findings = std::ptr::eq(store, self.run.store());
            let catalogue = Catalogue::new(store);
            let catalogue = if has_findings { catalogue.with_judgement(self.judgement.clone()) } else { catalogue };
            Some(ServedSession { catalogue, identity: Some(identity(store)?), has_findings })
        })
    }
}

/// What tells a session apart from the others of a machine; `None` before it has said who it is.
fn identity(store: &Store) -> Option<Identity> {
    let info = store.session().info()?;
    let host = info.host.clone();
    Some(match &info.place {
        Some(place) => Identity { run: place.run.clone(), rank: place.rank, host },
        None => Identity { run: format!("{}-{}", info.name, info.pid), rank: 0, host },
    })
}

/// What is served.
pub(super) enum Served {
    One(Box<FollowedRun>),
    All(LiveRuns),
}

impl Served {
    /// Takes what has arrived; returns whether there is more.
    pub(super) fn poll(&mut self) -> bool {
        match self {
            Self::One(run) => {
                let (more, ended) = run.poll(POLL_BUDGET);
                if let Some(why) = ended {
                    output::print_note(&format!("{why}; the last figures stay until Ctrl-C"));
                }
                more
            }
            Self::All(runs) => runs.poll(),
        }
    }

    /// What is written now.
    pub(super) fn sessions(&mut self) -> Vec<ServedSession<'_>> {
        match self {
            Self::One(run) => {
                run.judge();
                vec![run.alone()]
            }
            Self::All(runs) => {
                runs.all.iter_mut().for_each(|(_, run)| run.judge());
                runs.all.iter().flat_map(|(_, run)| run.ranks()).collect()
            }
        }
    }
}

/// All runs of a directory that run, or have run a moment ago.
pub(super) struct LiveRuns {
    dir: PathBuf,
    next_scan: Instant,
    /// Each with the directory of the session that it was found by.
    all: Vec<(PathBuf, FollowedRun)>,
}

impl LiveRuns {
    /// Of the sessions in this directory.
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, next_scan: Instant::now(), all: Vec::new() }
    }

    fn poll(&mut self) -> bool {
        if Instant::now() >= self.next_scan {
            self.next_scan = Instant::now() + SCAN_INTERVAL;
            self.scan();
        }
        let budget = POLL_BUDGET / u32::try_from(self.all.len().max(1)).unwrap_or(u32::MAX);
        let polled: Vec<bool> = self.all.iter_mut().map(|(_, run)| run.poll(budget).0).collect();
        self.all.retain(|(_, run)| run.ended.is_none_or(|at| at.elapsed() < KEPT));
        polled.contains(&true)
    }

    /// Looks for new runs. A directory that cannot be read has none, now.
    fn scan(&mut self) {
        let Ok(listing) = discover::list(&self.dir) else { return };
        for group in runs::group(&listing.sessions) {
            let is_known = group.sessions.iter().any(|session| self.follows(&session.dir));
            if group.living() > 0 && !is_known {
                self.all.push(Self::followed(&group));
            }
        }
    }

    fn follows(&self, dir: &Path) -> bool {
        self.all.iter().any(|(known, _)| known == dir)
    }

    fn followed(group: &SessionGroup) -> (PathBuf, FollowedRun) {
        let session = group.newest();
        let limits = Limits::default().shared_by(PART_OF_A_STORE);
        (session.dir.clone(), FollowedRun::with_limits(follow(session), limits))
    }
}
