//! `gnntop compare`: two recordings, several on each side, or a part of one with what came before it.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::assumptions::EnergyArguments;
use super::exit::{SUCCESS, UsageError};
use super::reading::ExactArguments;
use super::report::{has_extension, print_rank, select};
use super::run_part::{NamedRun, PartArguments};
use super::settings::Settings;
use super::{new_file, output};
use crate::report::{Document, Options, Report};
use gnntop_analysis::comparison::{Comparison, compare};
use gnntop_analysis::figures::{count, counted};
use gnntop_analysis::findings::sweep::{self, Configuration, Scaling};
use gnntop_analysis::ranks::Run;

const EXAMPLES: &str = "\
Examples:
  gnntop compare before.gnntop after.gnntop
  gnntop compare a.gnntop b.gnntop --percentiles 50,90,99 --json
  gnntop compare before.gnntop after.gnntop -o compared.html      a page to attach to a ticket
  gnntop compare new1.gnntop new2.gnntop new3.gnntop --against old1.gnntop old2.gnntop old3.gnntop
  gnntop compare run.gnntop --from 'step 12000'       B from that step on, A before it
  gnntop compare pna --from 14:10 --until 15:00       the same of a session, by the clock (UTC)
  gnntop compare pna --from 3d --baseline-until 1d    the time since day three with the first day
  gnntop compare a.gnntop b.gnntop --from 10m         both without their first ten minutes

With one run and --from, side B is the part of the run from that moment on, up to --until if given, and side A is the
part before it, or the part that --baseline-from and --baseline-until bound. For segments that a session no longer
keeps, whole seconds or minutes are compared, by their median steps.

A is what was before and B what is now, here and in view 9: `compare A B`, `compare B --against A`, `replay B --against
A`, `check B --baseline A`. The first line says how much more work B does in the same time, the second whether both ran the same thing. Full batches
after the warm-up are compared, at most the newest 4,096 of a run. A change counts as faster or slower only if its 95 %
interval excludes zero and it is at least 0.5 % of the value and of the step. With one run on each side, the interval is
over its steps (moving-block bootstrap) and does not include the variation from run to run; with several on each side,
it is over runs (Welch). If other programs disturbed a run on its CPU, the first line says so, and
decides only where the interval excludes 1.

Exit codes: 0 the runs were compared, whichever is faster; 1 one cannot be read. To have a slower B fail, with 3, or 4 if
that cannot be decided: gnntop check B --baseline A --slower 5%.";

/// Compare two recordings, several on each side, or a part of one with what came before
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArguments {
    /// Two recordings or sessions, A (before) and B (now), by file, name, process id, run or their beginning; one with --from; with
    /// --against, the runs of side B
    #[arg(value_name = "RUN", required = true)]
    first: Vec<String>,
    /// The runs of side A, with which the others are compared
    #[arg(long, value_name = "A", num_args = 1..)]
    against: Vec<String>,
    #[command(flatten)]
    part: PartArguments,
    #[command(flatten)]
    exact: ExactArguments,
    /// Percentiles to compare in addition to the mean, from 0 to 100
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_values_t = [50.0, 90.0, 99.0], value_parser = super::report::parse_percentile)]
    percentiles: Vec<f64>,
    /// For runs of several ranks: the rank to compare [default: 0]
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// Write JSON: one object
    #[arg(long, group = "form")]
    json: bool,
    /// Write HTML: one file with both runs side by side
    #[arg(long, group = "form")]
    html: bool,
    /// Output file; its ending `.html` or `.json` chooses the form [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With --output: overwrite an existing file
    #[arg(long, requires = "output")]
    force: bool,
}

/// Does `gnntop compare`.
pub(super) fn run(arguments: &CompareArguments) -> anyhow::Result<u8> {
    let Sides { names, runs } = read_sides(arguments)?;
    let [first, second] = [0, 1].map(|side: usize| runs[side].iter().collect::<Vec<&Run>>());
    let comparison = compare(&first, &second, &arguments.percentiles);
    let is_open = !arguments.json && !arguments.html;
    let is_named = |ending: &str| is_open && has_extension(arguments.output.as_deref(), ending);
    let written = if arguments.json || is_named("json") {
        serde_json::to_string_pretty(&ComparisonJson {
            comparison: &comparison,
            scaling: compare_scaling(&runs),
            steps_from_summaries: [0, 1].map(|side: usize| runs[side].iter().map(summary_steps).collect()),
        })?
    } else if arguments.html || is_named("html") {
        page(&comparison, &names, &runs)?
    } else {
        text(&comparison, &names, &runs)
    };
    match &arguments.output {
        Some(path) => {
            let inputs: Vec<&Path> = arguments.first.iter().chain(&arguments.against).map(Path::new).collect();
            new_file::write(path, &(written.trim_end().to_owned() + "\n"), arguments.force, &inputs)?;
        }
        None => output::print(written.trim_end())?,
    }
    Ok(SUCCESS)
}

/// Findings about ranks and stages, if each side is one run.
fn compare_scaling(runs: &[Vec<Run>; 2]) -> Option<Scaling> {
    let [[first], [second]] = [runs[0].as_slice(), runs[1].as_slice()] else { return None };
    let (first, second) = Configuration::from_run("A", first).zip(Configuration::from_run("B", second))?;
    sweep::scaling(&first, &second)
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct ComparisonJson<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// Of runs with several ranks or stages.
    scaling: Option<Scaling>,
    /// For each run of each side: number of first steps known only from summaries.
    steps_from_summaries: [Vec<u64>; 2],
}

/// The comparison for people, with which recordings A and B are.
fn text(comparison: &Comparison, names: &[Vec<String>; 2], runs: &[Vec<Run>; 2]) -> String {
    let legends = [legend("A", &names[0], &runs[0]), legend("B", &names[1], &runs[1])];
    let mut text = format!("{}\n{}\n\n{}", legends[0], legends[1], Document::from_comparison(comparison).to_text());
    text.extend(compare_scaling(runs).map(|scaling| scaling_words(&scaling)));
    text
}

/// The comparison as HTML, with a report on the first run of each side.
fn page(comparison: &Comparison, names: &[Vec<String>; 2], runs: &[Vec<Run>; 2]) -> anyhow::Result<String> {
    let assumptions = Settings::assumptions(&EnergyArguments::default())?;
    let options = Options { assumptions, ..Options::default() };
    let report = |side: usize| runs[side].first().map(|run| Report::new(&options.catalogue(run), &options));
    let (Some(first), Some(second)) = (report(0), report(1)) else { bail!("each side needs a recording") };
    let names = [0, 1].map(|side: usize| names[side].join(", "));
    Ok(Document::from_compared_reports(comparison, [(&names[0], &first), (&names[1], &second)]).to_html())
}

/// The two sides of the comparison, A first.
#[derive(Default)]
struct Sides {
    names: [Vec<String>; 2],
    runs: [Vec<Run>; 2],
}

impl Sides {
    fn add(&mut self, side: usize, NamedRun { name, mut run }: NamedRun, rank: Option<u32>) -> anyhow::Result<()> {
        select(&mut run, rank, &name)?;
        print_rank(&run, &name);
        self.names[side].push(name);
        self.runs[side].push(run);
        Ok(())
    }
}

/// The runs of each side.
fn read_sides(arguments: &CompareArguments) -> anyhow::Result<Sides> {
    let CompareArguments { part, rank, .. } = arguments;
    if part.is_given() && arguments.first.iter().chain(&arguments.against).any(|name| name == "-") {
        return Err(UsageError::with_message("a part of standard input cannot be compared: save it to a file first"));
    }
    let mut sides = Sides::default();
    if let ([one], [], true) = (arguments.first.as_slice(), arguments.against.as_slice(), part.is_given()) {
        for (side, named) in part.read_with_baseline(one, arguments.exact)?.into_iter().enumerate() {
            sides.add(side, named, *rank)?;
        }
        return Ok(sides);
    }
    for (side, names) in parse_sides(arguments)?.into_iter().enumerate() {
        for name in names {
            sides.add(side, part.read_part(name, arguments.exact)?, *rank)?;
        }
    }
    Ok(sides)
}

/// The recordings of each side.
fn parse_sides(arguments: &CompareArguments) -> anyhow::Result<[&[String]; 2]> {
    match (arguments.first.as_slice(), arguments.against.as_slice()) {
        (now, before @ [_, ..]) if (now.len() > 1) == (before.len() > 1) => Ok([before, now]),
        (_, [_, ..]) => Err(UsageError::with_message(
            "give one run on each side, or at least two on each: a single run does not show how runs differ",
        )),
        ([first, second], []) => Ok([std::slice::from_ref(first), std::slice::from_ref(second)]),
        ([_], []) => Err(UsageError::with_message(
            "give another recording to compare with, or a moment of this one: --from 'step 12000', --from 14:10",
        )),
        _ => Err(UsageError::with_message(
            "to compare several runs on each side, give those of A, from before, after --against",
        )),
    }
}

/// Number of a run's first steps known only from summaries.
fn summary_steps(run: &Run) -> u64 {
    run.store().past().map_or(0, |past| past.steps)
}

/// Which recordings a side is.
fn legend(side: &str, names: &[String], runs: &[Run]) -> String {
    let line = |(at, (name, run)): (usize, (&String, &Run))| {
        let number = if names.len() > 1 { format!(" {}", at + 1) } else { String::new() };
        let steps = counted(run.store().steps().total(), "step", "steps");
        match summary_steps(run) {
            0 => format!("{side}{number} {name} ({steps})"),
            summed => format!("{side}{number} {name} ({steps}, the first {} from summaries)", count(summed)),
        }
    };
    names.iter().zip(runs).enumerate().map(line).collect::<Vec<String>>().join("\n")
}

/// The speed-up, and what it is worth.
fn scaling_words(scaling: &Scaling) -> String {
    let mut text = match scaling.speed_up {
        Some(speed_up) => format!("\nby their median steps B is {speed_up:.2} x as fast as A; its"),
        None => "\nB's".to_owned(),
    };
    text.push_str(&format!(" ranks and stages can give at most {:.2} x", scaling.ideal));
    if let Some(as_split) = scaling.as_split {
        text.push_str(&format!(", and {as_split:.2} x as the blocks are split"));
    }
    scaling.notes.iter().for_each(|note| text.push_str(&format!("\n{note}")));
    for finding in &scaling.findings {
        text.push_str(&format!("\n! {} ({}): {}", finding.kind.title(), finding.confidence.as_str(), finding.summary));
        let lines = finding.evidence.iter().map(|line| ("because", line));
        for (word, line) in lines.chain(finding.advice.iter().map(|line| ("try", line))) {
            text.push_str(&format!("\n    {word} {line}"));
        }
    }
    text
}
