//! A session as plain lines, one per interval: for logs, pipes, screen readers and terminals that cannot be drawn on.
//!
//! ```text
//! pna (pid 4711)
//! 24s: epoch 6, step 261, 10.2 steps/s, p50 88.9 ms, p99 195 ms, slowest 197 ms at step 255, forward 29 %, backward 67 %
//! verdict: 11 spikes (4.1 %); backward-bound (67 %)
//! ```

use std::thread;
use std::time::{Duration, Instant};

use super::exit::SUCCESS;
use super::{output, signals};
use gnntop_analysis::figures;
use gnntop_analysis::findings;
use gnntop_analysis::ranks::lone_hang::find_lone_hang;
use gnntop_analysis::ranks::{Run, watchdog};
use gnntop_analysis::source::{Source, SourceState, Status};
use gnntop_analysis::store::{Phase, SessionState, StepRow, Store};

/// Lines between two verdicts that differ.
const VERDICT_EVERY: u32 = 10;
/// Phases with a smaller share of the wall time are left out.
const WORTH_REPORTING: f64 = 0.005;
/// Time between two looks at the source.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long one look may take.
const POLL_BUDGET: Duration = Duration::from_millis(200);

/// Prints one line per interval until the source ends or a signal arrives. Returns the exit code.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn follow(source: Box<dyn Source>, interval: Duration) -> anyhow::Result<u8> {
    let interruption = signals::Interruption::catch()?;
    let mut view = PlainView::new(source, interval);
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

/// A source, its history, and when the next line is due.
pub(super) struct PlainView {
    source: Box<dyn Source>,
    run: Run,
    interval: Duration,
    next_line: Instant,
    /// When the last events arrived.
    last_news_at: Instant,
    /// Whether events have arrived since the line before.
    has_news: bool,
    /// When what is followed began, and the time at the line before.
    clock: PlainClock,
    /// Steps at the line before.
    steps_before: u64,
    /// The title and hint that were printed, so that each is printed once.
    introduced: Option<String>,
    /// Whether the run hung at the line before.
    hung: bool,
    /// The verdict that was printed last, and lines since then.
    verdict: (String, u32),
    /// Warnings that were printed.
    warned: Vec<String>,
    /// Whether the end was printed, after which a later start may come.
    has_ended: bool,
    /// Whether somebody will say later why a session ended that does not say it itself.
    awaits_reason: bool,
}

impl PlainView {
    /// Lines about what `source` yields, one per interval.
    pub(super) fn new(source: Box<dyn Source>, interval: Duration) -> Self {
        let now = Instant::now();
        Self {
            source,
            run: Run::default(),
            interval,
            next_line: now + interval,
            last_news_at: now,
            has_news: false,
            clock: PlainClock::default(),
            steps_before: 0,
            introduced: None,
            hung: false,
            verdict: (String::new(), 0),
            warned: Vec::new(),
            has_ended: false,
            awaits_reason: false,
        }
    }

    /// Until told otherwise, keeps the end back of a session that does not say why it ended.
    pub(super) fn await_reason(&mut self, awaits: bool) {
        self.awaits_reason = awaits;
    }

    /// Takes what has arrived, prints a line if one is due, and waits a little. Returns whether the source has ended;
    /// then the last line and all warnings are printed, once, and it can be asked again: a run may be started once more.
    pub(super) fn poll(&mut self) -> anyhow::Result<bool> {
        let progress = self.source.poll(&mut self.run, POLL_BUDGET);
        if progress.changed {
            (self.last_news_at, self.has_news) = (Instant::now(), true);
        }
        let status = self.source.status();
        let is_over = matches!(status.state, SourceState::Ended(_));
        if is_over && self.awaits_reason && *self.run.store().session().state() == SessionState::Gone {
            thread::sleep(POLL_INTERVAL.min(self.interval));
            return Ok(false);
        }
        if is_over && self.has_ended {
            return Ok(true);
        }
        self.has_ended = is_over;
        let is_due = Instant::now() >= self.next_line && status.state == SourceState::Running;
        self.introduce(&status, is_over || is_due)?;
        if is_due || is_over {
            (self.has_news, self.verdict.1) = if is_over { (true, u32::MAX) } else { (self.has_news, self.verdict.1) };
            for line in self.lines(self.last_news_at.elapsed()) {
                output::print(&line)?;
            }
            self.warn(&status);
            self.next_line = Instant::now() + self.interval;
        }
        if let SourceState::Ended(why) = &status.state {
            output::print(why)?;
            return Ok(true);
        }
        if !progress.more {
            thread::sleep(POLL_INTERVAL.min(self.interval));
        }
        Ok(false)
    }

    /// The output due now: a line of facts and, from time to time, the verdict.
    fn lines(&mut self, silence: Duration) -> Vec<String> {
        let is_replay = self.source.status().transport.is_some();
        let elapsed = figures::elapsed(self.clock.elapsed_ns(self.run.store(), is_replay));
        let hang = self.hang();
        if !std::mem::take(&mut self.has_news) {
            let silence = format!("{elapsed}: nothing new for {}", figures::elapsed_time(silence));
            return std::iter::once(silence).chain(hang).collect();
        }
        let steps = self.run.store().steps().total();
        // Fewer than before are another program's.
        let before = std::mem::replace(&mut self.steps_before, steps);
        let mut facts = facts(self.run.store(), self.interval, if before > steps { 0 } else { before });
        facts.extend(ranks(&self.run));
        let mut lines = vec![format!("{elapsed}: {}", facts.join(", "))];
        lines.extend(hang);
        self.verdict.1 = self.verdict.1.saturating_add(1);
        let verdict = findings::judge_run(&self.run).to_string();
        let is_due = self.verdict.0.is_empty() || self.verdict.1 >= VERDICT_EVERY;
        if is_due && !verdict.is_empty() && verdict != self.verdict.0 {
            lines.push(format!("verdict: {verdict}"));
            self.verdict = (verdict, 0);
        }
        lines
    }

    /// Where the run is, or which rank holds it up, once each time that it hangs.
    fn hang(&mut self) -> Option<String> {
        let of_ranks = watchdog::find_hang(&self.run.ranks()).map(|hang| hang.sentence());
        let hang = of_ranks.or_else(|| Some(find_lone_hang(self.run.store())?.sentence()));
        let hung = std::mem::replace(&mut self.hung, hang.is_some());
        hang.filter(|_| !hung).map(|hang| format!("hang: {hang}"))
    }

    /// Says on standard error what is missing, each thing once.
    fn warn(&mut self, status: &Status) {
        for warning in warnings(&self.run, status) {
            // A count that grows is the same warning.
            let words = warning.trim_start_matches(|c: char| !c.is_alphabetic()).to_owned();
            if !self.warned.contains(&words) {
                output::print_note(&format!("warning: {warning}"));
                self.warned.push(words);
            }
        }
    }

    /// Says once which program the lines are about. A hint at how to see more waits for the first line: a program that
    /// was just started may have in a moment what it lacks now.
    fn introduce(&mut self, status: &Status, with_hint: bool) -> anyhow::Result<()> {
        let introduction = match &status.hint {
            Some(hint) if with_hint => format!("{}: {hint}", status.title),
            Some(_) => return Ok(()),
            None => status.title.clone(),
        };
        if status.state != SourceState::Waiting && self.introduced.as_ref() != Some(&introduction) {
            output::print(&introduction)?;
            self.introduced = Some(introduction);
            self.verdict = (String::new(), 0);
        }
        Ok(())
    }
}

/// The time at the beginning of each line.
#[derive(Debug, Default)]
struct PlainClock {
    /// The earliest instant that was ever seen.
    first_ns: Option<u64>,
    last_ns: u64,
}

impl PlainClock {
    /// Time since the beginning. It runs on where the session of a program takes the place of its hardware, which began before it.
    fn elapsed_ns(&mut self, store: &Store, is_replay: bool) -> u64 {
        if is_replay {
            return store.elapsed_ns();
        }
        self.first_ns = self.first_ns.into_iter().chain(store.first_ns()).min();
        let now_ns = self.first_ns.map_or(0, |first_ns| store.now_ns().saturating_sub(first_ns));
        self.last_ns = self.last_ns.max(now_ns);
        self.last_ns
    }
}

/// The text of a line: how far the run is, how fast, and where its time goes. Words and commas, no columns and no
/// signs, for screen readers and for searching.
fn facts(store: &Store, interval: Duration, since: u64) -> Vec<String> {
    let mut facts = Vec::new();
    match store.steps().last() {
        Some(step) => {
            facts.push(format!("epoch {}", step.epoch()));
            facts.push(format!("step {}", step.step().0));
        }
        None => facts.push("no steps yet".to_owned()),
    }
    facts.extend(pace(store, interval, since));
    facts.extend(open_span(store, interval));
    facts.extend(shares(store));
    let hardware = store.hardware();
    facts.extend(hardware.process_cores().ok().map(|cores| format!("{cores:.2} cores")));
    facts.extend(hardware.process_rss_bytes().ok().map(|bytes| format!("memory {}", figures::bytes(bytes))));
    facts
}

/// What is missing, and what is wrong with the run.
fn warnings(run: &Run, status: &Status) -> Vec<String> {
    let mut warnings = run.store().losses().describe();
    warnings.extend(status.warnings());
    warnings.extend(run.notes());
    warnings.extend(run.ranks().oversubscribed());
    warnings
}

/// With several ranks, the one that the line is about, and the one that the others waited for in the newest step.
fn ranks(run: &Run) -> Vec<String> {
    let Some(rank) = run.rank().filter(|_| run.is_parallel()) else { return Vec::new() };
    let mut facts = vec![format!("this is rank {rank} of {}", run.expected())];
    let ranks = run.ranks().running();
    let work = ranks.work(0, 1);
    let slowest = work.steps.first().and_then(|step| Some((step, ranks.all().get(step.slowest()?)?)));
    facts.extend(slowest.map(|(step, slowest)| {
        format!("rank {} slowest by {}", slowest.place.rank, figures::duration(step.skew_ns()))
    }));
    facts
}

/// Steps a second, percentiles since the start, and the slowest step since the line before.
fn pace(store: &Store, interval: Duration, since: u64) -> Vec<String> {
    let window_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    // Of an ended program the rate is that of its last step, however long ago that was.
    let is_still = matches!(store.session().state(), SessionState::Ended(_)) && store.steps().total() == since;
    let rate = store.recent_throughput(window_ns).steps_per_s.filter(|_| !is_still);
    let mut pace: Vec<String> = rate.map(|rate| format!("{} steps/s", figures::quantity(rate))).into_iter().collect();
    let percentile =
        |(name, quantile)| Some(format!("{name} {}", figures::duration(store.percentile("period", quantile)?)));
    pace.extend([("period p50", 0.5), ("p99", 0.99)].into_iter().filter_map(percentile));
    let slowest = store.steps().rows(since..store.steps().total()).max_by_key(StepRow::period_ns);
    pace.extend(slowest.map(|row| format!("slowest {} at step {}", figures::duration(row.period_ns()), row.step().0)));
    pace
}

/// The phase that has been open for longer than an interval: nothing else shows that a run hangs.
fn open_span(store: &Store, interval: Duration) -> Option<String> {
    let training = store.training_track().map(|track| track.id);
    let (_, open) = store.open_spans().find(|(track, _)| training.is_none_or(|training| training == track.id))?;
    let ns = store.now_ns().saturating_sub(open.since_ns);
    let name = store.name(open.name);
    (u128::from(ns) >= interval.as_nanos()).then(|| format!("{name} open for {}", figures::duration(ns)))
}

/// The share of each phase that is large enough, and of the gap.
fn shares(store: &Store) -> Vec<String> {
    let word = |phase: &Phase| {
        let share = store.statistics().share(phase.slot).filter(|share| *share >= WORTH_REPORTING)?;
        Some(format!("{} {}", phase.text, figures::percent(share)))
    };
    store.phases().iter().filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_analysis::source::Progress;
    use gnntop_analysis::stream::Sink;
    use gnntop_fixtures::{MS, ParallelRun, TrainingRun, each_item};

    fn store(run: &TrainingRun) -> Store {
        let mut store = Store::new();
        each_item(&run.bytes(), |item| store.apply(item));
        store
    }

    #[test]
    fn clock_runs_on_when_a_session_begins() {
        let store = |from_ns: u64, to_ns: u64| {
            let mut stream = gnntop_fixtures::StreamBuilder::new("pna");
            stream.anchor(from_ns);
            stream.anchor(to_ns);
            let mut store = Store::new();
            each_item(&stream.bytes(), |item| store.apply(item));
            store
        };
        let (hardware, session) = (store(1000 * MS, 6000 * MS), store(5500 * MS, 6500 * MS));
        let mut clock = PlainClock::default();
        let elapsed = |clock: &mut PlainClock, store, is_replay| clock.elapsed_ns(store, is_replay) / MS;
        assert_eq!(elapsed(&mut clock, &hardware, false), 5000);
        assert_eq!(elapsed(&mut clock, &session, false), 5500, "not 1000");
        assert_eq!(clock.elapsed_ns(&session, true), session.elapsed_ns(), "a replay has its own");
    }

    #[test]
    fn line_has_only_words_and_figures() {
        let run = TrainingRun { spikes: vec![(99, "backward", 300 * MS)], ends: false, ..TrainingRun::default() };
        let line = facts(&store(&run), Duration::from_secs(2), 90).join(", ");
        for expected in ["epoch 3, step 100, ", "p50 40.0 ms, p99 ", "slowest 340 ms at step 99", "backward 5", "gap 2"]
        {
            assert!(line.contains(expected), "no {expected:?} in {line}");
        }
        assert!(line.is_ascii() && !line.contains("  "), "{line}");
        assert!(!facts(&store(&run), Duration::from_secs(2), 100).join(", ").contains("slowest"), "no step since");
    }

    #[test]
    fn line_without_steps_has_other_facts() {
        let line =
            facts(&store(&TrainingRun { steps: 0, ends: false, ..TrainingRun::default() }), Duration::from_secs(2), 0);
        assert_eq!(line[0], "no steps yet", "{line:?}");
    }

    #[test]
    fn line_of_a_rank_names_it_and_the_slowest() {
        let parallel =
            ParallelRun { slow: vec![(1, 0..100, "forward", 4 * MS)], host_cores: 1, ..ParallelRun::default() };
        let mut run = Run::default();
        each_item(&parallel.bytes(), |item| run.apply(item));
        assert_eq!(ranks(&run), ["this is rank 0 of 2", "rank 1 slowest by 4.00 ms"]);
        assert_eq!(warnings(&run, &Status::default()), ["2 ranks on 1 core: oversubscribed"]);
        assert!(ranks(&Run::default()).is_empty());
    }

    /// A source that has nothing more to give.
    struct Still(Status);

    impl Source for Still {
        fn poll(&mut self, _sink: &mut dyn Sink, _budget: Duration) -> Progress {
            Progress::default()
        }

        fn status(&self) -> Status {
            self.0.clone()
        }
    }

    #[test]
    fn unchanged_verdict_is_not_repeated() {
        let status = Status { state: SourceState::Running, live: true, ..Status::default() };
        let mut view = PlainView::new(Box::new(Still(status)), Duration::from_secs(2));
        each_item(&TrainingRun::default().bytes(), |item| view.run.apply(item));
        let said = |view: &mut PlainView| view.lines(Duration::from_secs(7)).join("\n");
        view.has_news = true;
        let first = said(&mut view);
        assert!(first.contains("step 100") && first.contains("verdict: "), "{first}");
        let second = said(&mut view);
        assert_eq!(second, "4s: nothing new for 7s", "{second}");
        view.has_news = true;
        let third = said(&mut view);
        assert!(third.contains("step 100") && !third.contains("verdict"), "{third}");
    }
}
