//! The tools about one run, or two: what a report, a comparison and the catalogue of figures say, picked and named for an agent.

use std::fs;

use anyhow::bail;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::parameters::Arguments;
use super::refusal::{Refusal, ToolError};
use crate::cli::assumptions::EnergyArguments;
use crate::cli::reading::{ExactArguments, read_run};
use crate::cli::report::select;
use crate::cli::settings::Settings;
use crate::report::{Options, Report};
use gnntop_analysis::comparison;
use gnntop_analysis::figures::duration;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::store::{StepRow, Store};

/// Stacks of an answer.
const MOST_STACKS: usize = 15;
/// Slow steps, unless asked for more.
const USUAL_STEPS: u64 = 10;

/// Reads a run, or one of its ranks. What does not end by itself is refused: the server would answer nothing any more.
pub(super) fn read(named: Option<&str>, rank: Option<u32>) -> anyhow::Result<Run> {
    check_name(named)?;
    let mut run = read_run(named, ExactArguments::default())?;
    select(&mut run, rank, named.unwrap_or("the run"))?;
    Ok(run)
}

/// A pipe, or standard input, which is the client's own.
pub(super) fn check_name(named: Option<&str>) -> anyhow::Result<()> {
    let Some(name) = named else { return Ok(()) };
    let is_special = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    if name == "-" || fs::metadata(name).is_ok_and(is_special) {
        bail!("{name} is no file and no run: list_runs has those that there are");
    }
    Ok(())
}

fn read_asked(arguments: Arguments<'_>) -> Result<Run, ToolError> {
    let rank = arguments.number("rank")?;
    let rank = rank.map(u32::try_from).transpose().map_err(|_| Refusal::parameters("there is no such `rank`"))?;
    Ok(read(arguments.text("run")?, rank)?)
}

pub(super) fn options(skip_steps: u64) -> anyhow::Result<Options> {
    let assumptions = Settings::assumptions(&EnergyArguments::default())?;
    Ok(Options { assumptions, skip_steps, ..Options::default() })
}

/// The report of the run that is asked about, in the form of `gnntop report --json`.
fn report(arguments: Arguments<'_>, skip_steps: u64) -> Result<Value, ToolError> {
    let run = read_asked(arguments)?;
    let options = options(skip_steps)?;
    let report = Report::new(&options.catalogue(&run), &options);
    Ok(serde_json::to_value(&report).map_err(anyhow::Error::new)?)
}

/// Some fields of an object.
fn pick(from: &Value, fields: &[&str]) -> Value {
    let picked = fields.iter().filter_map(|field| Some(((*field).to_owned(), from.get(field)?.clone())));
    Value::Object(picked.collect())
}

/// What a list of objects has of these fields.
fn pick_each(list: &Value, fields: &[&str]) -> Vec<Value> {
    list.as_array().into_iter().flatten().map(|one| pick(one, fields)).collect()
}

/// The texts in a list.
fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

const OF_SESSION: [&str; 8] = ["name", "session_id", "pid", "host", "command", "state", "died", "covered_ns"];
/// Losses, and other values that were not finite, of which there may be as many as the program logs.
const LOSSES_MOST: usize = 8;
const OF_LOSS: [&str; 5] = ["name", "least_step", "not_finite", "last_good_step", "wrong"];
const OF_PHASE: [&str; 6] = ["name", "share", "mean_ns", "p50_ns", "p90_ns", "p99_ns"];
const OF_FINDING: [&str; 7] = ["kind", "severity", "confidence", "share", "summary", "evidence", "advice"];

/// Verdict, phases, findings, and what could not be checked.
pub(super) fn diagnose(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let report = report(arguments, arguments.number("skip_steps")?.unwrap_or(0))?;
    let found = &report["findings"]["found"];
    let first = found.get(0);
    let evidence = first.map(|first| texts(&first["evidence"])).unwrap_or_default();
    let advice = first.and_then(|first| texts(&first["advice"]).into_iter().next());
    let unchecked = report["findings"]["not_enough"].as_array().into_iter().flatten();
    let unchecked = unchecked.map(|one| format!("not checked: {}: {}", text(&one["kind"]), text(&one["reason"])));
    let has_died = report["session"]["died"].is_string() && report["session"]["died_of"] != "asked";
    let next_step = match advice {
        _ if has_died => "ask why_died".to_owned(),
        Some(advice) => format!("{advice}; then record again and compare"),
        None if report["steps"]["total"] == 0 => "there are no steps yet: wait_for some".to_owned(),
        None => "nothing is found: ask steps for the slowest ones".to_owned(),
    };
    Ok(Answer {
        summary: text(&report["verdict"]),
        data: json!({
            "session": pick(&report["session"], &OF_SESSION),
            "steps": pick(&report["steps"], &["total", "reported", "epochs", "first_loss", "last_loss"]),
            "losses": pick_each(&report["logged"], &OF_LOSS).into_iter().take(LOSSES_MOST).collect::<Vec<Value>>(),
            "steps_per_s": report["throughput"]["steps_per_s"],
            "phases": pick_each(&report["phases"], &OF_PHASE),
            "findings": pick_each(found, &OF_FINDING),
        }),
        evidence,
        limits: unchecked
            .chain(texts(&report["not_measured"]).into_iter().map(|what| format!("not measured: {what}")))
            .collect(),
        next_step,
    })
}

/// Percentiles with their intervals.
pub(super) fn percentiles(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let report = report(arguments, 0)?;
    let wanted = arguments.text("of")?;
    let all = report["phases"].as_array().cloned().unwrap_or_default();
    let names: Vec<String> = all.iter().map(|line| text(&line["name"])).collect();
    let lines: Vec<Value> = all.into_iter().filter(|line| wanted.is_none_or(|name| line["name"] == name)).collect();
    let Some(shown) = lines.iter().find(|line| line["name"] == wanted.unwrap_or("period")) else {
        let what =
            wanted.map_or_else(|| "there are no steps yet".to_owned(), |name| format!("there is no phase {name:?}"));
        return Err(anyhow::anyhow!("{what}; there are: {}", names.join(", ")).into());
    };
    let at = |field: &str| shown[field].as_f64().map_or_else(|| "unknown".to_owned(), |ns| duration(ns as u64));
    Ok(Answer {
        summary: format!("{}: p50 {}, p90 {}, p99 {}", text(&shown["name"]), at("p50_ns"), at("p90_ns"), at("p99_ns")),
        data: json!({ "lines": lines }),
        limits: vec!["intervals (_ci_ns, 95 %) assume independent steps".to_owned()],
        next_step: "ask steps for the slowest ones, or diagnose for the reason".to_owned(),
        ..Answer::default()
    })
}

/// Single steps: the slowest, or a range.
pub(super) fn steps(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let (from, to) = (arguments.number("from")?, arguments.number("to")?);
    let count = usize::try_from(arguments.number("count")?.unwrap_or(USUAL_STEPS)).unwrap_or(usize::MAX);
    let run = read_asked(arguments)?;
    let store = run.store();
    let table = store.steps();
    let mut rows: Vec<StepRow<'_>> = table.rows(table.discarded()..table.total()).collect();
    let what = if from.is_some() || to.is_some() {
        let range = from.unwrap_or(0)..=to.unwrap_or(u64::MAX);
        rows.retain(|row| range.contains(&row.step().0));
        "in this range"
    } else {
        rows.sort_by_key(|row| std::cmp::Reverse(row.period_ns()));
        rows.truncate(count);
        "the slowest"
    };
    let longest = rows.iter().max_by_key(|row| row.period_ns());
    let longest =
        longest.map(|row| format!("; the longest is step {} with {}", row.step().0, duration(row.period_ns())));
    let discarded = table.discarded();
    let discarded = (discarded > 0).then(|| format!("the first {discarded} steps are kept only in summaries"));
    Ok(Answer {
        summary: format!("{} steps, {what}{}", rows.len(), longest.unwrap_or_default()),
        data: json!({ "steps": rows.iter().map(|row| step(store, row)).collect::<Vec<_>>() }),
        limits: discarded.into_iter().collect(),
        next_step: "compare their phases with percentiles; ask stacks where the time goes".to_owned(),
        ..Answer::default()
    })
}

/// A step with what is known of it.
fn step(store: &Store, row: &StepRow<'_>) -> Value {
    let phases: Map<String, Value> = store
        .phases()
        .iter()
        .map(|phase| (phase.text.clone(), row.phase_ns(phase.slot)))
        .filter(|(_, ns)| *ns > 0)
        .map(|(name, ns)| (name, json!(ns)))
        .collect();
    let batch = row.batch();
    json!({
        "step": row.step().0, "epoch": row.epoch(), "period_ns": row.period_ns(), "phases_ns": phases, "loss": row.loss(),
        "graphs": batch.graphs, "nodes": batch.nodes, "edges": batch.edges, "seeds": batch.seeds,
    })
}

/// Where in the code the time goes.
pub(super) fn stacks(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let report = report(arguments, 0)?;
    let [stalls, sampled] = ["stacks", "sampled_stacks"].map(|kind| {
        let mut part = pick(&report[kind], &["taken", "a_second", "phases", "places", "stacks"]);
        for list in ["places", "stacks"] {
            part[list].as_array_mut().into_iter().for_each(|list| list.truncate(MOST_STACKS));
        }
        part
    });
    let top = [&sampled, &stalls].into_iter().find_map(|part| part["places"][0][0].as_str().map(str::to_owned));
    let next_step = match &top {
        Some(_) => "change the line that leads, record again and compare",
        None => "start the program again with gnntop run --stacks 20 -- COMMAND",
    };
    Ok(Answer {
        summary: top.map_or_else(|| "no stacks were taken".to_owned(), |place| format!("most often in {place}")),
        data: json!({ "at_stalls": stalls, "sampled": sampled }),
        next_step: next_step.to_owned(),
        ..Answer::default()
    })
}

/// What ended a run.
pub(super) fn why_died(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let report = report(arguments, 0)?;
    let session = &report["session"];
    let (summary, next_step) = match session["died"].as_str() {
        Some(died) => (died.to_owned(), "mend what it names; memory before the end is in figures (contains: memory)"),
        None if session["state"] == "ended" => ("it ended well".to_owned(), "diagnose it"),
        None => ("it has not ended".to_owned(), "diagnose it, or wait_for its end"),
    };
    Ok(Answer {
        summary,
        data: json!({
            "session": pick(session, &OF_SESSION), "died_of": session["died_of"], "end_reason": session["end_reason"],
            "process_rss": report["hardware"]["process_rss"],
        }),
        next_step: next_step.to_owned(),
        ..Answer::default()
    })
}

/// Every number under its name.
pub(super) fn figures(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let contains = arguments.text("contains")?.unwrap_or_default();
    let run = read_asked(arguments)?;
    let all = options(0)?.catalogue(&run).list();
    let total = all.len();
    let wanted =
        all.into_iter().map(|(id, measured)| (id.to_string(), measured)).filter(|(id, _)| id.contains(contains));
    let figures: Vec<Value> = wanted
        .map(|(id, measured)| {
            let interval = measured.interval.map(|(low, high)| [low, high]);
            json!({ "figure": id, "value": measured.value, "unit": measured.unit.symbol(), "interval": interval,
                    "over": measured.population.to_string() })
        })
        .collect();
    Ok(Answer {
        summary: format!("{} of {total} figures", figures.len()),
        data: json!({ "figures": figures }),
        next_step: "limit one in CI: gnntop check RUN --max FIGURE=LIMIT".to_owned(),
        ..Answer::default()
    })
}

/// Whether a candidate is faster than a baseline.
pub(super) fn compare(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let side = |name: &str| -> Result<Run, ToolError> {
        let named = arguments.text(name)?.ok_or_else(|| Refusal::parameters(format!("`{name}` is missing")))?;
        Ok(read(Some(named), None)?)
    };
    let (baseline, candidate) = (side("baseline")?, side("candidate")?);
    let comparison = comparison::compare(&[&baseline], &[&candidate], &[50.0, 90.0, 99.0]);
    let disturbed = comparison.disturbed.iter().map(|one| format!("{} was disturbed: {}", one.run, one.what));
    Ok(Answer {
        summary: comparison.headline(),
        evidence: vec![comparison.sameness.sentence(), comparison.population()],
        limits: disturbed.chain(["A is the baseline, B the candidate".to_owned()]).collect(),
        data: serde_json::to_value(&comparison).map_err(anyhow::Error::new)?,
        next_step: "keep the change only if B does more work and its losses are as good".to_owned(),
    })
}
