//! `gnntop check`: holds a recording to rules, for continuous integration.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};

use super::exit::{REGRESSED, SUCCESS, UNDECIDED};
use super::output;
use super::report::read;
use crate::report::{Bound, Options, Report, Rule, Ruling, compare, ruling_of};
use gnntop_analysis::store::Store;

const EXAMPLES: &str = "\
Examples:
  gnntop check run.gnntop --max forward.p99=12ms --max gap.share=5% --min graphs.per_s=5000
  gnntop check run.gnntop --rules gate.txt
  gnntop check new.gnntop --baseline old.gnntop --slower 5%

A rule is NAME.STATISTIC=LIMIT. Names: phases, gap, step, spans; steps, graphs, nodes, edges, seeds with per_s; memory
and rss with peak; device.forward and the like by a GPU's own clock, device.memory and device.reserved with peak.
Statistics: p50 or any percentile, mean, min, max, sd, share, per_s, peak. A file of rules has one a line, with max or
min before it. With a baseline, the step's p50 and p90 may be slower by no more than --slower.

Exit codes: 0 all rules are kept, 3 one is broken, 4 none is broken and one cannot be decided.";

/// Hold a recording to limits, or to another recording
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArguments {
    /// The recording
    #[arg(value_name = "FILE")]
    file: String,
    /// At most so much; can be given several times
    #[arg(long, value_name = "RULE", value_parser = |text: &str| Rule::parse(text, Bound::Max))]
    max: Vec<Rule>,
    /// At least so much; can be given several times
    #[arg(long, value_name = "RULE", value_parser = |text: &str| Rule::parse(text, Bound::Min))]
    min: Vec<Rule>,
    /// A file of rules
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// A recording to compare with
    #[arg(long, value_name = "FILE")]
    baseline: Option<String>,
    /// How much slower than the baseline is allowed
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share, requires = "baseline")]
    slower: f64,
    /// Of a run of several ranks, the one to check; rank 0 without it
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// Leave out this many steps at the start in shares and rates
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_steps: u64,
}

fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let share = percent.filter(|percent| (0.0..=1000.0).contains(percent)).map(|percent| percent / 100.0);
    share.ok_or_else(|| "give a percentage such as 5%".to_owned())
}

/// Does `gnntop check`.
pub(super) fn check(arguments: &CheckArguments) -> anyhow::Result<u8> {
    let mut rules: Vec<Rule> = arguments.max.iter().chain(&arguments.min).cloned().collect();
    if let Some(path) = &arguments.rules {
        rules.extend(rules_in(path)?);
    }
    if rules.is_empty() && arguments.baseline.is_none() {
        bail!("nothing to check: give --max, --min, --rules or --baseline");
    }
    let store = read(Some(&arguments.file), arguments.rank)?;
    let options = Options { skip_steps: arguments.skip_steps, ..Options::default() };
    let report = Report::of(&store, &options);
    let absolute = rules.iter().map(|rule| {
        let ruling = rule.ruling(&store, &report);
        (ruling, line(rule, ruling))
    });
    let mut rulings: Vec<(Ruling, String)> = absolute.collect();
    if let Some(baseline) = &arguments.baseline {
        rulings.extend(against(&read(Some(baseline), arguments.rank)?, &store, arguments.slower));
    }
    for (_, line) in &rulings {
        output::say(line)?;
    }
    Ok(exit_code(rulings.iter().map(|(ruling, _)| *ruling)))
}

fn exit_code(rulings: impl Iterator<Item = Ruling> + Clone) -> u8 {
    match () {
        () if rulings.clone().any(|ruling| matches!(ruling, Ruling::Broken(_))) => REGRESSED,
        () if rulings.clone().any(|ruling| ruling == Ruling::NotEnough) => UNDECIDED,
        () => SUCCESS,
    }
}

fn rules_in(path: &PathBuf) -> anyhow::Result<Vec<Rule>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).enumerate();
    let rule = |(at, line): (usize, &str)| {
        let parsed = match line.split_once(' ') {
            Some(("max", rule)) => Rule::parse(rule.trim(), Bound::Max),
            Some(("min", rule)) => Rule::parse(rule.trim(), Bound::Min),
            _ => Err("a line is max RULE or min RULE".to_owned()),
        };
        parsed.map_err(|why| anyhow::anyhow!("{}, line {}: {why}", path.display(), at + 1))
    };
    lines.filter(|(_, line)| !line.is_empty()).map(rule).collect()
}

fn line(rule: &Rule, ruling: Ruling) -> String {
    let side = if rule.bound == Bound::Max { "max" } else { "min" };
    match ruling {
        Ruling::Kept(value) => format!("ok      {side} {}: {}", rule.text, rule.written(value)),
        Ruling::Broken(value) => format!("broken  {side} {}: {}", rule.text, rule.written(value)),
        Ruling::NotEnough => format!("unclear {side} {}: nothing, or too little, was recorded for it", rule.text),
    }
}

/// The rules that a baseline stands for.
fn against(baseline: &Store, store: &Store, allowed: f64) -> Vec<(Ruling, String)> {
    let compared = compare(baseline, store, &[50.0, 90.0]);
    let steps = compared.into_iter().filter(|compared| compared.name == "step");
    let ruled = steps.map(|compared| {
        let ruling = ruling_of(&compared, allowed);
        let word = match ruling {
            Ruling::Kept(_) => "ok     ",
            Ruling::Broken(_) => "broken ",
            Ruling::NotEnough => "unclear",
        };
        let percent = |share: f64| format!("{:+.1} %", share * 100.0);
        let interval = compared.interval.map_or_else(
            || "too few steps".to_owned(),
            |(low, high)| format!("between {} and {}", percent(low), percent(high)),
        );
        let change = percent(compared.change);
        let p = compared.percentile;
        (ruling, format!("{word} step.p{p} against the baseline: {change} ({interval}), {} allowed", percent(allowed)))
    });
    ruled.collect()
}
