//! A part of a run: recorded from it, then read like any recording.

use std::io::BufWriter;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::Context;
use tempfile::NamedTempFile;

use super::exit::UsageError;
use super::reading::{ExactArguments, empty_run, read_into, read_run, recording_path};
use super::time_spec::{TimeSpec, parse_time_spec};
use gnntop_analysis::figures;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::recorder::{RecorderOptions, RunRecorder};
use gnntop_analysis::source::{FULL_READ_LIMIT, Recording, Source};
use gnntop_analysis::store::Store;
use gnntop_wire::StepId;

/// How long a recording is read before it is asked whether that is enough.
const SEARCH_BUDGET: Duration = Duration::from_millis(20);
/// Of a long recording, this many steps at the end of a part are read event by event: twice as many as a comparison uses.
const NEWEST_STEPS: u64 = 8192;

/// Which part of a run is meant.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct PartArguments {
    /// Compare from this moment on: `step 12000`, 90s or 2h since the start, 14:10, or "2026-11-17 14:10" (UTC). With
    /// one run, the part before it is side A and the rest side B; with several, all are read from there
    #[arg(long, value_name = "WHEN", value_parser = parse_time_spec)]
    from: Option<TimeSpec>,
    /// Compare up to this moment
    #[arg(long, value_name = "WHEN", value_parser = parse_time_spec)]
    until: Option<TimeSpec>,
    /// With one run: side A is the part from this moment on, instead of all before --from
    #[arg(long, value_name = "WHEN", value_parser = parse_time_spec, requires = "from")]
    baseline_from: Option<TimeSpec>,
    /// With one run: side A ends at this moment [default: --from]
    #[arg(long, value_name = "WHEN", value_parser = parse_time_spec, requires = "from")]
    baseline_until: Option<TimeSpec>,
}

/// A part and its name.
pub(super) struct NamedRun {
    /// The run's name and which part of it this is.
    pub(super) name: String,
    /// The part as a run.
    pub(super) run: Run,
}

/// An end of a part, and the option that gave it.
type End<'a> = (&'a str, Option<TimeSpec>);

/// A run of which parts are read.
struct SearchedRun<'a> {
    name: &'a str,
    run: Run,
    exact: ExactArguments,
}

/// Where a part begins and ends, on the clock of the run.
struct PartBounds {
    window_ns: RangeInclusive<u64>,
    /// Such as `from step 12,000 to step 13,000`.
    words: String,
}

impl PartArguments {
    /// Whether a part was asked for.
    pub(super) fn is_given(&self) -> bool {
        self.from.is_some() || self.until.is_some()
    }

    /// The part of this run; all of it if none was asked for.
    pub(super) fn read_part(&self, name: &str, exact: ExactArguments) -> anyhow::Result<NamedRun> {
        if self.baseline_from.or(self.baseline_until).is_some() {
            let why = "--baseline-from and --baseline-until are for one run, which is compared with itself";
            return Err(UsageError::with_message(why));
        }
        if !self.is_given() {
            return Ok(NamedRun { name: name.to_owned(), run: read_run(Some(name), exact)? });
        }
        let whole = SearchedRun::read(name, exact)?;
        let bounds = whole.bounds(("--from", self.from), ("--until", self.until))?;
        whole.part(&bounds)
    }

    /// Two parts of a run: the part that is asked for, after what it is compared with.
    pub(super) fn read_with_baseline(&self, name: &str, exact: ExactArguments) -> anyhow::Result<[NamedRun; 2]> {
        let Some(from) = self.from else {
            let why = "to compare one run with itself, give --from: the part before it becomes A, the rest B";
            return Err(UsageError::with_message(why));
        };
        let whole = SearchedRun::read(name, exact)?;
        let later = whole.bounds(("--from", self.from), ("--until", self.until))?;
        let earlier = match self.baseline_from.or(self.baseline_until) {
            Some(_) => whole.bounds(
                ("--baseline-from", self.baseline_from),
                ("--baseline-until", self.baseline_until.or(self.from)),
            )?,
            None => {
                let until_ns = later.window_ns.start().saturating_sub(1);
                let words = format!("before {}", from.describe(reference_store(&whole.run), until_ns));
                PartBounds { window_ns: 0..=until_ns, words }
            }
        };
        Ok([whole.part(&earlier)?, whole.part(&later)?])
    }
}

impl<'a> SearchedRun<'a> {
    fn read(name: &'a str, exact: ExactArguments) -> anyhow::Result<Self> {
        Ok(Self { name, run: read_run(Some(name), exact)?, exact })
    }

    fn bounds(&self, from: End<'_>, until: End<'_>) -> anyhow::Result<PartBounds> {
        let store = reference_store(&self.run);
        let (from_ns, until_ns) = (self.find(from)?, self.find(until)?);
        if from_ns.zip(until_ns).is_some_and(|(from_ns, until_ns)| from_ns >= until_ns) {
            let covers = describe_coverage(self.name, store);
            return Err(UsageError::with_message(format!("{} must be before {}: {covers}", from.0, until.0)));
        }
        let word = |at: Option<(TimeSpec, u64)>, word: &str| {
            at.map(|(moment, t_ns)| format!("{word} {}", moment.describe(store, t_ns)))
        };
        let words = [word(from.1.zip(from_ns), "from"), word(until.1.zip(until_ns), "to")];
        let words = words.into_iter().flatten().collect::<Vec<String>>().join(" ");
        // A step that ended at that very moment came before it. A live run is compared as it was.
        let from_ns = from_ns.map_or(0, |t_ns| t_ns.saturating_add(1));
        Ok(PartBounds { window_ns: from_ns..=until_ns.unwrap_or(store.now_ns()), words })
    }

    /// When a moment was, on the clock of the run.
    fn find(&self, (option, moment): End<'_>) -> anyhow::Result<Option<u64>> {
        let Some(moment) = moment else { return Ok(None) };
        let store = reference_store(&self.run);
        let (first_ns, last_ns) = (store.first_ns().unwrap_or(0), store.now_ns());
        let exactly = || moment.step().and_then(|step| self.step_ns(step));
        let found = exactly().or_else(|| moment.resolve(store)).filter(|t_ns| (first_ns..=last_ns).contains(t_ns));
        let outside = || {
            UsageError::with_message(format!("{option} is outside the run: {}", describe_coverage(self.name, store)))
        };
        found.ok_or_else(outside).map(Some)
    }

    /// When a step began that the run knows only as one of many in a summary.
    fn step_ns(&self, step: u64) -> Option<u64> {
        let store = reference_store(&self.run);
        let is_summed = store.past().is_some() && store.steps().find_step(StepId(step)).is_none();
        let path = recording_path(self.name).filter(|_| is_summed)?;
        let mut recording = Recording::open_before_step(&path, step, FULL_READ_LIMIT).ok()?;
        let mut run = Run::default();
        loop {
            let progress = recording.poll(&mut run, SEARCH_BUDGET);
            let steps = reference_store(&run).steps();
            let is_passed = steps.last().is_some_and(|row| row.step().0 >= step);
            if is_passed || !progress.more {
                return steps.find_step(StepId(step)).map(|row| row.period_start_ns());
            }
        }
    }

    /// Records a part into a temporary file, and reads that.
    fn part(&self, bounds: &PartBounds) -> anyhow::Result<NamedRun> {
        let Self { name, run, exact } = self;
        let failed = || format!("cannot record a part of {name} in {}", std::env::temp_dir().display());
        let file = NamedTempFile::new().with_context(failed)?;
        let window_ns = bounds.window_ns.clone();
        let until_ns = *window_ns.end();
        let options = RecorderOptions { window_ns, chunk_bytes: u64::MAX, ..RecorderOptions::default() };
        let mut recorder = RunRecorder::new(BufWriter::new(&file), options);
        match recording_path(name).filter(|_| *exact != ExactArguments::ALL) {
            Some(path) => {
                let mut recording = Recording::open_until(&path, until_ns, NEWEST_STEPS, FULL_READ_LIMIT)?;
                while !recorder.is_done() && recording.poll(&mut recorder, SEARCH_BUDGET).more {}
            }
            None => _ = read_into(Some(name), ExactArguments::ALL, &mut recorder)?,
        }
        recorder.flush().with_context(failed)?;
        let mut part = empty_run();
        if recorder.written_bytes() > 0 {
            Recording::open(file.path())?.read_all(&mut part);
        }
        if part.store().steps().total() == 0 {
            let covers = describe_coverage(name, reference_store(run));
            return Err(UsageError::with_message(format!("no step ended {}: {covers}", bounds.words)));
        }
        Ok(NamedRun { name: format!("{name} {}", bounds.words), run: part })
    }
}

/// The clock of a recording's window: that of the first session.
fn reference_store(run: &Run) -> &Store {
    run.members().first().map_or_else(|| run.store(), |member| &member.store)
}

/// The time and the steps that a run covers.
fn describe_coverage(name: &str, store: &Store) -> String {
    let (first_ns, last_ns) = (store.first_ns().unwrap_or(0), store.now_ns());
    let elapsed = figures::elapsed(last_ns.saturating_sub(first_ns));
    let clock = |t_ns: u64| store.session().wall_ns(t_ns).map(figures::utc);
    let time = match clock(first_ns).zip(clock(last_ns)) {
        Some((first, last)) => format!("{first} to {last}, {elapsed}"),
        None => elapsed,
    };
    let total = store.steps().total();
    let step = |ordinal: u64| store.steps().known_row(ordinal).map(|row| figures::count(row.step().0));
    match step(0).zip(step(total.saturating_sub(1))) {
        Some((first, last)) => format!("{name} covers {time}, steps {first} to {last}"),
        None => format!("{name} covers {time}, and no step"),
    }
}
