//! A session as plain lines, one an interval: for logs, pipes and terminals that cannot be drawn on.

use std::thread;
use std::time::{Duration, Instant};

use super::{SUCCESS, output, signals};
use crate::figures;
use crate::findings;
use crate::source::{Source, State, Status};
use crate::store::Store;

/// Time between two lines.
pub(super) const LINE_INTERVAL: Duration = Duration::from_secs(2);
/// Time between two looks at the source.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long one look may take.
const POLL_BUDGET: Duration = Duration::from_millis(200);

/// Prints a line an interval until the source ends or a signal comes. Gives the exit code.
///
/// # Errors
/// When standard output takes no more.
pub(super) fn follow(source: Box<dyn Source>) -> anyhow::Result<u8> {
    let interruption = signals::Interruption::catch()?;
    let mut view = PlainView::new(source);
    loop {
        let ended = view.poll()?;
        if ended {
            return Ok(SUCCESS);
        }
        if let Some(signal) = interruption.take() {
            return Ok(signals::exit_code(signal));
        }
    }
}

/// A source, what it gave, and when the next line is due.
pub(super) struct PlainView {
    source: Box<dyn Source>,
    store: Store,
    next_line: Instant,
    /// The title and hint that were printed, so that each is printed once.
    told: Option<String>,
}

impl PlainView {
    pub(super) fn new(source: Box<dyn Source>) -> Self {
        Self { source, store: Store::new(), next_line: Instant::now() + LINE_INTERVAL, told: None }
    }

    /// Takes what has come, prints a line if one is due, and waits a little. Says whether the source has ended;
    /// then the last line and all warnings are printed.
    pub(super) fn poll(&mut self) -> anyhow::Result<bool> {
        let progress = self.source.poll(&mut self.store, POLL_BUDGET);
        let status = self.source.status();
        let is_over = matches!(status.state, State::Ended(_));
        let is_due = Instant::now() >= self.next_line && status.state == State::Running;
        self.introduce(&status, is_over || is_due)?;
        if let State::Ended(why) = &status.state {
            output::say(&line(&self.store))?;
            output::say(why)?;
            status.warnings().iter().for_each(|warning| output::note(&format!("warning: {warning}")));
            return Ok(true);
        }
        if is_due {
            output::say(&line(&self.store))?;
            self.next_line = Instant::now() + LINE_INTERVAL;
        }
        if !progress.more {
            thread::sleep(POLL_INTERVAL);
        }
        Ok(false)
    }

    /// Says once whom the lines are about. A hint at how to get more waits for the first line: what a program that
    /// was just started lacks now, it may have in a moment.
    fn introduce(&mut self, status: &Status, with_hint: bool) -> anyhow::Result<()> {
        let introduction = match &status.hint {
            Some(hint) if with_hint => format!("{}: {hint}", status.title),
            Some(_) => return Ok(()),
            None => status.title.clone(),
        };
        if status.state != State::Waiting && self.told.as_ref() != Some(&introduction) {
            output::say(&introduction)?;
            self.told = Some(introduction);
        }
        Ok(())
    }
}

/// One line: how far, how fast, and what there is to say about it.
fn line(store: &Store) -> String {
    let elapsed = figures::elapsed(store.elapsed_ns());
    let Some(step) = store.steps().last() else { return format!("{elapsed}  no steps yet{}", hardware(store)) };
    let period = |quantile| store.percentile("step", quantile).map_or_else(|| "-".to_owned(), figures::duration);
    let (p50, p99) = (period(0.5), period(0.99));
    let step = figures::count(step.step().0);
    format!("{elapsed}  step {step}  p50 {p50}  p99 {p99}  {}", findings::verdict(store))
}

/// What the process takes from the machine, as far as it is known.
fn hardware(store: &Store) -> String {
    let hardware = store.hardware();
    let cores = hardware.process_cores().ok().map(|cores| format!("  {cores:.2} cores"));
    let memory = hardware.process_rss_bytes().ok().map(|bytes| format!("  {}", figures::bytes(bytes)));
    cores.into_iter().chain(memory).collect()
}
