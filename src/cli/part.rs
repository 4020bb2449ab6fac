//! A part of a run: recorded from it, then read like any recording.

use std::io::BufWriter;
use std::ops::RangeInclusive;

use anyhow::Context;
use tempfile::NamedTempFile;

use super::moment::{Moment, moment};
use super::reading::{ExactArguments, empty_run, read_into, read_run};
use super::usage::UsageError;
use gnntop_analysis::figures;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::recorder::{RecorderOptions, RunRecorder};
use gnntop_analysis::source::Recording;
use gnntop_analysis::store::Store;

/// Which part of a run is meant.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct PartArguments {
    /// Compare from this moment on: `step 12000`, 90s or 2h since the start, 14:10, or "2026-11-17 14:10" (UTC). With
    /// one run, the part before it is side A and the rest side B; with several, all are read from there
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    from: Option<Moment>,
    /// Compare up to this moment
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Moment>,
}

/// A part and its name.
pub(super) struct Named {
    /// The run's name and which part of it this is.
    pub(super) name: String,
    /// The part as a run.
    pub(super) run: Run,
}

/// Where a part begins and ends, on the clock of the run.
struct Bounds {
    from_ns: u64,
    until_ns: u64,
    /// Such as `from step 12,000 to step 13,000`.
    words: String,
    /// The time and the steps that the run covers, for errors.
    covers: String,
}

impl PartArguments {
    /// Whether a part was asked for.
    pub(super) fn is_given(&self) -> bool {
        self.from.is_some() || self.until.is_some()
    }

    /// The part of this run; all of it if none was asked for.
    pub(super) fn of(&self, name: &str, exact: ExactArguments) -> anyhow::Result<Named> {
        if !self.is_given() {
            return Ok(Named { name: name.to_owned(), run: read_run(Some(name), exact)? });
        }
        let whole = read_run(Some(name), ExactArguments::ALL)?;
        let bounds = self.bounds(name, &whole)?;
        drop(whole);
        bounds.read(name, bounds.from_ns..=bounds.until_ns, &bounds.words)
    }

    /// What came before the part, and the part.
    pub(super) fn with_before(&self, name: &str) -> anyhow::Result<[Named; 2]> {
        let Some(from) = self.from else {
            let why = "to compare one run with itself, give --from: the part before it becomes A, the rest B";
            return Err(UsageError::told(why));
        };
        let whole = read_run(Some(name), ExactArguments::ALL)?;
        let bounds = self.bounds(name, &whole)?;
        let before = format!("before {}", from.words(reference(&whole), bounds.from_ns.saturating_sub(1)));
        drop(whole);
        Ok([
            bounds.read(name, 0..=bounds.from_ns.saturating_sub(1), &before)?,
            bounds.read(name, bounds.from_ns..=bounds.until_ns, &bounds.words)?,
        ])
    }

    fn bounds(&self, name: &str, run: &Run) -> anyhow::Result<Bounds> {
        let store = reference(run);
        let covers = covers(name, store);
        let (first_ns, last_ns) = (store.first_ns().unwrap_or(0), store.now_ns());
        let find = |option: &str, moment: Moment| {
            let found = moment.of_run(store).filter(|t_ns| (first_ns..=last_ns).contains(t_ns));
            found.ok_or_else(|| UsageError::told(format!("{option} is outside the run: {covers}")))
        };
        let from_ns = self.from.map(|from| find("--from", from)).transpose()?;
        let until_ns = self.until.map(|until| find("--until", until)).transpose()?;
        if from_ns.zip(until_ns).is_some_and(|(from_ns, until_ns)| from_ns >= until_ns) {
            return Err(UsageError::told(format!("--from must be before --until: {covers}")));
        }
        let word = |at: Option<(Moment, u64)>, word: &str| {
            at.map(|(moment, t_ns)| format!("{word} {}", moment.words(store, t_ns)))
        };
        let words = [word(self.from.zip(from_ns), "from"), word(self.until.zip(until_ns), "to")];
        let words = words.into_iter().flatten().collect::<Vec<String>>().join(" ");
        // A step that ended at that very moment came before it. A live run is compared as it was.
        let from_ns = from_ns.map_or(0, |t_ns| t_ns.saturating_add(1));
        Ok(Bounds { from_ns, until_ns: until_ns.unwrap_or(last_ns), words, covers })
    }
}

impl Bounds {
    /// Records a part into a temporary file, and reads that.
    fn read(&self, name: &str, window_ns: RangeInclusive<u64>, words: &str) -> anyhow::Result<Named> {
        let failed = || format!("cannot record a part of {name} in {}", std::env::temp_dir().display());
        let file = NamedTempFile::new().with_context(failed)?;
        let options = RecorderOptions { window_ns, chunk_bytes: u64::MAX, ..RecorderOptions::default() };
        let mut recorder = RunRecorder::new(BufWriter::new(&file), options);
        read_into(Some(name), ExactArguments::ALL, &mut recorder)?;
        recorder.flush().with_context(failed)?;
        let mut run = empty_run();
        if recorder.written_bytes() > 0 {
            Recording::open(file.path())?.read_all(&mut run);
        }
        if run.store().steps().total() == 0 {
            return Err(UsageError::told(format!("no step ended {words}: {}", self.covers)));
        }
        Ok(Named { name: format!("{name} {words}"), run })
    }
}

/// The clock of a recording's window: that of the first session.
fn reference(run: &Run) -> &Store {
    run.members().first().map_or_else(|| run.store(), |member| &member.store)
}

/// The time and the steps that a run covers.
fn covers(name: &str, store: &Store) -> String {
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
