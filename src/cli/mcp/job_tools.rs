//! The tools of `--allow-run`, which start programs: `profile`, `prove` and `trace`. Each is a [`Job`]. A call that would take longer
//! than a client waits answers with the job's name; calling again with it keeps waiting.

use std::path::{self, Path};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde_json::{Value, json};

use super::answer::Answer;
use super::jobs::{Job, Jobs};
use super::parameters::Arguments;
use super::refusal::{Refusal, ToolError};
use super::run_tools;

/// How long a profile lasts, from its first step on, unless another time is asked for.
const USUAL: Duration = Duration::from_secs(20);
/// Stacks a second of a profile.
const STACKS: &str = "20";
/// Lines of what a job that failed printed.
const MOST_LINES: usize = 30;
/// Time between two looks for steps.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts a program, watches it for some seconds of steps, ends it, and diagnoses it.
pub(super) fn profile(arguments: Arguments<'_>, jobs: &mut Jobs) -> Result<Answer, ToolError> {
    let asked_seconds = arguments.number("seconds")?.map(Duration::from_secs);
    let job = job("profile", arguments, jobs, |recording| {
        let mut words = strings(&["run", "--plain", "--stacks", STACKS, "--record", recording, "--"]);
        words.extend(arguments.texts("command")?.ok_or_else(|| missing("command"))?);
        Ok(words)
    })?;
    job.lasts = asked_seconds.or(job.lasts);
    let seconds = job.lasts.unwrap_or(USUAL);
    let mut looked = Instant::now();
    let code = job.wait(|job| {
        if job.seen.is_none() && looked.elapsed() >= INTERVAL {
            looked = Instant::now();
            job.seen = has_steps(&job.file).then(Instant::now);
        }
        job.seen.is_some_and(|seen| seen.elapsed() >= seconds)
    })?;
    let Some(code) = code else { return Ok(still_running(job)) };
    if !job.file.exists() {
        return Err(failed(job));
    }
    let asked = json!({ "run": job.file });
    let mut answer = run_tools::diagnose(Arguments(&asked))?;
    answer.data["recording"] = asked["run"].clone();
    answer.data["exit_code"] = json!(code);
    if answer.data["steps"]["total"] == 0 {
        answer.data["output"] = json!(last_lines(job));
        answer.next_step = "read `output`: it may say why there are no steps".to_owned();
    }
    Ok(answer)
}

fn has_steps(recording: &Path) -> bool {
    let run = recording.to_str().and_then(|path| run_tools::read(Some(path), None).ok());
    run.is_some_and(|run| run.store().steps().total() > 0)
}

/// Whether a change makes a program faster, by pairs of runs.
pub(super) fn prove(arguments: Arguments<'_>, jobs: &mut Jobs) -> Result<Answer, ToolError> {
    let job = job("prove", arguments, jobs, |_| {
        let mut words = strings(&["prove", "--json"]);
        for side in ["baseline", "candidate"] {
            let command = arguments.text(side)?.ok_or_else(|| missing(side))?;
            words.extend([format!("--{side}"), command.to_owned()]);
        }
        words.extend(arguments.number("pairs")?.map(|pairs| format!("--pairs={pairs}")));
        words.extend(arguments.number("within_percent")?.map(|percent| format!("--within={percent}%")));
        Ok(words)
    })?;
    if job.wait(|_| false)?.is_none() {
        return Ok(still_running(job));
    }
    let proof: Value = serde_json::from_str(&job.output()).map_err(|_| failed(job))?;
    let learns_otherwise = proof["losses"].get("different").is_some();
    let next_step = match proof["verdict"].as_str() {
        Some("faster") if learns_otherwise => "fix the seeds and prove it again, or take the change back",
        Some("faster") => "keep the change",
        Some("not-enough") => "prove it with longer runs, or with more pairs",
        Some("no-difference") => "keep whichever is simpler",
        _ => "take the change back",
    };
    Ok(Answer {
        summary: proof["summary"].as_str().unwrap_or_default().to_owned(),
        limits: vec!["measured on this machine".to_owned()],
        data: proof,
        next_step: next_step.to_owned(),
        ..Answer::default()
    })
}

/// The operators of some steps of a live run.
pub(super) fn trace(arguments: Arguments<'_>, jobs: &mut Jobs) -> Result<Answer, ToolError> {
    let job = job("trace", arguments, jobs, |file| {
        let mut words = strings(&["trace", "-o", file]);
        words.extend(arguments.number("steps")?.map(|steps| format!("--steps={steps}")));
        words.push("--".to_owned());
        words.extend(arguments.text("run")?.map(str::to_owned));
        Ok(words)
    })?;
    match job.wait(|_| false)? {
        None => Ok(still_running(job)),
        Some(0) => Ok(Answer {
            summary: job.output().lines().next().unwrap_or_default().to_owned(),
            data: json!({ "operators": job.output().lines().collect::<Vec<_>>(), "trace": job.file }),
            limits: vec!["steps that are traced take longer: read the shares, not the times".to_owned()],
            next_step: "change what leads, then prove it".to_owned(),
            ..Answer::default()
        }),
        Some(_) => Err(failed(job)),
    }
}

/// The job that is asked about, or a new one with the words that `words` makes of the path of its file.
fn job<'a>(
    tool: &'static str,
    arguments: Arguments<'_>,
    jobs: &'a mut Jobs,
    words: impl FnOnce(&str) -> Result<Vec<String>, Refusal>,
) -> Result<&'a mut Job, ToolError> {
    if let Some(name) = arguments.text("job")? {
        let job = jobs.find(tool, name)?;
        if arguments.is_set("stop")? {
            job.ask_to_end();
        }
        return Ok(job);
    }
    let directory = arguments.text("directory")?.unwrap_or(".");
    let file = match arguments.text("output")? {
        Some(output) => path::absolute(Path::new(directory).join(output)).map_err(anyhow::Error::new)?,
        None => jobs.unused_path(tool, if tool == "trace" { "json" } else { "gnntop" }),
    };
    let words = words(&file.to_string_lossy())?;
    Ok(jobs.start(tool, directory, file, &words)?)
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn missing(name: &str) -> Refusal {
    Refusal::parameters(format!("`{name}` is missing"))
}

/// The answer while the job runs.
fn still_running(job: &Job) -> Answer {
    Answer {
        summary: format!("{} is still running", job.name),
        data: json!({ "job": job.name, "progress": job.notes().lines().last() }),
        next_step: format!("call it again with job {:?}; with `stop` it ends now", job.name),
        ..Answer::default()
    }
}

fn failed(job: &Job) -> ToolError {
    let how = if job.was_asked_to_end() { "was ended" } else { "failed" };
    anyhow!("{} {how}: {}", job.name, last_lines(job).join("\n")).into()
}

/// The end of what it printed.
fn last_lines(job: &Job) -> Vec<String> {
    let said = [job.output(), job.notes()].join("\n");
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    strings(&lines[lines.len().saturating_sub(MOST_LINES)..])
}
