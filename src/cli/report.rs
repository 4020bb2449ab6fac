//! `gnntop report`: percentiles and shares of recordings or sessions, without a screen.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::assumptions::EnergyArguments;
use super::exit::SUCCESS;
use super::named::NAMED;
use super::reading::{ExactArguments, read_into, read_run};
use super::settings::Settings;
use super::{new_file, output};
use crate::report::{Document, Options, Report, to_csv};
use gnntop_analysis::ranks::Run;

/// Spans on a page: those after the first ten are folded.
const SPANS_OF_A_PAGE: usize = 200;

const EXAMPLES: &str = "\
Examples:
  gnntop report pna.gnntop                  as text
  gnntop report pna.gnntop --json | python3 -m json.tool
  gnntop report a.gnntop b.gnntop --percentiles 50,99,99.9 --skip-steps 10
  gnntop report a.gnntop -o report.html     a page to attach to a ticket
  gnntop report pna.gnntop --region CA-QC --tdp 205   energy and carbon with other assumptions
  gnntop report pna                         a live session so far, by name, process id or directory
  gnntop report four.gnntop --against one.gnntop      efficiency of four ranks compared with one
  gnntop report week.gnntop --exact         from every event of a long recording, not its summaries
  gnntop report rank0.gnntop rank1.gnntop   files of one run make one report, with a line for each rank

Exit codes: 0 success, also if part of a recording is damaged (standard error has a warning); 1 nothing to report.";

/// Report percentiles, findings, hardware and energy of recordings
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArguments {
    /// Sessions by name, process id, run or their beginning, or recordings (`-` is standard input) [default: the
    /// only live session]
    #[arg(value_name = NAMED)]
    inputs: Vec<String>,
    /// Write JSON: an object, or an array for several inputs
    #[arg(long, group = "form")]
    json: bool,
    /// Write CSV: one number per line
    #[arg(long, group = "form")]
    csv: bool,
    /// Write Markdown; several inputs get a column each
    #[arg(long, group = "form")]
    markdown: bool,
    /// Write HTML: one file with pictures, to attach to a ticket
    #[arg(long, group = "form")]
    html: bool,
    /// Output file; its ending `.html`, `.md`, `.csv` or `.json` chooses the form [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With --output: overwrite an existing file
    #[arg(long, requires = "output")]
    force: bool,
    /// Percentiles, from 0 to 100
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_values_t = [50.0, 90.0, 99.0], value_parser = parse_percentile)]
    percentiles: Vec<f64>,
    /// Skip this many steps at the start, as warm-up
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_steps: u64,
    /// For a run of several ranks: the rank to report in full
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// For a run of several ranks: a recording of the same training on one rank, to compute the efficiency
    #[arg(long, value_name = NAMED)]
    against: Option<String>,
    #[command(flatten)]
    exact: ExactArguments,
    #[command(flatten)]
    energy: EnergyArguments,
}

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportFormat {
    Text,
    Json,
    Csv,
    Markdown,
    Html,
}

impl ReportArguments {
    /// The form that was asked for, or that of the output file's extension.
    fn format(&self) -> ReportFormat {
        let asked = [
            (self.json, ReportFormat::Json),
            (self.csv, ReportFormat::Csv),
            (self.markdown, ReportFormat::Markdown),
            (self.html, ReportFormat::Html),
        ];
        let endings = [
            ("json", ReportFormat::Json),
            ("csv", ReportFormat::Csv),
            ("md", ReportFormat::Markdown),
            ("html", ReportFormat::Html),
        ];
        let asked = asked.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, form)| form);
        let by_ending = || endings.into_iter().find(|(ending, _)| has_extension(self.output.as_deref(), ending));
        asked.or_else(|| Some(by_ending()?.1)).unwrap_or(ReportFormat::Text)
    }
}

/// Whether an output file's name has this extension.
pub(super) fn has_extension(output: Option<&Path>, ending: &str) -> bool {
    output.and_then(Path::extension).is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
}

pub(super) fn parse_percentile(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok();
    number.filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| "a percentile is between 0 and 100".to_owned())
}

/// Does `gnntop report`.
pub(super) fn report(arguments: &ReportArguments) -> anyhow::Result<u8> {
    let assumptions = Settings::assumptions(&arguments.energy)?;
    let (percentiles, skip_steps) = (arguments.percentiles.clone(), arguments.skip_steps);
    let one_rank_per_s = arguments.against.as_deref().map(|name| one_rank_per_s(name, arguments.exact)).transpose()?;
    let form = arguments.format();
    let top_spans = if form == ReportFormat::Html { SPANS_OF_A_PAGE } else { Options::default().top_spans };
    let options = Options { top_spans, percentiles, skip_steps, assumptions, one_rank_per_s };
    let named = arguments.inputs.iter().map(|input| Some(input.as_str()));
    let inputs: Vec<Option<&str>> = if arguments.inputs.is_empty() { vec![None] } else { named.collect() };
    let runs = read_runs(&inputs, arguments.exact)?;
    let (mut reports, mut figures) = (Vec::new(), Vec::new());
    for (name, mut run) in runs {
        select(&mut run, arguments.rank, &name)?;
        let catalogue = options.catalogue(&run);
        if form == ReportFormat::Csv {
            figures.push((name, catalogue.list()));
        } else {
            reports.push((name, Report::new(&catalogue, &options)));
        }
    }
    let named: Vec<(&str, &Report)> = reports.iter().map(|(name, report)| (name.as_str(), report)).collect();
    let written = match form {
        ReportFormat::Json => json(&reports)?,
        ReportFormat::Csv => to_csv(&figures),
        ReportFormat::Markdown => Document::from_reports(&named).to_markdown(),
        ReportFormat::Html => Document::from_reports(&named).to_html(),
        ReportFormat::Text => text(&named),
    };
    match &arguments.output {
        Some(path) => {
            let inputs: Vec<&Path> = arguments.inputs.iter().chain(&arguments.against).map(Path::new).collect();
            new_file::write(path, &written, arguments.force, &inputs)?;
        }
        None => output::print(written.trim_end())?,
    }
    Ok(SUCCESS)
}

/// Work per second of the run of one rank with this name.
fn one_rank_per_s(name: &str, exact: ExactArguments) -> anyhow::Result<f64> {
    let run = read_run(Some(name), exact)?;
    if run.is_parallel() {
        bail!("{name} is a run of {} ranks; --against needs the same training on one rank", run.expected());
    }
    let rate = run.store().statistics().throughput();
    rate.graphs_per_s
        .or(rate.seeds_per_s)
        .with_context(|| format!("{name} does not record how many graphs or seeds its steps have"))
}

/// Reads all inputs; files that hold ranks of the same run, or its starts from the oldest on, become one.
fn read_runs(inputs: &[Option<&str>], exact: ExactArguments) -> anyhow::Result<Vec<(String, Run)>> {
    let mut runs: Vec<(String, Run)> = Vec::new();
    for input in inputs {
        let name = input.unwrap_or_default();
        let mut run = Some(read_run(*input, exact)?);
        for (names, known) in &mut runs {
            // Read once more, into the history that it continues; standard input can be read only once.
            if name != "-" && run.as_ref().is_some_and(|run| known.is_continued_by(run)) {
                read_into(*input, exact, known)?;
                *names += &format!(" + {name}");
                run = None;
            }
            run = match run.take().map(|run| known.join(run)) {
                Some(Err(run)) => Some(*run),
                Some(Ok(())) => {
                    *names += &format!(" + {name}");
                    None
                }
                None => None,
            };
        }
        runs.extend(run.map(|run| (name.to_owned(), run)));
    }
    Ok(runs)
}

/// Says which rank the report is about, if there are several.
pub(super) fn print_rank(run: &Run, name: &str) {
    if run.is_parallel() {
        let (rank, ranks) = (run.rank().unwrap_or_default(), run.expected());
        output::print_note(&format!("{name}: rank {rank} of {ranks} of run {}", run.id().unwrap_or_default()));
    }
}

/// Selects the rank that is named.
pub(super) fn select(run: &mut Run, rank: Option<u32>, name: &str) -> anyhow::Result<()> {
    match rank {
        Some(rank) if run.is_parallel() && !run.select(rank) => {
            let known: Vec<String> = run.ranks().all().iter().map(|rank| rank.place.rank.to_string()).collect();
            bail!("{name} has no rank {rank}: it has {}", known.join(", "))
        }
        Some(rank) if !run.is_parallel() && rank > 0 => bail!("{name} has only one rank: remove --rank"),
        _ => Ok(()),
    }
}

fn json(reports: &[(String, Report)]) -> anyhow::Result<String> {
    match reports {
        [(_, report)] => Ok(report.to_json()?),
        several => {
            let objects: Result<Vec<_>, _> = several.iter().map(|(_, report)| report.to_json()).collect();
            let objects: Vec<String> = objects?.iter().map(|object| object.trim_end().to_owned()).collect();
            Ok(format!("[\n{}\n]", objects.join(",\n")))
        }
    }
}

fn text(reports: &[(&str, &Report)]) -> String {
    // Their names stand above: a pipe is as good as a file.
    let text = |report| Document::from_reports(&[("", report)]).to_text();
    match reports {
        [(_, report)] => text(report),
        several => several.iter().map(|(name, report)| format!("== {name}\n{}\n", text(report))).collect(),
    }
}
