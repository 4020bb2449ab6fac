//! A table of runs as JSON: the same figures, as numbers with their units in the names. What is not known is null.

use std::time::Duration;

use serde_json::{Value, json};

use gnntop_analysis::many_runs::{RunRow, RunState};

/// An object with all runs.
pub(super) fn table(rows: &[&RunRow]) -> Value {
    json!({ "runs": rows.iter().map(|row| run(row)).collect::<Vec<Value>>() })
}

fn run(row: &RunRow) -> Value {
    let figures = row.figures.as_ref().map(|figures| &figures.value);
    let (state, state_s) = state(row.state);
    json!({
        "name": row.name,
        "pid": row.pid,
        "command": row.command,
        "path": row.path.to_string_lossy(),
        "user": row.user,
        "hosts": row.hosts,
        "ranks": row.ranks.0,
        "ranks_published": row.ranks.1,
        "state": state,
        "state_s": state_s,
        "running_s": seconds(row.running_for),
        "left_s": seconds(row.time_left),
        "step": row.step,
        "steps_per_s": row.steps_per_s.as_ref().map(|rate| rate.value),
        "steps_per_s_age_s": seconds(row.steps_per_s.as_ref().map(|rate| rate.age)),
        "usual_steps_per_s": figures.and_then(|figures| figures.usual_steps_per_s),
        "bound": figures.and_then(|figures| figures.bound.as_ref()).map(|(phase, share)| json!({ "phase": phase, "share": share })),
        "finding": figures.and_then(|figures| figures.finding.as_ref()).map(|finding| {
            json!({ "id": finding.id, "share": finding.share, "summary": finding.summary })
        }),
        "gpus": figures.map(|figures| figures.gpus),
        "gpu_busy": figures.and_then(|figures| figures.gpu_busy),
        "gpu_memory_bytes": figures.and_then(|figures| figures.gpu_memory_bytes),
        "watts": figures.and_then(|figures| figures.watts),
        "died": figures.and_then(|figures| figures.died.as_ref()),
        "ranks_read": figures.map(|figures| figures.sessions.0),
        "figures_age_s": seconds(row.figures.as_ref().map(|figures| figures.age)),
    })
}

/// A word, and for how long it has been so.
fn state(state: RunState) -> (&'static str, Option<f64>) {
    match state {
        RunState::Live | RunState::Partly(..) => ("live", None),
        RunState::Still(time) => ("no step", seconds(Some(time))),
        RunState::Silent(time) => ("silent", seconds(Some(time))),
        RunState::Ended(time) => ("ended", seconds(time)),
    }
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| (time.as_secs_f64() * 10.0).round() / 10.0)
}
