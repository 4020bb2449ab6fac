//! `gnntop check`: holds a recording to rules, for continuous integration.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use super::assumptions::EnergyArguments;
use super::exit::{REGRESSED, SUCCESS, UNDECIDED, UsageError};
use super::named::NAMED;
use super::reading::{ExactArguments, read_run};
use super::report::{print_rank, select};
use super::settings::Settings;
use super::{output, quantities};
use crate::report::{Bound, Rule, Ruling, aligned, rule_change};
use gnntop_analysis::catalogue::{AbsentFigure, Catalogue, FigureId, Measured};
use gnntop_analysis::comparison::{Compared, compare};
use gnntop_analysis::figures::{change, count, duration};
use gnntop_analysis::ranks::Run;

const EXAMPLES: &str = "\
Examples:
  gnntop check run.gnntop --max forward.p99=12ms --max gap.share=5% --min graphs.per_s=5000
  gnntop check run.gnntop --rules gate.txt
  gnntop check run.gnntop --list
  gnntop check new.gnntop --baseline old.gnntop --slower 5%

A rule is FIGURE=LIMIT. A figure is a name and a statistic: a phase, the gap, the step (from its own start), the period
(with the gap before it) or spans with p50 or any percentile, mean, min, max, sd or share; steps.per_s, heap.peak,
process.rss.peak, gpu.0.util.mean, energy.per_step, device.forward.p99 by a GPU's own clock, and many more: --list lists
those of a recording. Spaces in names may be written as _ or -. A file of rules has one rule per line, with max or min
before it.

With --baseline, the mean, p50 and p90 of the period may exceed the baseline's by at most --slower. Above that, the rule
is broken if the 95 % interval of the change is above zero, and unclear if it is not.

Exit codes: 0 all rules are kept, 1 a recording cannot be read, 2 no rule or a name that the recording does not have, 3 a rule is broken, 4 none is
broken and one cannot be decided.";

/// Check a recording against limits, or against another recording
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArguments {
    /// The recording or session, by file, name, process id, run or their beginning
    #[arg(value_name = NAMED)]
    file: String,
    /// Upper limit, as FIGURE=LIMIT; can be given several times
    #[arg(long, value_name = "RULE", value_parser = |text: &str| Rule::parse(text, Bound::Max))]
    max: Vec<Rule>,
    /// Lower limit, as FIGURE=LIMIT; can be given several times
    #[arg(long, value_name = "RULE", value_parser = |text: &str| Rule::parse(text, Bound::Min))]
    min: Vec<Rule>,
    /// A file of rules
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// List every figure that can be limited, with its value
    #[arg(long, conflicts_with_all = ["max", "min", "rules", "baseline"])]
    list: bool,
    /// A recording or session to compare with
    #[arg(long, value_name = NAMED)]
    baseline: Option<String>,
    /// How much slower than the baseline is allowed
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = quantities::parse_share, requires = "baseline")]
    slower: f64,
    /// For a run of several ranks: the rank to check [default: 0]
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// Leave this many steps at the start out
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_steps: u64,
    #[command(flatten)]
    exact: ExactArguments,
    #[command(flatten)]
    energy: EnergyArguments,
}

/// Does `gnntop check`.
pub(super) fn check(arguments: &CheckArguments) -> anyhow::Result<u8> {
    let mut rules: Vec<Rule> = arguments.max.iter().chain(&arguments.min).cloned().collect();
    if let Some(path) = &arguments.rules {
        rules.extend(read_rules(path)?);
    }
    if rules.is_empty() && arguments.baseline.is_none() && !arguments.list {
        let nothing = "nothing to check: give --max, --min, --rules with a rule in it, or --baseline";
        return Err(UsageError::with_message(format!("{nothing}; --list lists what can be limited")));
    }
    let assumptions = Settings::assumptions(&arguments.energy)?;
    let run = read(&arguments.file, arguments)?;
    let catalogue = Catalogue::with_run(&run).with_skipped_steps(arguments.skip_steps).with_assumptions(assumptions);
    if arguments.list {
        output::print(aligned(&rows(&catalogue.list())).trim_end())?;
        return Ok(SUCCESS);
    }
    let resolved = |rule: Rule| {
        let text = rule.text.clone();
        rule.resolved(&catalogue).map_err(|error| UsageError::with_message(format!("{text}: {error}")))
    };
    let rules = rules.into_iter().map(resolved).collect::<anyhow::Result<Vec<Rule>>>()?;
    let mut rulings = Vec::new();
    for rule in &rules {
        let measured = catalogue.get(&rule.figure);
        let ruling = measured.as_ref().map_or(Ruling::NotEnough, |measured| rule.ruling(measured));
        output::print(&line(rule, ruling, &measured))?;
        rulings.push(ruling);
    }
    if let Some(baseline) = &arguments.baseline {
        rulings.extend(check_against(&read(baseline, arguments)?, &run, arguments.slower)?);
    }
    Ok(exit_code(&rulings))
}

fn read(name: &str, arguments: &CheckArguments) -> anyhow::Result<Run> {
    let mut run = read_run(Some(name), arguments.exact)?;
    select(&mut run, arguments.rank, name)?;
    print_rank(&run, name);
    Ok(run)
}

fn exit_code(rulings: &[Ruling]) -> u8 {
    match () {
        () if rulings.contains(&Ruling::Broken) => REGRESSED,
        () if rulings.contains(&Ruling::NotEnough) => UNDECIDED,
        () => SUCCESS,
    }
}

fn read_rules(path: &PathBuf) -> anyhow::Result<Vec<Rule>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).enumerate();
    let rule = |(at, line): (usize, &str)| {
        let parsed = match line.split_once(' ') {
            Some(("max", rule)) => Rule::parse(rule.trim(), Bound::Max),
            Some(("min", rule)) => Rule::parse(rule.trim(), Bound::Min),
            _ => Err("write each line as `max RULE` or `min RULE`".to_owned()),
        };
        parsed.map_err(|why| UsageError::with_message(format!("{}, line {}: {why}", path.display(), at + 1)))
    };
    lines.filter(|(_, line)| !line.is_empty()).map(rule).collect()
}

fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Kept => "ok     ",
        Ruling::Broken => "broken ",
        Ruling::NotEnough => "unclear",
    }
}

/// The rule, what was measured, of which steps, and its interval.
fn line(rule: &Rule, ruling: Ruling, measured: &Result<Measured, AbsentFigure>) -> String {
    let side = if rule.bound == Bound::Max { "max" } else { "min" };
    let found = match measured {
        Ok(Measured { population, .. }) if ruling == Ruling::NotEnough => {
            format!("not enough was recorded (of {population})")
        }
        Ok(measured) => {
            let word = measured.interval_word();
            let interval = interval(measured).map(|interval| format!("; {word}: {interval}")).unwrap_or_default();
            format!("{} (of {}{interval})", measured.unit.format(measured.value), measured.population)
        }
        Err(absent) => absent.to_string(),
    };
    format!("{} {side} {}: {found}", word(ruling), rule.text)
}

fn interval(measured: &Measured) -> Option<String> {
    let (low, high) = measured.interval?;
    Some(format!("{} to {}", measured.unit.format(low), measured.unit.format(high)))
}

/// A row for each figure: its name, value, interval and what it is over.
fn rows(figures: &[(FigureId, Measured)]) -> Vec<Vec<String>> {
    let row = |(id, measured): &(FigureId, Measured)| {
        let (value, over) = (measured.unit.format(measured.value), measured.population.to_string());
        vec![id.to_string(), value, interval(measured).unwrap_or_default(), over]
    };
    figures.iter().map(row).collect()
}

/// Checks a run against a baseline, and prints the rulings.
fn check_against(baseline: &Run, run: &Run, allowed: f64) -> anyhow::Result<Vec<Ruling>> {
    let comparison = compare(&[baseline], &[run], &[50.0, 90.0]);
    for disturbed in &comparison.disturbed {
        let which = if disturbed.run == "A" { "the baseline" } else { "the recording" };
        output::print_note(&format!("{which} was disturbed: {}", disturbed.what));
    }
    let Some(period) = comparison.lines.iter().find(|line| line.name == "period") else {
        output::print("unclear the baseline: no steps to compare")?;
        return Ok(vec![Ruling::NotEnough]);
    };
    let [before, now] = &comparison.sides;
    let population = format!("{} and {} full batches", count(before.compared_steps), count(now.compared_steps));
    let mut rulings = Vec::new();
    for number in &period.numbers {
        let ruling = rule_change(number, allowed);
        output::print(&comparison_line(number, ruling, allowed, &population))?;
        rulings.push(ruling);
    }
    Ok(rulings)
}

fn comparison_line(number: &Compared, ruling: Ruling, allowed: f64, population: &str) -> String {
    let interval = match number.interval {
        Some((low, high)) => format!("95 %: {} to {}", change(low), change(high)),
        None => "too few steps".to_owned(),
    };
    let [before, now] = [number.first_ns, number.second_ns].map(|ns| duration(ns as u64));
    format!(
        "{} period.{} against the baseline: {} ({before} to {now}; {interval}; of {population}), at most {}",
        word(ruling),
        number.statistic,
        change(number.change),
        change(allowed)
    )
}
