//! Reads recordings and sessions for commands that need all of them at once.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::bail;

use super::{named, output};
use gnntop_analysis::figures::count;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::target::Target;
use gnntop_analysis::source::{Extent, FULL_READ_LIMIT, Recording, Source, Status, follow};
use gnntop_analysis::store::{EventSelection, Limits};
use gnntop_analysis::stream::Sink;

/// Steps that findings and `--skip-steps` can look at: at most 125 MiB. A screen keeps fewer.
const STEP_ROWS: usize = 1 << 19;

/// How a long recording is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub(super) struct ExactArguments {
    /// Read every event of a recording of more than 96 MiB or 10 million events. Without it, only the end is read in
    /// full; what comes before is taken from the recording's summaries
    #[arg(long)]
    exact: bool,
}

impl ExactArguments {
    /// Every event is read.
    pub(super) const ALL: Self = Self { exact: true };

    fn open(self, path: &Path) -> anyhow::Result<(Recording, Extent)> {
        Ok(match self.exact {
            true => (Recording::open(path)?, Extent::AllEvents),
            false => Recording::open_with_past(path, FULL_READ_LIMIT)?,
        })
    }
}

/// Reads everything available now, and reports on standard error what could not be read.
pub(super) fn read_run(input: Option<&str>, exact: ExactArguments) -> anyhow::Result<Run> {
    let (run, status, extent) = match named::find(input)? {
        Target::Recording(path) if path.is_file() => read_recording(&path, exact)?,
        _ => {
            let mut run = empty_run();
            let (status, extent) = read_into(input, exact, &mut run)?;
            (run, status, extent)
        }
    };
    let name = input.unwrap_or(&status.title);
    for warning in status.warnings() {
        output::print_error(&format!("warning: {name}: {warning}"));
    }
    if let Some(said) = describe_extent(extent, &run) {
        output::print_note(&format!("{name}: {said}"));
    }
    Ok(run)
}

/// Reads a recording on two threads, which take a part of its events each; one after the other where that is not possible.
fn read_recording(path: &Path, exact: ExactArguments) -> anyhow::Result<(Run, Status, Extent)> {
    let read = |part: EventSelection| -> anyhow::Result<(Run, Status, Extent)> {
        let mut run = Run::with_limits(Limits { selection: part, ..report_limits() });
        let (mut recording, extent) = exact.open(path)?;
        recording.read_all(&mut run);
        Ok((run, recording.status(), extent))
    };
    if thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        let (rest, spans) = thread::scope(|scope| {
            let spans = scope.spawn(|| read(EventSelection::SpansAlone));
            (read(EventSelection::WithoutSpans), spans.join())
        });
        let (mut run, status, extent) = rest?;
        if let Ok(Ok((spans, ..))) = spans
            && run.take_spans_from(spans)
        {
            return Ok((run, status, extent));
        }
    }
    read(EventSelection::All)
}

/// How a recording was read, if not in full.
fn describe_extent(extent: Extent, run: &Run) -> Option<String> {
    match extent {
        Extent::AllEvents => None,
        Extent::After { .. } => {
            let steps = run.store().past().map_or(0, |past| past.steps);
            Some(format!("its first {} steps are taken from its summaries; --exact reads every event", count(steps)))
        }
        Extent::WithoutSummaries => Some(
            "it is long and its summaries are missing or damaged, so every event is read; `gnntop record` makes a copy \
             with summaries"
                .to_owned(),
        ),
    }
}

/// An empty run, with room for as many steps as a report needs.
pub(super) fn empty_run() -> Run {
    Run::with_limits(report_limits())
}

/// What a report keeps.
fn report_limits() -> Limits {
    Limits { step_rows: STEP_ROWS, ..Limits::default() }
}

/// Reads everything available now.
pub(super) fn read_into(
    input: Option<&str>,
    exact: ExactArguments,
    sink: &mut dyn Sink,
) -> anyhow::Result<(Status, Extent)> {
    match named::find(input)? {
        Target::Recording(path) => {
            let (mut recording, extent) = exact.open(&path)?;
            recording.read_all(sink);
            Ok((recording.status(), extent))
        }
        Target::Session(session) => {
            let mut live = follow(&session);
            while live.poll(sink, Duration::from_secs(1)).more {}
            Ok((live.status(), Extent::AllEvents))
        }
        Target::Process(process) => {
            bail!("process {} does not publish, so there is nothing to report", process.pid())
        }
    }
}

/// The path of an input that is a recording.
pub(super) fn recording_path(input: &str) -> Option<PathBuf> {
    match named::find(Some(input)).ok()? {
        Target::Recording(path) => Some(path),
        Target::Session(_) | Target::Process(_) => None,
    }
}
