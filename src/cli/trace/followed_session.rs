//! The session that is to be traced: what program it is of, whether it is still alive, and when a step is slow.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::cli::{output, signals};
use gnntop_analysis::figures;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{Live, Source, target};
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_wire::{Framework, FrameworkName};

/// Time between two looks at the session.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const POLL_BUDGET: Duration = Duration::from_millis(200);
/// A session says what it is of when it begins.
const INTRODUCED_WITHIN: Duration = Duration::from_secs(2);
/// Steps before it is known what is slow.
const KNOWN_AFTER: u64 = 100;

/// A session that is followed.
pub(super) struct FollowedSession {
    label: String,
    session: ListedSession,
    source: Live,
    run: Run,
}

impl FollowedSession {
    /// Follows a session, once it is known to be of PyTorch.
    ///
    /// # Errors
    /// If it is not.
    pub(super) fn follow(session: &ListedSession) -> anyhow::Result<Self> {
        let mut watched = Self {
            label: target::label(session),
            session: session.clone(),
            source: Live::follow(&session.dir),
            run: Run::default(),
        };
        let until = Instant::now() + INTRODUCED_WITHIN;
        watched.catch_up();
        while watched.framework().is_none() && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
            watched.catch_up();
        }
        match watched.framework() {
            // Where gnntop came before torch, it knows only of Python; the program itself knows better by now.
            Some(Framework { name: FrameworkName::Torch | FrameworkName::Python, .. }) => Ok(watched),
            found => {
                let what = found.map_or_else(String::new, |framework| format!(" ({framework})"));
                bail!(
                    "{} is not a PyTorch program{what}: only PyTorch can be traced. Try `gnntop run --stacks 20` for Python, \
                     your own spans (`span!`, gnntop.span), or perf",
                    watched.label
                )
            }
        }
    }

    fn framework(&self) -> Option<&Framework> {
        self.run.store().session().framework()
    }

    fn catch_up(&mut self) {
        while self.source.poll(&mut self.run, POLL_BUDGET).more {}
    }

    /// The session's name, with its process id.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.session.info.pid
    }

    /// Whether the program still runs.
    pub(super) fn is_alive(&self) -> bool {
        discover::read(&self.session.dir).is_ok_and(|session| session.alive)
    }

    /// Waits for a step that takes longer than the p99 of those before it. Returns a signal that came instead.
    ///
    /// # Errors
    /// If the program ends, or it takes too long.
    pub(super) fn wait_for_slow(
        &mut self,
        interruption: &signals::Interruption,
        until: Instant,
    ) -> anyhow::Result<Option<i32>> {
        let mut seen = self.run.store().steps().total();
        loop {
            if let Some(signal) = interruption.take() {
                return Ok(Some(signal));
            }
            let statistics = self.run.store().statistics();
            let (steps, p99_ns) = (statistics.steps(), statistics.period().percentile(0.99));
            let limit_ns = p99_ns.filter(|_| steps >= KNOWN_AFTER);
            output::show_progress(&match limit_ns {
                Some(ns) => format!("waiting for a step of more than {} (p99)", figures::duration(ns)),
                None => format!("waiting for {KNOWN_AFTER} steps before judging which is slow ({steps} so far)"),
            });
            self.catch_up();
            let store = self.run.store();
            let new = store.steps().rows(seen..u64::MAX);
            if let Some(slow) = limit_ns.and_then(|limit_ns| new.into_iter().find(|row| row.period_ns() > limit_ns)) {
                output::show_progress("");
                output::print_note(&format!("step {} took {}", slow.step().0, figures::duration(slow.period_ns())));
                return Ok(None);
            }
            seen = store.steps().total();
            if Instant::now() >= until {
                output::show_progress("");
                bail!("no step of {} was slow in that time: wait longer with --within", self.label);
            }
            if !self.is_alive() {
                output::show_progress("");
                bail!("{} has ended", self.label);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}
