//! `gnntop export`: recordings for other tools.

use std::io::{self, BufWriter, Write};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::assumptions::EnergyArguments;
use super::exit::{SUCCESS, UsageError};
use super::named::{self, NAMED};
use super::new_file::{self, NewFile};
use super::settings::Settings;
use super::{output, quantities};
use crate::export::openmetrics::ServedSession;
use crate::export::{ExportFormat, Exporter, RowFilter, WideExporter, WideForm, emissions, openmetrics, phases};
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::energy::EnergyScope;
use gnntop_analysis::figures::{bytes, count, counted};

use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{OneRank, Recording, Source};
use gnntop_analysis::store::Store;

const EXAMPLES: &str = "\
Examples:
  gnntop export pna.gnntop --to perfetto -o pna.pftrace      open it at ui.perfetto.dev
  gnntop export pna.gnntop --to chrome -o pna.json
  gnntop export pna.gnntop --to csv --steps 100..120
  gnntop export pna.gnntop --to ndjson --from 90s --until 2m | head
  gnntop export pna.gnntop --to parquet -o pna.parquet       DuckDB, pandas, Polars
  gnntop export pna.gnntop --to csv --wide -o steps.csv      a row per step, a column per phase, for pandas
  gnntop export pna.gnntop --to speedscope -o pna.speedscope.json
  gnntop export pna.gnntop --to collapsed | flamegraph.pl --countname us > pna.svg
  gnntop export pna.gnntop --to hlog --interval 10s -o pna.hlog
  gnntop export pna.gnntop --to openmetrics
  gnntop export pna.gnntop --to emissions -o emissions.csv --region CA-QC

Times are on the publisher's clock. Events that are partly in the window are exported whole.";

/// Exports that may get larger than this are warned about.
const LARGE: u64 = 256 << 20;
/// A histogram log has times in milliseconds.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Convert a recording for other tools
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExportArguments {
    /// The recording, or a session by name, process id, run or their beginning
    #[arg(value_name = NAMED)]
    file: PathBuf,
    /// Format
    #[arg(long, value_name = "FORMAT", value_parser = ExportTarget::parser())]
    to: ExportTarget,
    /// With --to csv or parquet: one row per step, with a column for each phase, batch sizes, loss, epoch and rank
    #[arg(long)]
    wide: bool,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Only steps A to B, as the program numbers them, excluding B
    #[arg(long, value_name = "A..B", value_parser = parse_steps, conflicts_with_all = ["from", "until"])]
    steps: Option<Range<u64>>,
    /// Only from this time on, counted from the beginning of the recording
    #[arg(long, value_name = "TIME", value_parser = quantities::parse_duration)]
    from: Option<Duration>,
    /// Only until this time
    #[arg(long, value_name = "TIME", value_parser = quantities::parse_duration)]
    until: Option<Duration>,
    /// For a run of several ranks: the rank to export [default: the first in the file, with --wide all]
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// With --to hlog: time covered by each histogram [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = quantities::parse_duration)]
    interval: Option<Duration>,
    /// With --to emissions: count whole devices instead of the process's share
    #[arg(long)]
    machine: bool,
    #[command(flatten)]
    energy: EnergyArguments,
}

/// What to write: events in a form, or figures of the whole recording.
#[derive(Clone, Copy, Debug)]
enum ExportTarget {
    Events {
        form: ExportFormat,
        /// The size relative to that of the recording.
        times: u64,
    },
    Openmetrics,
    Emissions,
}

impl ExportTarget {
    fn parser() -> impl TypedValueParser<Value = Self> {
        let figures = [
            (PossibleValue::new("openmetrics"), Self::Openmetrics),
            (PossibleValue::new("emissions").help("CodeCarbon's emissions.csv"), Self::Emissions),
        ];
        let events =
            ExportFormat::ALL.map(|(name, form, times)| (PossibleValue::new(name), Self::Events { form, times }));
        let all: Vec<(PossibleValue, Self)> = events.into_iter().chain(figures).collect();
        let names = PossibleValuesParser::new(all.iter().map(|(name, _)| name.clone()));
        names.try_map(move |given| {
            let found = all.iter().find(|(name, _)| name.matches(&given, false));
            found.map(|(_, to)| *to).ok_or("no such format")
        })
    }
}

fn parse_steps(text: &str) -> Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(a, b)| Some(a.trim().parse().ok()?..b.trim().parse().ok()?));
    range.filter(|range| !range.is_empty()).ok_or_else(|| "give A..B, such as 100..120".to_owned())
}

/// Does `gnntop export`.
pub(super) fn export(mut arguments: ExportArguments) -> anyhow::Result<u8> {
    arguments.file = named::find_path(&arguments.file)?;
    let arguments = &arguments;
    let is_hlog = matches!(arguments.to, ExportTarget::Events { form: ExportFormat::Hlog { .. }, .. });
    if arguments.interval.is_some() && !is_hlog {
        bail!("--interval is for --to hlog");
    }
    if arguments.wide {
        return export_wide(arguments);
    }
    let has_window = arguments.steps.is_some() || arguments.from.is_some() || arguments.until.is_some();
    if has_window && matches!(arguments.to, ExportTarget::Openmetrics | ExportTarget::Emissions) {
        bail!("this format covers the whole recording: remove --steps, --from and --until");
    }
    let (mut form, times) = match arguments.to {
        ExportTarget::Events { form, times } => (form, times),
        ExportTarget::Openmetrics => return export_metrics(arguments),
        ExportTarget::Emissions => return export_emissions(arguments),
    };
    if let (ExportFormat::Hlog { interval_ns }, Some(interval)) = (&mut form, arguments.interval) {
        *interval_ns = whole_interval_ns(interval)?;
    }
    warn_of_size(arguments, times);
    let window_ns = window(arguments)?;
    let (written, left_out) = match &arguments.output {
        Some(path) => export_to_file(form, arguments, window_ns, path)?,
        None => export_to(form, arguments, window_ns, BufWriter::new(io::stdout()))?,
    };
    if let Some(path) = &arguments.output {
        output::print_note(&format!("{}: {}", path.display(), counted(written, "event", "events")));
    }
    if left_out > 0 {
        output::print_error(&format!("warning: {} events refer to unknown names", count(left_out)));
    }
    Ok(SUCCESS)
}

/// Writes one row per step. The recording is first read for its phases.
fn export_wide(arguments: &ExportArguments) -> anyhow::Result<u8> {
    let form = match arguments.to {
        ExportTarget::Events { form: ExportFormat::Csv, .. } => WideForm::Csv,
        ExportTarget::Events { form: ExportFormat::Parquet, .. } => WideForm::Parquet,
        _ => return Err(UsageError::with_message("--wide is for --to csv and --to parquet")),
    };
    if arguments.file == Path::new("-") {
        return Err(UsageError::with_message("--wide needs a file, because it is read twice"));
    }
    let mut run = Run::default();
    Recording::open(&arguments.file)?.read_all(&mut run);
    let wanted = RowFilter {
        rank: arguments.rank,
        steps: arguments.steps.clone(),
        window_ns: time_window(arguments, run.store()),
    };
    let phases = phases(&run);
    let write = |out: Box<dyn Write + Send + '_>| {
        let mut recording = Recording::open(&arguments.file)?;
        let mut table = WideExporter::new(form, out, phases, wanted);
        recording.read_all(&mut table);
        for warning in recording.status().warnings() {
            output::print_error(&format!("warning: {}: {warning}", arguments.file.display()));
        }
        table.finish().with_context(|| cannot_write(arguments))
    };
    let Some(path) = &arguments.output else {
        write(Box::new(BufWriter::new(io::stdout())))?;
        return Ok(SUCCESS);
    };
    let file = NewFile::create(path, arguments.force, &[&arguments.file])?;
    match write(Box::new(BufWriter::new(file.file()))) {
        Ok(rows) => {
            file.finish()?;
            output::print_note(&format!("{}: {}", path.display(), counted(rows, "step", "steps")));
            Ok(SUCCESS)
        }
        Err(error) => {
            file.discard();
            Err(error)
        }
    }
}

/// Warns before an export that may get large, if that is known.
fn warn_of_size(arguments: &ExportArguments, times: u64) {
    let len = std::fs::metadata(&arguments.file).map_or(0, |meta| meta.len());
    let about = len.saturating_mul(times);
    if about > LARGE {
        let size = bytes(about as f64);
        output::print_note(&format!(
            "the whole recording takes about {size} in this format; --steps or --from and --until select less"
        ));
    }
}

/// The length of an interval of the histogram log.
fn whole_interval_ns(interval: Duration) -> anyhow::Result<u64> {
    if interval < SHORTEST_INTERVAL {
        bail!("--interval must be at least {} ms", SHORTEST_INTERVAL.as_millis());
    }
    Ok(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX))
}

/// Writes a file, which is removed if the export fails.
fn export_to_file(
    form: ExportFormat,
    arguments: &ExportArguments,
    window_ns: RangeInclusive<u64>,
    path: &Path,
) -> anyhow::Result<(u64, u64)> {
    let file = NewFile::create(path, arguments.force, &[&arguments.file])?;
    match export_to(form, arguments, window_ns, BufWriter::new(file.file())) {
        Ok(written) => file.finish().map(|()| written),
        Err(error) => {
            file.discard();
            Err(error)
        }
    }
}

fn export_to(
    form: ExportFormat,
    arguments: &ExportArguments,
    window_ns: RangeInclusive<u64>,
    out: impl Write + Send,
) -> anyhow::Result<(u64, u64)> {
    let file = &arguments.file;
    let mut recording = Recording::open(file)?;
    let mut exporter = Exporter::new(form, out, window_ns);
    let mut one = OneRank::new(arguments.rank, &mut exporter);
    recording.read_all(&mut one);
    let (rank, left_out) = (one.rank().unwrap_or_default(), one.left_out());
    for warning in recording.status().warnings() {
        output::print_error(&format!("warning: {}: {warning}", file.display()));
    }
    if left_out > 0 {
        output::print_note(&format!("{}: rank {rank}; --rank selects another", file.display()));
    }
    exporter.finish().with_context(|| cannot_write(arguments))
}

fn cannot_write(arguments: &ExportArguments) -> String {
    match &arguments.output {
        Some(path) => format!("cannot write {}", path.display()),
        None => "cannot write to standard output".to_owned(),
    }
}

/// What to export, on the publisher's clock. A window needs the recording to be read once before.
fn window(arguments: &ExportArguments) -> anyhow::Result<RangeInclusive<u64>> {
    if arguments.steps.is_none() && arguments.from.is_none() && arguments.until.is_none() {
        return Ok(0..=u64::MAX);
    }
    if arguments.file == Path::new("-") {
        bail!("--steps, --from and --until need a file, because it is read twice");
    }
    let store = read_store(arguments)?;
    let Some(range) = &arguments.steps else { return Ok(time_window(arguments, &store)) };
    let within = store.steps().all().filter(|row| range.contains(&row.step().0));
    let times: Vec<(u64, u64)> = within.map(|row| (row.period_start_ns(), row.end_ns())).collect();
    match (times.first(), times.last()) {
        // The step before ends where the first one's period begins, and does not belong to it.
        (Some(first), Some(last)) => Ok(first.0 + 1..=last.1),
        _ => bail!("no steps {}..{}: the recording has {}", range.start, range.end, store.steps().total()),
    }
}

/// The range of time on the publisher's clock, if one was given.
fn time_window(arguments: &ExportArguments, store: &Store) -> RangeInclusive<u64> {
    let first_ns = store.first_ns().unwrap_or(0);
    let after = |time: Duration| first_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    arguments.from.map_or(0, after)..=arguments.until.map_or(u64::MAX, after)
}

/// The history of the rank to export.
fn read_store(arguments: &ExportArguments) -> anyhow::Result<Store> {
    let mut store = Store::new();
    Recording::open(&arguments.file)?.read_all(&mut OneRank::new(arguments.rank, &mut store));
    Ok(store)
}

/// Writes CodeCarbon's file and, beside it, bounds and labels.
fn export_emissions(arguments: &ExportArguments) -> anyhow::Result<u8> {
    let store = read_store(arguments)?;
    let scope = if arguments.machine { EnergyScope::Device } else { EnergyScope::Job };
    let (emissions, quality) = emissions::write(&store, &Settings::assumptions(&arguments.energy)?, scope);
    let Some(path) = &arguments.output else {
        output::print(emissions.trim_end())?;
        return Ok(SUCCESS);
    };
    let beside = path.with_extension("quality.csv");
    for (path, text) in [(path, emissions), (&beside, quality)] {
        new_file::write(path, &text, arguments.force, &[&arguments.file])?;
    }
    output::print_note(&format!("{}; bounds and labels are in {}", path.display(), beside.display()));
    Ok(SUCCESS)
}

fn export_metrics(arguments: &ExportArguments) -> anyhow::Result<u8> {
    let store = read_store(arguments)?;
    let text = openmetrics::write(&[ServedSession::alone(Catalogue::new(&store))]);
    match &arguments.output {
        Some(path) => new_file::write(path, &text, arguments.force, &[&arguments.file])?,
        None => output::print(text.trim_end())?,
    }
    Ok(SUCCESS)
}
