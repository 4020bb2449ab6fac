//! `gnntop compare`: two recordings, phase by phase.

use super::exit::SUCCESS;
use super::output;
use super::report::{read_run, say_rank, select};
use crate::report::{Compared, compare};
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::findings::sweep::{self, Configuration, Scaling};

const EXAMPLES: &str = "\
Examples:
  gnntop compare before.gnntop after.gnntop
  gnntop compare a.gnntop b.gnntop --percentiles 50,90,99 --json

Full batches after the warm-up are compared, at most the newest 4,096. A change is called faster or slower where its
95 % interval (moving-block bootstrap) leaves out no change at all, and it is at least 0.5 %.";

/// Compare two recordings, phase by phase
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArguments {
    /// The recording to compare with
    #[arg(value_name = "A")]
    first: String,
    /// The recording to compare
    #[arg(value_name = "B")]
    second: String,
    /// Percentiles to compare, from 0 to 100
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_values_t = [50.0, 90.0, 99.0], value_parser = super::report::percentile)]
    percentiles: Vec<f64>,
    /// Of runs of several ranks, the one to compare; rank 0 without it
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// For programs: an array with an object for each number
    #[arg(long)]
    json: bool,
}

/// Does `gnntop compare`.
pub(super) fn run(arguments: &CompareArguments) -> anyhow::Result<u8> {
    let (mut before, mut now) = (read_run(Some(&arguments.first))?, read_run(Some(&arguments.second))?);
    select(&mut before, arguments.rank, &arguments.first)?;
    select(&mut now, arguments.rank, &arguments.second)?;
    say_rank(&before, &arguments.first);
    say_rank(&now, &arguments.second);
    let (first, second) = (before.store(), now.store());
    let compared = compare(first, second, &arguments.percentiles);
    if arguments.json {
        output::say(&serde_json::to_string_pretty(&compared)?)?;
        return Ok(SUCCESS);
    }
    let steps = [first, second].map(|store| count(store.steps().total()));
    let names = [&arguments.first, &arguments.second];
    output::say(&format!("A {} ({} steps)\nB {} ({} steps)\n", names[0], steps[0], names[1], steps[1]))?;
    let head = ["", "", "A", "B", "change", "95 % interval", "B is"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(compared.iter().map(cells)).collect();
    output::say(crate::report::table(&rows).trim_end())?;
    let configurations = Configuration::of("A", &before).zip(Configuration::of("B", &now));
    if let Some(scaling) = configurations.and_then(|(first, second)| sweep::scaling(&first, &second)) {
        output::say(&scaling_words(&scaling))?;
    }
    Ok(SUCCESS)
}

/// The speed-up, and what it is worth.
fn scaling_words(scaling: &Scaling) -> String {
    let mut text = format!("\nB is {:.2} x as fast as A; at most {:.2} x can be", scaling.speed_up, scaling.ideal);
    for finding in &scaling.findings {
        text.push_str(&format!("\n! {} ({}): {}", finding.kind.title(), finding.confidence.word(), finding.summary));
        let lines = finding.evidence.iter().map(|line| ("because", line));
        for (word, line) in lines.chain(finding.advice.iter().map(|line| ("try", line))) {
            text.push_str(&format!("\n    {word} {line}"));
        }
    }
    text
}

fn cells(compared: &Compared) -> Vec<String> {
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let interval = |(low, high): (f64, f64)| format!("{} to {}", percent(low), percent(high));
    vec![
        compared.name.clone(),
        format!("p{}", compared.percentile),
        duration(compared.first_ns as u64),
        duration(compared.second_ns as u64),
        percent(compared.change),
        compared.interval.map_or_else(|| "-".to_owned(), interval),
        compared.verdict.words().to_owned(),
    ]
}
