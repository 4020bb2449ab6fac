//! `gnntop record`: a session, or a part of one, into a file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::exit::{SUCCESS, UsageError};
use super::named::{self, NAMED};
use super::new_file::{self, NewFile};
use super::retention::{self, Retention, RetentionLimits};
use super::source_recorder::SourceRecorder;
use super::{output, quantities, run, signals};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::recorder::RecorderOptions;
use gnntop_analysis::source::runs::{self, SessionGroup};
use gnntop_analysis::source::target::Target;
use gnntop_analysis::source::{Hardware, Recording, Source, follow};
use gnntop_analysis::stream::align;
use gnntop_sessions::discover::{self, ListedSession};

const EXAMPLES: &str = "\
Examples:
  gnntop record                            from now until Ctrl-C, into NAME-PID.gnntop
  gnntop record 4711 -o a.gnntop --duration 30s
  gnntop record job-17                     all ranks of a run in one file, by its id or that of any of its sessions
  gnntop record --last 5m                  the last five minutes, even of a run that was killed
  gnntop record --last 5m --duration 1m    and the next minute
  gnntop record --keep 2GiB                the newest events in full, older ones as a summary
  gnntop record --slow 200                 the 200 slowest steps and the newest ones in full
  gnntop record -o b.gnntop --last 30s a.gnntop
                                           the end of another recording
  ssh host gnntop record - | gnntop replay -";

/// Time between two looks at the session.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// After the duration, waits this long for events that are on their way.
const GRACE: Duration = Duration::from_millis(300);

/// Save a session to a file, including what has already happened
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RecordArguments {
    /// A session by name, process id, run or their beginning, or a recording [default: the only live session]; `-`
    /// writes the only live session to standard output
    #[arg(value_name = NAMED)]
    session: Option<String>,
    /// Output file; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = quantities::parse_duration)]
    duration: Option<Duration>,
    /// Start this long ago; without --duration, stop now. Earlier marks are counted, not recorded
    #[arg(long, value_name = "TIME", value_parser = quantities::parse_duration)]
    last: Option<Duration>,
    /// Stop before the file gets larger than this
    #[arg(long, value_name = "SIZE", value_parser = quantities::parse_bytes)]
    max_size: Option<u64>,
    /// Keep the file below this size: its newest events stay, older ones become a summary
    #[arg(long, value_name = "SIZE", value_parser = retention::parse_size, conflicts_with = "max_size")]
    keep: Option<u64>,
    /// Keep the N slowest steps and the newest ones with all their spans; the rest becomes a summary
    #[arg(long, value_name = "N", value_parser = retention::parse_slowest, conflicts_with = "max_size")]
    slow: Option<u32>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Does `gnntop record`.
pub(super) fn record(arguments: &RecordArguments) -> anyhow::Result<u8> {
    let to_stdout = arguments.session.as_deref() == Some("-");
    let named = arguments.session.as_deref().filter(|_| !to_stdout);
    let request = RecordRequest::new(named::find(named)?, arguments)?;
    let path =
        if to_stdout { PathBuf::from("-") } else { arguments.output.clone().unwrap_or(request.file_name.clone()) };
    let limits = RetentionLimits::new(arguments.keep, arguments.slow);
    if path == Path::new("-") {
        if limits.is_some() {
            let why = "--keep and --slow cannot write to standard output: give -o FILE";
            return Err(UsageError::with_message(why));
        }
        return run(request, io::stdout().lock(), None, |_| Ok(()));
    }
    let input = request.input.clone();
    new_file::remove_abandoned(path.parent().unwrap_or(Path::new("")));
    let mut file = NewFile::create(&path, arguments.force, input.as_deref().as_slice())?;
    let code = match run_into(request, &mut file, limits, &path.display().to_string()) {
        Ok(code) => code,
        Err(error) => {
            let kept = file.keep_partial();
            return Err(error.context(format!("what was recorded so far is in {}", kept.display())));
        }
    };
    if file.file().metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
        file.discard();
        bail!("nothing was published in that time, so nothing was recorded");
    }
    file.finish()?;
    Ok(code)
}

/// Records into a file that stays within these limits.
fn run_into(
    mut request: RecordRequest,
    file: &mut NewFile,
    limits: Option<RetentionLimits>,
    name: &str,
) -> anyhow::Result<u8> {
    let out = file.file().try_clone().with_context(|| format!("cannot write {name}"))?;
    let Some(limits) = limits else { return run(request, out, Some(name), |_| Ok(())) };
    if file.path().is_none() {
        return Err(UsageError::with_message(format!(
            "--keep and --slow need a regular file: {name} is a device or a pipe"
        )));
    }
    let mut bound = Retention::new(limits);
    request.options = bound.options(request.options);
    run(request, out, Some(name), |recorded| bound.enforce(recorded, file))
}

/// What to record, and until when.
struct RecordRequest {
    source: Box<dyn Source>,
    options: RecorderOptions,
    /// Stop when nothing more is available, even if the session continues.
    only_past: bool,
    duration: Option<Duration>,
    /// Whether nothing but a person ends it while the program runs.
    is_open_ended: bool,
    /// The file's name if none was given.
    file_name: PathBuf,
    /// The recording or directory that is read.
    input: Option<PathBuf>,
}

impl RecordRequest {
    fn new(target: Target, arguments: &RecordArguments) -> anyhow::Result<Self> {
        let RecordArguments { duration, last, max_size, .. } = *arguments;
        let input = match &target {
            Target::Session(session) => Some(session.dir.clone()),
            Target::Recording(path) => Some(path.clone()),
            Target::Process(_) => None,
        };
        let (source, newest_ns, is_live, stem): (Box<dyn Source>, _, _, _) = match target {
            Target::Session(session) => {
                let group = siblings(&session);
                (follow(&session), newest_ns(&group), group.living() > 0, file_stem(&group))
            }
            Target::Recording(path) => {
                let newest_ns = Recording::time_span(&path).map(|span| span.last_ns);
                (Box::new(Recording::open(&path)?), newest_ns, false, "recording".to_owned())
            }
            Target::Process(process) => {
                let stem = format!("{}-{}", process.name().replace('/', "_"), process.pid());
                let launcher = run::launcher(process.pid());
                let source = Hardware::observe(process, launcher).context("cannot read the sensors")?;
                (Box::new(source), Some(0), true, stem)
            }
        };
        let mut window_ns = window(newest_ns, is_live, last, duration);
        if let (Some(_), Some(input)) = (last, &input) {
            window_ns = previous_step_end(*window_ns.start(), input)..=*window_ns.end();
        }
        Ok(Self {
            source,
            options: RecorderOptions {
                window_ns,
                max_bytes: max_size.unwrap_or(u64::MAX),
                ..RecorderOptions::default()
            },
            only_past: last.is_some() && duration.is_none(),
            duration: duration.filter(|_| is_live),
            is_open_ended: is_live && last.is_none() && duration.is_none(),
            file_name: PathBuf::from(format!("{stem}.gnntop")),
            input,
        })
    }
}

/// All sessions of the run that a session belongs to.
fn siblings(session: &ListedSession) -> SessionGroup {
    let listed = session.dir.parent().and_then(|dir| discover::list(dir).ok()).unwrap_or_default();
    runs::siblings(session, &listed.sessions)
}

/// The newest instant of a run, on the clock of its first session.
fn newest_ns(group: &SessionGroup) -> Option<u64> {
    let reference = &group.sessions.first()?.info;
    let newest = |session: &ListedSession| {
        let offset_ns = align(&session.info, reference).offset_ns;
        Some(Recording::time_span(&session.dir)?.last_ns.saturating_add_signed(offset_ns))
    };
    group.sessions.iter().filter_map(newest).max()
}

/// The file name for the recording of a run or session. A run's id may be any text.
fn file_stem(group: &SessionGroup) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    match (group.id(), group.sessions.first()) {
        (Some(id), _) if group.ranks().0 > 1 => format!("run-{}", id.chars().map(plain).collect::<String>()),
        (_, Some(session)) if let Some(name) = session.dir.file_name() => name.to_string_lossy().into_owned(),
        _ => "session".to_owned(),
    }
}

/// The end of the newest step that was over at an instant, so that the step in progress then is recorded whole. Steps
/// of several ranks end at different times: for them it is the instant itself.
fn previous_step_end(first_ns: u64, input: &Path) -> u64 {
    let mut run = Run::default();
    let Ok(mut recording) = Recording::open(input) else { return first_ns };
    recording.read_all(&mut run);
    let ends = run.store().steps().all().map(|row| row.end_ns()).take_while(|end_ns| *end_ns <= first_ns);
    // The step that ends there is not to be recorded.
    ends.last().filter(|_| !run.is_parallel()).map_or(first_ns, |end_ns| end_ns.saturating_add(1))
}

/// First and last instant to record: from now on, or from some time ago; everything that is kept of an ended session.
fn window(
    newest_ns: Option<u64>,
    is_live: bool,
    last: Option<Duration>,
    duration: Option<Duration>,
) -> std::ops::RangeInclusive<u64> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let Some(newest_ns) = newest_ns else { return 0..=u64::MAX };
    let first_ns = match last {
        Some(last) => newest_ns.saturating_sub(nanos(last)),
        None if is_live => newest_ns,
        None => 0,
    };
    // The newest instant of a process seen from outside is not known: there, the duration is time to wait.
    let last_ns = match duration {
        Some(duration) if is_live && newest_ns > 0 => newest_ns.saturating_add(nanos(duration)),
        _ => u64::MAX,
    };
    first_ns..=last_ns
}

/// Records until the request is fulfilled, the session ends, or a signal arrives; `enforce` bounds what was written.
/// Reports its progress on the file `name`; without one, stays silent, because a screen may be showing standard output.
fn run<W: Write>(
    request: RecordRequest,
    out: W,
    name: Option<&str>,
    mut enforce: impl FnMut(&mut SourceRecorder<W>) -> anyhow::Result<()>,
) -> anyhow::Result<u8> {
    let interruption = signals::Interruption::catch()?;
    let deadline = request.duration.map(|duration| Instant::now() + duration + GRACE);
    if let Some(name) = name.filter(|_| request.is_open_ended) {
        output::print_note(&format!("recording into {name} from now until the program ends, or Ctrl-C"));
    }
    let mut recording = SourceRecorder::new(request.source, out, request.options);
    let why = loop {
        let progress = recording.poll()?;
        enforce(&mut recording)?;
        if let Some(why) = recording.end_reason() {
            break why;
        }
        if interruption.take().is_some() {
            break "interrupted".to_owned();
        }
        if request.only_past && !progress.more || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break "done".to_owned();
        }
        if !progress.more {
            thread::sleep(POLL_INTERVAL);
        }
        name.into_iter().for_each(|name| output::show_progress(&recording.summary(name)));
    };
    recording.finish()?;
    enforce(&mut recording)?;
    if let Some(name) = name {
        output::show_progress("");
        output::print_note(&format!("{}: {why}", recording.summary(name)));
    }
    recording.describe_earlier_marks().iter().for_each(|said| output::print_note(said));
    recording.warnings().iter().for_each(|warning| output::print_note(&format!("warning: {warning}")));
    Ok(SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn window_matches_last_and_duration() {
        let now = Some(1000 * S);
        assert_eq!(window(now, true, None, None), 1000 * S..=u64::MAX);
        assert_eq!(window(now, true, Some(MINUTE), None), 940 * S..=u64::MAX);
        assert_eq!(window(now, true, None, Some(MINUTE)), 1000 * S..=1060 * S);
        assert_eq!(window(now, true, Some(MINUTE), Some(MINUTE)), 940 * S..=1060 * S);
        assert_eq!(window(now, false, None, None), 0..=u64::MAX);
        assert_eq!(window(now, false, Some(MINUTE * 60), None), 0..=u64::MAX);
        assert_eq!(window(None, true, Some(MINUTE), None), 0..=u64::MAX);
        assert_eq!(window(Some(0), true, None, Some(MINUTE)), 0..=u64::MAX);
    }
}
