//! `gnntop import`: measurements of other programs, as a recording.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use gnntop_wire::Place;

use super::exit::{SUCCESS, UsageError};
use super::new_file::NewFile;
use super::output;
use crate::import::chrome::ChromeOptions;
use crate::import::history::{HistoryOptions, Tracker};
use crate::import::{self, CsvOptions, ImportError, Imported, Mapping, MarkFile};
use gnntop_analysis::figures::counted;

const EXAMPLES: &str = "\
Examples:
  gnntop import csv steps.csv -o run.gnntop
  gnntop import csv steps.csv -o run.gnntop --column duration=iter_time:s --column phase:forward=fwd:ms
  gnntop import csv steps.csv.gz -o run.gnntop --marks gc=gc_events.csv --batch-size 512
  gnntop import csv phases.csv -o run.gnntop --column phase=name --column duration=took:us
  gnntop import csv rank0.csv -o rank0.gnntop --only phase=0 --rank 0/4 --stage 0/4 --fact micro-batches=5 --fact blocks=6/2/2/2
  gnntop import chrome trace.json.gz -o run.gnntop    what torch.profiler writes
  gnntop import chrome rank1.json -o rank1.gnntop --rank 1/4 --step train_step
  gnntop import tensorboard runs/exp1 -o run.gnntop   the scalars of its event files
  gnntop import wandb wandb/offline-run-20261127_150748-xrtyrieg -o run.gnntop
  gnntop import mlflow mlruns -o run.gnntop --only kindly-panda-106    or mlflow.db
  gnntop import trackio ~/.cache/huggingface/trackio/project.db -o run.gnntop --steps train/loss
  gnntop report run.gnntop

docs/import.md lists the roles and units of columns.";

/// Make a recording from a table of steps, a trace, or the history that a tracker has kept
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImportArguments {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ImportCommand {
    /// A table with a row for each step, or for each phase of a step
    Csv(CsvArguments),
    /// A trace in Chrome's JSON format, as torch.profiler writes it
    Chrome(ChromeArguments),
    /// The scalars of TensorBoard's event files: a folder of a run, or one file
    Tensorboard(HistoryArguments),
    /// A run of W&B in its offline file: a folder offline-run-..., or run-ID.wandb
    Wandb(HistoryArguments),
    /// A run of MLflow: mlruns, a folder in it, or mlflow.db
    Mlflow(HistoryArguments),
    /// A run of trackio: the database of a project
    Trackio(HistoryArguments),
}

#[derive(Debug, clap::Args)]
struct CsvArguments {
    /// The table, plain or compressed with gzip; its first row names the columns
    file: PathBuf,
    #[command(flatten)]
    to: ImportOutput,
    /// What a column means, if its name does not say so; can be given several times
    #[arg(long = "column", value_name = "ROLE=COLUMN[:UNIT]", value_parser = parse_mapping)]
    columns: Vec<Mapping>,
    /// A column to ignore, whatever its name; can be given several times
    #[arg(long = "ignore", value_name = "COLUMN")]
    ignored: Vec<String>,
    /// What separates the columns, such as ';' or tab [default: guessed from the first rows]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_separator)]
    separator: Option<u8>,
    /// Graphs, images or other samples in the batch of every step, if no column has them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch_size: Option<u64>,
    /// A table of events to mark, with a column step_idx or timestamp_s; can be given several times
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_mark_file)]
    marks: Vec<MarkFile>,
    /// Import only the rows in which a column has this value; can be given several times
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = parse_pair)]
    only: Vec<(String, String)>,
    /// A number of the whole run, such as micro-batches=5, or one for each stage, such as blocks=6/2/2/2; can be given several
    /// times
    #[arg(long = "fact", value_name = "NAME=NUMBER[/NUMBER...]", value_parser = parse_fact)]
    facts: Vec<FactArgument>,
    #[command(flatten)]
    standing: PlaceArguments,
}

// The measured rank's place in its run. No doc comment: clap would show it as that of the command.
#[derive(Debug, clap::Args)]
struct PlaceArguments {
    /// Which rank this is, and of how many, such as 0/4
    #[arg(long, value_name = "R/N", value_parser = parse_index)]
    rank: Option<(u32, u32)>,
    /// Which stage of the pipeline the rank computes, and of how many, such as 0/4
    #[arg(long, value_name = "S/N", value_parser = parse_index, requires = "rank")]
    stage: Option<(u32, u32)>,
    /// Id of the run, the same for all its ranks
    #[arg(long = "run", value_name = "ID", default_value = "imported")]
    run_id: String,
}

impl PlaceArguments {
    /// As the stream has it. Ranks are counted copy after copy.
    fn place(&self) -> Option<Place> {
        self.rank.map(|(rank, ranks)| {
            let (stage, stages) = self.stage.unwrap_or((0, 1));
            let (copy, copies) = (rank / stages, (ranks / stages).max(1));
            Place { run: self.run_id.clone(), rank, ranks, stage, stages, copy, copies, ..Place::default() }
        })
    }
}

impl CsvArguments {
    /// What is given besides the table.
    fn options(&self) -> CsvOptions {
        CsvOptions {
            columns: self.columns.clone(),
            ignored: self.ignored.clone(),
            separator: self.separator,
            marks: self.marks.clone(),
            only: self.only.clone(),
            batch_size: self.batch_size,
            place: self.standing.place(),
            facts: self.facts.iter().flat_map(|fact| fact.numbers(self.standing.stage)).collect(),
        }
    }
}

#[derive(Debug, clap::Args)]
struct ChromeArguments {
    /// The trace, plain or compressed with gzip
    file: PathBuf,
    #[command(flatten)]
    to: ImportOutput,
    /// An annotation that is a phase, in addition to those of torch.profiler and the standard phases
    #[arg(long = "phase", value_name = "PHASE=ANNOTATION", value_parser = parse_pair)]
    phases: Vec<(String, String)>,
    /// The annotation that is a step, such as train_step [default: those of profiler.step()]
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    #[command(flatten)]
    standing: PlaceArguments,
}

impl ChromeArguments {
    /// What is given besides the trace.
    fn options(&self) -> ChromeOptions {
        let Self { phases, step, standing, .. } = self;
        ChromeOptions {
            phases: phases.clone(),
            step: step.clone(),
            place: standing.place(),
            run: standing.run_id.clone(),
        }
    }
}

#[derive(Debug, clap::Args)]
struct HistoryArguments {
    /// Where the tracker has kept it
    path: PathBuf,
    #[command(flatten)]
    to: ImportOutput,
    /// The values that are logged once for each step [default: those of which there are most]
    #[arg(long, value_name = "NAME")]
    steps: Option<String>,
    /// The run, by its name or id, where there are several
    #[arg(long, value_name = "RUN")]
    only: Option<String>,
    #[command(flatten)]
    standing: PlaceArguments,
}

impl HistoryArguments {
    fn import(&self, tracker: Tracker) -> anyhow::Result<(&ImportOutput, Imported)> {
        let Self { path, to, steps, only, standing } = self;
        if path.to_string_lossy().contains("://") {
            let text = format!(
                "{} is an address, and gnntop import reads files: of MLflow's server, the one of its --backend-store-uri sqlite:///FILE",
                path.display()
            );
            return Err(UsageError::with_message(text));
        }
        let options = HistoryOptions { steps: steps.clone(), only: only.clone(), place: standing.place() };
        let imported = import_to_file(to, &[path], |out| import::history::import(tracker, path, &options, out))?;
        Ok((to, imported))
    }
}

#[derive(Debug, clap::Args)]
struct ImportOutput {
    /// The recording to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

fn parse_separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"space" => Ok(b' '),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"#\n".contains(byte) => Ok(*byte),
        _ => Err("give one character, such as ',' or ';', or tab or space".to_owned()),
    }
}

fn parse_mapping(text: &str) -> Result<Mapping, String> {
    Mapping::parse(text).map_err(|error| error.to_string())
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE")?;
    if name.is_empty() || value.is_empty() {
        return Err("give NAME=VALUE".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A number of the whole run, or one for each stage.
#[derive(Clone, Debug)]
struct FactArgument {
    name: String,
    numbers: Vec<f64>,
}

impl FactArgument {
    /// As marks have them: those of stages by the stage's number, and that of the rank's own stage.
    fn numbers(&self, stage: Option<(u32, u32)>) -> Vec<(String, f64)> {
        let Self { name, numbers } = self;
        if let [number] = numbers.as_slice() {
            return vec![(name.clone(), *number)];
        }
        let own = stage.and_then(|(stage, _)| numbers.get(stage as usize)).map(|number| (name.clone(), *number));
        let of_stages = numbers.iter().enumerate().map(|(stage, number)| (import::stage_fact(name, stage), *number));
        own.into_iter().chain(of_stages).collect()
    }
}

fn parse_fact(text: &str) -> Result<FactArgument, String> {
    let (name, value) = parse_pair(text)?;
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let numbers: Option<Vec<f64>> = value.split('/').map(number).collect();
    let numbers = numbers.ok_or("give NAME=NUMBER, or one for each stage, such as blocks=6/2/2/2")?;
    Ok(FactArgument { name, numbers })
}

fn parse_index(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once('/').and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
    parsed
        .filter(|(at, of)| at < of)
        .ok_or_else(|| "give a number counted from 0 and how many there are, such as 0/4".to_owned())
}

fn parse_mark_file(text: &str) -> Result<MarkFile, String> {
    parse_pair(text).map(|(name, path)| MarkFile { name, path: path.into() })
}

/// Does `gnntop import`.
pub(super) fn import(arguments: &ImportArguments) -> anyhow::Result<u8> {
    let (to, imported) = match &arguments.command {
        ImportCommand::Csv(arguments) => {
            let CsvArguments { file, to, marks, .. } = arguments;
            let inputs: Vec<&Path> =
                std::iter::once(file).chain(marks.iter().map(|mark| &mark.path)).map(PathBuf::as_path).collect();
            (to, import_to_file(to, &inputs, |out| import::csv(file, &arguments.options(), out))?)
        }
        ImportCommand::Chrome(arguments) => {
            let ChromeArguments { file, to, .. } = arguments;
            (to, import_to_file(to, &[file], |out| import::chrome::trace(file, &arguments.options(), out))?)
        }
        ImportCommand::Tensorboard(arguments) => arguments.import(Tracker::TensorBoard)?,
        ImportCommand::Wandb(arguments) => arguments.import(Tracker::Wandb)?,
        ImportCommand::Mlflow(arguments) => arguments.import(Tracker::MlFlow)?,
        ImportCommand::Trackio(arguments) => arguments.import(Tracker::Trackio)?,
    };
    imported.account.lines().iter().for_each(|line| output::print_note(line));
    let (steps, events) = (counted(imported.steps, "step", "steps"), counted(imported.events, "event", "events"));
    output::print_note(&format!("{}: {steps}, {events}", to.output.display()));
    Ok(SUCCESS)
}

/// Writes a recording, which is removed if the import fails.
fn import_to_file(
    to: &ImportOutput,
    inputs: &[&Path],
    import: impl FnOnce(BufWriter<&File>) -> Result<Imported, ImportError>,
) -> anyhow::Result<Imported> {
    let file = NewFile::create(&to.output, to.force, inputs)?;
    match import(BufWriter::new(file.file())) {
        Ok(imported) => file.finish().map(|()| imported),
        Err(error) => {
            file.discard();
            Err(error.into())
        }
    }
}
