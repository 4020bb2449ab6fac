//! `gnntop compare`: two recordings, or several a side.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::assumptions::EnergyArguments;
use super::exit::SUCCESS;
use super::report::{has_ending, read_run, say_rank, select};
use super::settings::Settings;
use super::usage::UsageError;
use super::{new_file, output};
use crate::report::{Document, Options, Report, compared_in_text};
use gnntop_analysis::comparison::{Comparison, compare};
use gnntop_analysis::figures::counted;
use gnntop_analysis::findings::sweep::{self, Configuration, Scaling};
use gnntop_analysis::ranks::Run;

const EXAMPLES: &str = "\
Examples:
  gnntop compare before.gnntop after.gnntop
  gnntop compare a.gnntop b.gnntop --percentiles 50,90,99 --json
  gnntop compare before.gnntop after.gnntop -o compared.html      a page to attach to a ticket
  gnntop compare a1.gnntop a2.gnntop a3.gnntop --against b1.gnntop b2.gnntop b3.gnntop

The first line says how much more work B does in the same time, the second whether both ran the same thing. Full batches
after the warm-up are compared, at most the newest 4,096 of a run. A change is called faster or slower where its 95 %
interval leaves out no change at all, and it is at least 0.5 % of the number itself and of the whole step. With one run
a side the interval is over its steps (moving-block bootstrap) and knows nothing of what differs from run to run; with
several a side it is over runs (Welch). Where a run was disturbed by others on its CPU there is no verdict.";

/// Compare two recordings, or several a side
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArguments {
    /// Two recordings, A and B; with --against all runs of side A
    #[arg(value_name = "A", required = true)]
    first: Vec<String>,
    /// The runs of side B
    #[arg(long, value_name = "B", num_args = 1..)]
    against: Vec<String>,
    /// Percentiles to compare beside the mean, from 0 to 100
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_values_t = [50.0, 90.0, 99.0], value_parser = super::report::percentile)]
    percentiles: Vec<f64>,
    /// Of runs of several ranks, the one to compare; rank 0 without it
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
    let sides = sides(arguments)?;
    let runs = [read_side(sides[0], arguments.rank)?, read_side(sides[1], arguments.rank)?];
    let [first, second] = [0, 1].map(|side: usize| runs[side].iter().collect::<Vec<&Run>>());
    let comparison = compare(&first, &second, &arguments.percentiles);
    let is_open = !arguments.json && !arguments.html;
    let is_named = |ending: &str| is_open && has_ending(arguments.output.as_deref(), ending);
    let written = if arguments.json || is_named("json") {
        serde_json::to_string_pretty(&Compared { comparison: &comparison, scaling: scaling_of(&runs) })?
    } else if arguments.html || is_named("html") {
        page(&comparison, sides, &runs)?
    } else {
        text(&comparison, sides, &runs)
    };
    match &arguments.output {
        Some(path) => {
            let inputs: Vec<&Path> = sides.into_iter().flatten().map(Path::new).collect();
            new_file::write(path, &(written.trim_end().to_owned() + "\n"), arguments.force, &inputs)?;
        }
        None => output::say(written.trim_end())?,
    }
    Ok(SUCCESS)
}

/// What is to be said of ranks and stages where each side is one run.
fn scaling_of(runs: &[Vec<Run>; 2]) -> Option<Scaling> {
    let [[first], [second]] = [runs[0].as_slice(), runs[1].as_slice()] else { return None };
    let (first, second) = Configuration::of("A", first).zip(Configuration::of("B", second))?;
    sweep::scaling(&first, &second)
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Compared<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// Of runs with several ranks or stages.
    scaling: Option<Scaling>,
}

/// The comparison for people, with which recordings A and B are.
fn text(comparison: &Comparison, sides: [&[String]; 2], runs: &[Vec<Run>; 2]) -> String {
    let legends = [legend("A", sides[0], &runs[0]), legend("B", sides[1], &runs[1])];
    let mut text = format!("{}\n{}\n\n{}", legends[0], legends[1], compared_in_text(comparison));
    text.extend(scaling_of(runs).map(|scaling| scaling_words(&scaling)));
    text
}

/// The comparison as HTML, with a report on the first run of each side.
fn page(comparison: &Comparison, sides: [&[String]; 2], runs: &[Vec<Run>; 2]) -> anyhow::Result<String> {
    let assumptions = Settings::assumptions(&EnergyArguments::default())?;
    let options = Options { assumptions, ..Options::default() };
    let report = |side: usize| runs[side].first().map(|run| Report::of_run(run, &options));
    let (Some(first), Some(second)) = (report(0), report(1)) else { bail!("each side needs a recording") };
    let names = sides.map(|names| names.join(", "));
    Ok(Document::compared(comparison, [(&names[0], &first), (&names[1], &second)]).to_html())
}

/// The recordings of each side.
fn sides(arguments: &CompareArguments) -> anyhow::Result<[&[String]; 2]> {
    match (arguments.first.as_slice(), arguments.against.as_slice()) {
        (first, second @ [_, ..]) if (first.len() > 1) == (second.len() > 1) => Ok([first, second]),
        (_, [_, ..]) => Err(UsageError::told(
            "give one run on each side, or at least two on each: a single run does not show how runs differ",
        )),
        ([first, second], []) => Ok([std::slice::from_ref(first), std::slice::from_ref(second)]),
        ([_], []) => Err(UsageError::told("give another recording to compare with")),
        _ => Err(UsageError::told("to compare several runs a side, give those of B after --against")),
    }
}

fn read_side(names: &[String], rank: Option<u32>) -> anyhow::Result<Vec<Run>> {
    let read = |name: &String| {
        let mut run = read_run(Some(name))?;
        select(&mut run, rank, name)?;
        say_rank(&run, name);
        Ok(run)
    };
    names.iter().map(read).collect()
}

/// Which recordings a side is.
fn legend(side: &str, names: &[String], runs: &[Run]) -> String {
    let line = |(at, (name, run)): (usize, (&String, &Run))| {
        let number = if names.len() > 1 { format!(" {}", at + 1) } else { String::new() };
        format!("{side}{number} {name} ({})", counted(run.store().steps().total(), "step", "steps"))
    };
    names.iter().zip(runs).enumerate().map(line).collect::<Vec<String>>().join("\n")
}

/// The speed-up, and what it is worth.
fn scaling_words(scaling: &Scaling) -> String {
    let mut text = match scaling.speed_up {
        Some(speed_up) => format!("\nby their median steps B is {speed_up:.2} x as fast as A; its"),
        None => "\nB's".to_owned(),
    };
    text.push_str(&format!(" ranks and stages can give {:.2} x at most", scaling.ideal));
    if let Some(as_split) = scaling.as_split {
        text.push_str(&format!(", and {as_split:.2} x as the blocks are split"));
    }
    scaling.notes.iter().for_each(|note| text.push_str(&format!("\n{note}")));
    for finding in &scaling.findings {
        text.push_str(&format!("\n! {} ({}): {}", finding.kind.title(), finding.confidence.word(), finding.summary));
        let lines = finding.evidence.iter().map(|line| ("because", line));
        for (word, line) in lines.chain(finding.advice.iter().map(|line| ("try", line))) {
            text.push_str(&format!("\n    {word} {line}"));
        }
    }
    text
}
