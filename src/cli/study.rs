//! `gnntop study`: a sweep that a file describes, run by run into recordings, and its report.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::exit::{FAILURE, SUCCESS};
use super::reading::{self, ExactArguments};
use super::run::{OnHangup, UnattendedEnd, UnattendedRun};
use super::{new_file, output, signals, train};
use crate::report::Options;
use crate::study::{MeasuredSetting, Numbers, PlannedRun, Program, Study, document};
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::figures::elapsed_time;

/// Suffix of a recording that is being written.
const UNFINISHED: &str = "part";
const REPORT: &str = "report.md";
const REPORT_HTML: &str = "report.html";

const EXAMPLES: &str = "\
Examples:
  gnntop study workloads/studies/pna.toml --quick     the PNA study, at its small size
  gnntop study pna.toml --output pna-study            resume after an interruption
  gnntop study pna.toml --dry-run                     list the runs in order
  gnntop study pna.toml --html                        also write the report as HTML

The file has a workload or a command, the options of every run, lists of options to vary, repeats, seeds, warm-up and
published values; see docs/studies.md.
Exit codes: 0 success, 1 a run failed (the others and the report are written), 2 the file is invalid,
130 interrupted.";

/// Run a sweep that a file describes, and write its report
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StudyArguments {
    /// The study file
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Directory for recordings and report [default: study-NAME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Use the small size in the file's [quick] section
    #[arg(long)]
    quick: bool,
    /// Only list the runs
    #[arg(long)]
    dry_run: bool,
    /// Also write the report as HTML
    #[arg(long)]
    html: bool,
    /// When the terminal closes (window, tmux, ssh): continue to the report, or stop
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnHangup::Keep)]
    on_hangup: OnHangup,
}

/// Does `gnntop study`.
pub(super) fn study(arguments: &StudyArguments) -> anyhow::Result<u8> {
    let path = arguments.file.display();
    let text = fs::read_to_string(&arguments.file).with_context(|| format!("cannot read {path}"))?;
    let check =
        |name: &str| train::hand_over().and_then(|()| train::check_name(name)).map_err(|error| error.to_string());
    let study = crate::study::read(&text, arguments.quick, check).with_context(|| path.to_string())?;
    let folder = arguments.output.clone().unwrap_or_else(|| default_folder(&study, arguments.quick));
    let runs = study.runs();
    if arguments.dry_run {
        return list(&study, &runs, &folder);
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let _alone = lock_folder(&folder)?;
    let mut sweep = Sweep::new(&study, &runs, &folder, arguments.on_hangup)?;
    if let Some(signal) = sweep.run_all()? {
        let done = runs.iter().filter(|run| folder.join(study.file_name(run)).exists()).count();
        output::print_note(&format!("interrupted after {done} of {} runs; run the same command to resume", runs.len()));
        return Ok(signals::exit_code(signal));
    }
    let mut failures = sweep.failures;
    write_report(&study, &runs, &folder, arguments.html, &mut failures)?;
    Ok(if failures.is_empty() { SUCCESS } else { FAILURE })
}

/// Locks the directory against other studies, such as one that outlived its terminal, until the lock is dropped.
fn lock_folder(folder: &Path) -> anyhow::Result<File> {
    let open = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    match open.try_lock() {
        Err(TryLockError::WouldBlock) => bail!(
            "a study is writing into {}: wait for its end, or find it with `pgrep -af 'gnntop study'` and stop it",
            folder.display()
        ),
        // If the file system has no locks, other studies are not kept out.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(open),
    }
}

fn default_folder(study: &Study, is_quick: bool) -> PathBuf {
    let safe: String = study.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    PathBuf::from(format!("study-{safe}{}", if is_quick { "-quick" } else { "" }))
}

/// Lists the runs, and marks those that already exist.
fn list(study: &Study, runs: &[PlannedRun], folder: &Path) -> anyhow::Result<u8> {
    for (at, run) in runs.iter().enumerate() {
        let name = study.file_name(run);
        let there = if folder.join(&name).exists() { "  (finished)" } else { "" };
        let prefix = if is_workload(study) { "gnntop train " } else { "" };
        output::print(&format!("{}. {name}{there}\n   {prefix}{}", at + 1, study.words(run).join(" ")))?;
    }
    Ok(SUCCESS)
}

fn is_workload(study: &Study) -> bool {
    matches!(study.program, Program::Workload(_))
}

/// The runs of a study in progress.
struct Sweep<'a> {
    study: &'a Study,
    runs: &'a [PlannedRun],
    folder: &'a Path,
    interruption: signals::Interruption,
    failures: Vec<String>,
    /// Runs done by now, and the time they took, to say how long the others may take.
    done: (u32, Duration),
}

impl<'a> Sweep<'a> {
    fn new(study: &'a Study, runs: &'a [PlannedRun], folder: &'a Path, on_hangup: OnHangup) -> anyhow::Result<Self> {
        let interruption = match on_hangup {
            OnHangup::Keep => signals::Interruption::catch_but_hangup()?,
            OnHangup::Stop => signals::Interruption::catch()?,
        };
        Ok(Self { study, runs, folder, interruption, failures: Vec::new(), done: (0, Duration::ZERO) })
    }

    /// Does the missing runs. Returns the signal that interrupted it, if any.
    fn run_all(&mut self) -> anyhow::Result<Option<i32>> {
        let missing: Vec<(usize, &PlannedRun)> =
            self.runs.iter().enumerate().filter(|(_, run)| !self.recording(run).exists()).collect();
        let kept = self.runs.len() - missing.len();
        if kept > 0 {
            output::print_note(&format!("{kept} of {} runs already exist", self.runs.len()));
        }
        for (position, (at, run)) in missing.iter().enumerate() {
            if let Some(signal) = self.interruption.take() {
                return Ok(Some(signal));
            }
            if let Some(signal) = self.run_one(*at, run, missing.len() - position)? {
                return Ok(Some(signal));
            }
        }
        Ok(None)
    }

    fn recording(&self, run: &PlannedRun) -> PathBuf {
        self.folder.join(self.study.file_name(run))
    }

    /// Does one run. What it writes gets its name when it is finished, so that a cut recording is never taken for
    /// one.
    fn run_one(&mut self, at: usize, run: &PlannedRun, left: usize) -> anyhow::Result<Option<i32>> {
        let recording = self.recording(run);
        let mut unfinished = recording.clone().into_os_string();
        unfinished.push(format!(".{UNFINISHED}"));
        let unfinished = PathBuf::from(unfinished);
        // The file of an interrupted run must not be taken for this run's.
        if let Err(error) = fs::remove_file(&unfinished)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error).with_context(|| format!("cannot remove {}", unfinished.display()));
        }
        let number = format!("run {} of {}", at + 1, self.runs.len());
        let title = format!("{number}: {}", self.title(run));
        output::print_note(&format!("{title}{}", self.time_left(left, Duration::ZERO)));
        let began = Instant::now();
        let words = self.study.words(run);
        let name = format!("study {number}");
        let unattended = UnattendedRun {
            words: &words,
            is_workload: is_workload(self.study),
            name: &name,
            recording: &unfinished,
            time_limit: self.study.time_limit,
        };
        let ended = unattended.run(&self.interruption, || {
            let spent = began.elapsed();
            output::show_progress(&format!("{title}, {}{}", elapsed_time(spent), self.time_left(left, spent)));
        });
        output::show_progress("");
        let failure = match ended {
            Ok(UnattendedEnd::Interrupted(signal)) => return Ok(Some(signal)),
            Ok(UnattendedEnd::Code(0)) if !unfinished.exists() => Some("published nothing".to_owned()),
            Ok(UnattendedEnd::Code(0)) => None,
            Ok(UnattendedEnd::Code(code)) => Some(format!("ended with exit code {code}")),
            Ok(UnattendedEnd::TimeOver) => Some("exceeded time-limit-s".to_owned()),
            Err(error) => Some(format!("{error:#}")),
        };
        match failure {
            Some(why) => self.fail(format!("{title}: {why}")),
            None => fs::rename(&unfinished, &recording)
                .with_context(|| format!("cannot rename {}", unfinished.display()))?,
        }
        self.done = (self.done.0 + 1, self.done.1 + began.elapsed());
        Ok(None)
    }

    fn fail(&mut self, failure: String) {
        output::print_error(&failure);
        self.failures.push(failure);
    }

    fn title(&self, run: &PlannedRun) -> String {
        let setting = self.study.settings.get(run.setting).map_or("", |setting| setting.name.as_str());
        let seed = run.seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
        let repeat = if self.study.repeats > 1 { format!(", repeat {}", run.repeat) } else { String::new() };
        format!("{setting}{seed}{repeat}")
    }

    /// How long the remaining `left` runs may take, of which the first has taken `spent`; empty before one has ended.
    fn time_left(&self, left: usize, spent: Duration) -> String {
        let (count, time) = self.done;
        let Some(each) = time.checked_div(count) else { return String::new() };
        let left = each.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX)).saturating_sub(spent);
        format!(", about {} left", elapsed_time(left))
    }
}

/// Reads the existing recordings and writes the report beside them.
fn write_report(
    study: &Study,
    runs: &[PlannedRun],
    folder: &Path,
    with_html: bool,
    failures: &mut Vec<String>,
) -> anyhow::Result<()> {
    let measured: Vec<MeasuredSetting> =
        (0..study.settings.len()).filter_map(|at| measure(study, at, runs, folder, failures)).collect();
    let document = document(study, &measured, failures);
    let mut paths = vec![(folder.join(REPORT), document.to_markdown())];
    if with_html {
        paths.push((folder.join(REPORT_HTML), document.to_html()));
    }
    for (path, text) in paths {
        new_file::write(&path, &text, true, &[])?;
        // The terminal may be gone, but the report is written.
        let _ = output::print(&format!("report: {}", path.display()));
    }
    Ok(())
}

/// The numbers of a setting's recordings. A recording that cannot be used counts as a failure.
fn measure(
    study: &Study,
    at: usize,
    runs: &[PlannedRun],
    folder: &Path,
    failures: &mut Vec<String>,
) -> Option<MeasuredSetting> {
    let setting = study.settings.get(at)?.clone();
    let assumptions = Assumptions { g_per_kwh: study.carbon_g_per_kwh, ..Assumptions::default() };
    let options = Options { skip_steps: setting.warm_up_steps, assumptions, ..Options::default() };
    let wanted = study.wanted();
    let mut measured = MeasuredSetting { setting, planned: 0, runs: Vec::new(), report: None };
    for run in runs.iter().filter(|run| run.setting == at) {
        measured.planned += 1;
        let path = folder.join(study.file_name(run));
        if !path.exists() {
            continue;
        }
        let recorded = match reading::read_run(path.to_str(), ExactArguments::ALL) {
            Ok(recorded) => recorded,
            Err(error) => {
                failures.push(format!("{}: {error:#}", path.display()));
                continue;
            }
        };
        match Numbers::new(&recorded, &options, &wanted) {
            Some((numbers, report)) => {
                measured.runs.push(numbers);
                measured.report = Some(report);
            }
            None => failures.push(format!("{}: no steps are left after the warm-up", path.display())),
        }
    }
    Some(measured)
}
