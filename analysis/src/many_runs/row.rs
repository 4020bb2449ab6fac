//! A row for each run: what is known of it, and how old that is.

use std::path::PathBuf;
use std::time::Duration;

use super::figures::RunFigures;

/// A figure and its age.
#[derive(Clone, Debug, PartialEq)]
pub struct Aged<T> {
    /// The figure.
    pub value: T,
    /// How long ago it was read.
    pub age: Duration,
}

/// How a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunState {
    /// It runs and nothing has been written for so long: it is stopped, or its file system is.
    Silent(Duration),
    /// It runs and has done no step for so long, which is long for it.
    Still(Duration),
    /// Some of its ranks run, fewer than have published: how many, and of how many.
    Partly(usize, usize),
    /// It runs.
    Live,
    /// It is over, for so long if that is known.
    Ended(Option<Duration>),
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// The directory of one of its sessions, which opens it.
    pub path: PathBuf,
    /// Its id, or the session's name.
    pub name: String,
    /// The process of its first session.
    pub pid: u32,
    /// The command line of that.
    pub command: String,
    /// Whose it is.
    pub user: String,
    /// Its machines, in the order of ranks.
    pub hosts: Vec<String>,
    /// Ranks that it reports, and how many of them have published.
    pub ranks: (u32, usize),
    /// How it is.
    pub state: RunState,
    /// How long ago it started.
    pub running_for: Option<Duration>,
    /// When the time of its batch job ends, from now.
    pub time_left: Option<Duration>,
    /// The newest step.
    pub step: Option<u64>,
    /// Steps a second now; `None` for one that is over, or where fewer than two steps are known.
    pub steps_per_s: Option<Aged<f64>>,
    /// The rest, if it was read yet.
    pub figures: Option<Aged<RunFigures>>,
}

impl RunRow {
    /// Whether its program runs.
    pub fn is_live(&self) -> bool {
        !matches!(self.state, RunState::Ended(_))
    }

    /// How far its pace is from the usual one: -0.2 is a fifth slower.
    pub fn change(&self) -> Option<f64> {
        let usual = self.figures.as_ref()?.value.usual_steps_per_s.filter(|usual| *usual > 0.0)?;
        Some(self.steps_per_s.as_ref()?.value / usual - 1.0)
    }

    /// The age of its oldest figure that can still change; `None` if none was read yet, or it is over.
    pub fn age(&self) -> Option<Duration> {
        let ages = [self.steps_per_s.as_ref().map(|pace| pace.age), self.figures.as_ref().map(|figures| figures.age)];
        ages.into_iter().flatten().max().filter(|_| self.is_live())
    }
}
