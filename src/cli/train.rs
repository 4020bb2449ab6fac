//! `gnntop train`: a built-in workload without a view; what `gnntop run NAME` starts.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::{Context, bail};

use super::exit::UsageError;
use super::settings::SensorArguments;

const EXAMPLES: &str = "\
Examples:
  gnntop train pna --steps 100     a hundred steps of PNA on generated molecules
  gnntop train pna --help          its options
  gnntop train pna --record a.gnntop --force    record it, over an existing file
  gnntop run pna                   the same with the live view";

/// Run a built-in training, without a view
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TrainArguments {
    #[command(flatten)]
    sensors: SensorArguments,
    /// With the training's --record: overwrite an existing file
    #[arg(long)]
    force: bool,
    /// The workload, such as pna, and its options; `gnntop train pna --help` lists them
    #[arg(value_name = "NAME", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Does `gnntop train`.
pub(super) fn train(arguments: &TrainArguments) -> anyhow::Result<u8> {
    hand_over()?;
    // clap requires the first word.
    let Some((name, settings)) = arguments.words.split_first() else { return Ok(super::exit::FAILURE) };
    let settings: Vec<OsString> = settings.iter().filter(|word| *word != "--force").cloned().collect();
    let is_forced = arguments.force || settings.len() + 1 < arguments.words.len();
    let name = name.to_string_lossy();
    if let Some(code) = workload::check_arguments(&name, &settings)? {
        return Ok(code);
    }
    // Of several ranks, the launcher's own process has done this.
    if std::env::var_os("OMPI_COMM_WORLD_RANK").is_none() {
        make_room(record_option(&settings), is_forced)?;
    }
    arguments.sensors.apply();
    workload::train(&name, &settings)
}

/// The file that these options of a training have it record into.
fn record_option(settings: &[OsString]) -> Option<PathBuf> {
    let after = |(at, word): (usize, &OsString)| match word.as_bytes().strip_prefix(b"--record") {
        Some(b"") => settings.get(at + 1).map(PathBuf::from),
        Some(rest) => rest.strip_prefix(b"=").map(|path| PathBuf::from(OsStr::from_bytes(path))),
        None => None,
    };
    settings.iter().enumerate().find_map(after)
}

/// Removes the file in whose place a recording will be, or refuses to.
fn make_room(recording: Option<PathBuf>, is_forced: bool) -> anyhow::Result<()> {
    match recording {
        None if is_forced => Err(UsageError::with_message("--force needs --record FILE")),
        Some(path) if path.is_file() && !is_forced => {
            bail!("{} already exists: use --force to overwrite it", path.display())
        }
        Some(path) if path.is_file() => {
            fs::remove_file(&path).with_context(|| format!("cannot overwrite {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Where this program has no trainings, becomes the one that has them, with the same words, if it is in the same folder.
///
/// # Errors
/// It is there and cannot be started.
pub(super) fn hand_over() -> anyhow::Result<()> {
    workload::hand_over()
}

/// Reads the options of a built-in training without starting it. If they are wrong or ask for `--help`, prints that and
/// returns the exit code.
///
/// # Errors
/// There is no workload with this name.
pub(super) fn check_arguments(name: &str, settings: &[OsString]) -> anyhow::Result<Option<u8>> {
    workload::check_arguments(name, settings)
}

/// Checks that there is a workload of this name.
///
/// # Errors
/// If there is none, with the names of all.
pub(super) fn check_name(name: &str) -> anyhow::Result<()> {
    workload::check_name(name)
}

#[cfg(feature = "workloads")]
mod workload {
    use std::ffi::OsString;
    use std::fmt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use gnntop_workloads::command::{WORKLOADS, Workload};
    use gnntop_workloads::train::{Observer, StepReport, TrainError};
    use gnntop_workloads::{BatchShape, Warning};
    use indicatif::{ProgressBar, ProgressStyle};

    use super::super::exit::{SUCCESS, UsageError};
    use super::super::{output, passing_on, signals};
    use gnntop_analysis::figures;

    /// Time between two lines where progress cannot be shown in place.
    const LINE_INTERVAL: Duration = Duration::from_secs(5);

    /// Options of Open MPI's mpirun, unless the user has set them.
    const LAUNCHER: [(&str, &str); 4] = [
        // More ranks than cores are slow but allowed: the screen says so.
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        // It notices after 25 s that a machine is gone, instead of after 8 minutes.
        ("OMPI_MCA_oob_tcp_keepalive_time", "10"),
        ("OMPI_MCA_oob_tcp_keepalive_intvl", "5"),
        ("OMPI_MCA_oob_tcp_keepalive_probes", "3"),
    ];

    /// The trainings are here.
    #[allow(clippy::unnecessary_wraps, reason = "without the trainings it may fail")]
    pub(super) fn hand_over() -> anyhow::Result<()> {
        Ok(())
    }

    pub(super) fn check_name(name: &str) -> anyhow::Result<()> {
        if WORKLOADS.iter().any(|known| known.name == name) {
            return Ok(());
        }
        Err(UsageError::with_message(format!(
            "there is no workload {name}; workloads are {}. For your own program: gnntop run -- {name}",
            WORKLOADS.map(|known| known.name).join(", ")
        )))
    }

    pub(super) fn check_arguments(name: &str, settings: &[OsString]) -> anyhow::Result<Option<u8>> {
        check_name(name)?;
        Ok(parse(name, settings)?.err())
    }

    /// The training, or the exit code if its options are wrong or ask for help, which is printed.
    fn parse(name: &str, settings: &[OsString]) -> anyhow::Result<Result<Workload, u8>> {
        match Workload::parse(name, settings) {
            Ok(workload) => Ok(Ok(workload)),
            Err(TrainError::Usage(error)) => Ok(Err(output::print_usage(&error))),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn train(name: &str, settings: &[OsString]) -> anyhow::Result<u8> {
        check_name(name)?;
        let workload = match parse(name, settings)? {
            Ok(workload) => workload,
            Err(code) => return Ok(code),
        };
        if let Some(processes) = workload.processes_to_launch()? {
            return Err(under_mpirun(processes, name, settings));
        }
        passing_on::exit_on_second()?;
        let mut progress = Progress::new()?;
        let summary = workload.run(&mut progress);
        progress.bar.finish_and_clear();
        let summary = summary?;
        let loss = summary.loss.map_or_else(String::new, |loss| format!(", loss {loss:.4}"));
        let interrupted = progress.interrupted;
        let end = if interrupted.is_some() { "interrupted after" } else { "done:" };
        output::print(&format!("{end} {}{loss}", figures::counted(summary.steps, "step", "steps")))?;
        Ok(interrupted.map_or(SUCCESS, signals::exit_code))
    }

    /// Becomes mpirun, which starts this many copies of this program; returns only if that fails.
    fn under_mpirun(processes: usize, name: &str, settings: &[OsString]) -> anyhow::Error {
        let own = match std::env::current_exe() {
            Ok(own) => own,
            Err(error) => return anyhow::Error::new(error).context("cannot find the gnntop program itself"),
        };
        let mut launcher = Command::new("mpirun");
        launcher.args(["-n", &processes.to_string()]).arg(own).args(["train", name]).args(settings);
        let unsaid = LAUNCHER.iter().filter(|(name, _)| std::env::var_os(name).is_none());
        launcher.envs(unsaid.copied());
        anyhow::Error::new(launcher.exec()).context("cannot start mpirun; is MPI installed (docs/cluster.md)?")
    }

    /// Shows progress: one line that is rewritten, or a line from time to time.
    struct Progress {
        interruption: signals::Interruption,
        interrupted: Option<i32>,
        bar: ProgressBar,
        /// When the next line is due, if no line can be rewritten.
        next: Instant,
    }

    impl Progress {
        fn new() -> anyhow::Result<Self> {
            let interruption = signals::Interruption::catch()?;
            // Draws on stderr, at most 20 times a second, and nothing if that is not a terminal.
            let style = ProgressStyle::with_template("{wide_msg} {bar:20} {eta:>4}")?;
            let bar = ProgressBar::new(1).with_style(style);
            Ok(Self { interruption, interrupted: None, bar, next: Instant::now() })
        }

        /// Writes a line from time to time if no line can be rewritten.
        fn line(&mut self, line: impl FnOnce() -> String) {
            let now = Instant::now();
            if self.bar.is_hidden() && now >= self.next {
                self.next = now + LINE_INTERVAL;
                output::print_note(&line());
            }
        }
    }

    impl Observer for Progress {
        fn report_line(&mut self, line: &str) {
            self.bar.suspend(|| output::print_note(line));
        }

        fn loading(&mut self, done: fmt::Arguments<'_>) {
            let line = || format!("data: {done}");
            self.bar.set_message(line());
            self.line(line);
        }

        fn step(&mut self, report: &StepReport) {
            self.bar.set_length(report.epochs * report.batches);
            self.bar.set_position(report.epoch * report.batches + report.index + 1);
            self.bar.set_message(step_line(report));
            self.line(|| step_line(report));
        }

        fn should_stop(&mut self) -> bool {
            self.interrupted = self.interrupted.or_else(|| self.interruption.take());
            self.interrupted.is_some()
        }

        fn warning(&mut self) -> Box<dyn FnMut(&Warning) + Send> {
            Box::new(|warning: &Warning| output::print_error(&format!("warning: {warning}")))
        }
    }

    /// The contents of a batch, in its workload's units.
    fn contents(shape: &BatchShape) -> String {
        let counted = [(shape.seeds, "seeds"), (shape.graphs, "graphs"), (shape.nodes, "nodes")];
        let found = counted.iter().find_map(|(count, unit)| count.map(|count| format!("  {count} {unit}")));
        found.unwrap_or_default()
    }

    fn step_line(report: &StepReport) -> String {
        let StepReport { epoch, epochs, index, batches, loss, shape, time } = *report;
        let time = figures::duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let (epoch, step) = (epoch + 1, index + 1);
        format!("epoch {epoch}/{epochs}  step {step}/{batches}  loss {loss:.4}  {time} a step{}", contents(&shape))
    }
}

#[cfg(not(feature = "workloads"))]
mod workload {
    use std::env;
    use std::ffi::OsString;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use anyhow::{Context, bail};

    /// The whole program under another name: what `pip install 'gnntop[trainings]'` puts beside this one.
    const WITH_TRAININGS: &str = "gnntop-trainings";

    pub(super) fn hand_over() -> anyhow::Result<()> {
        let own = env::current_exe().context("cannot find the gnntop program itself")?;
        let other = own.with_file_name(WITH_TRAININGS);
        if other == own || !other.is_file() {
            return Ok(());
        }
        let error = Command::new(&other).args(env::args_os().skip(1)).exec();
        Err(error).with_context(|| format!("cannot start {}", other.display()))
    }

    pub(super) fn check_name(_name: &str) -> anyhow::Result<()> {
        bail!(
            "this gnntop was built without the built-in trainings; install them with `pip install 'gnntop[trainings]'`, \
             or build it with the feature `workloads`"
        )
    }

    pub(super) fn check_arguments(name: &str, _settings: &[OsString]) -> anyhow::Result<Option<u8>> {
        check_name(name).map(|()| None)
    }

    pub(super) fn train(name: &str, _settings: &[OsString]) -> anyhow::Result<u8> {
        check_name(name).map(|()| super::super::exit::FAILURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_is_overwritten_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gnntop");
        let words = |text: String| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        for text in [format!("--steps 9 --record {}", path.display()), format!("--record={} --steps 9", path.display())]
        {
            assert_eq!(record_option(&words(text)), Some(path.clone()));
        }
        assert_eq!(record_option(&words("--steps 9 --records x".to_owned())), None);
        assert!(make_room(None, true).is_err() && make_room(None, false).is_ok());
        assert!(make_room(Some(path.clone()), false).is_ok(), "there is none yet");
        fs::write(&path, "old").unwrap();
        let refused = make_room(Some(path.clone()), false).unwrap_err().to_string();
        assert!(refused.ends_with("already exists: use --force to overwrite it"), "{refused}");
        make_room(Some(path.clone()), true).unwrap();
        assert!(!path.exists());
    }
}
