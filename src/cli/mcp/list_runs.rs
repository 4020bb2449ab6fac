//! `list_runs`: which runs there are on this machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::answer::Answer;
use super::parameters::Arguments;
use super::refusal::ToolError;
use gnntop_analysis::figures::counted;
use gnntop_analysis::source::exit_record;
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_sessions::layout;

const USUAL_LIMIT: u64 = 20;

/// Lists sessions, live ones first.
pub(super) fn list_runs(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let is_live_only = arguments.is_set("live")?;
    let limit = arguments.number("limit")?.unwrap_or(USUAL_LIMIT);
    let listing = discover::list(&layout::sessions_dir()).map_err(anyhow::Error::new)?;
    let living = listing.sessions.iter().filter(|session| session.alive).count() as u64;
    let wanted = listing.sessions.iter().filter(|session| session.alive || !is_live_only);
    let runs: Vec<Value> = wanted.take(usize::try_from(limit).unwrap_or(usize::MAX)).map(describe).collect();
    let ended = listing.sessions.len() as u64 - living;
    let next_step = match (living, ended) {
        (0, 0) => "start one: gnntop run -- python train.py",
        (0, _) => "diagnose one by its id",
        _ => "diagnose a live one by its pid",
    };
    Ok(Answer {
        summary: format!("{}, {}", counted(living, "live run", "live runs"), counted(ended, "ended run", "ended runs")),
        data: json!({ "runs": runs }),
        limits: listing
            .skipped
            .iter()
            .map(|skipped| format!("a session could not be read: {}", skipped.error))
            .collect(),
        next_step: next_step.to_owned(),
        ..Answer::default()
    })
}

fn describe(session: &ListedSession) -> Value {
    let info = &session.info;
    let since_start = UNIX_EPOCH.checked_add(Duration::from_nanos(info.start.wall_ns));
    let age_s = since_start.and_then(|start| SystemTime::now().duration_since(start).ok()).map(|age| age.as_secs());
    let place = info.place.as_ref();
    json!({
        "name": info.name,
        "pid": info.pid,
        "id": session.dir.file_name().map(|name| name.to_string_lossy()),
        "run_id": place.map(|place| &place.run),
        "rank": place.map(|place| place.rank),
        "ranks": place.map(|place| place.ranks),
        "state": if session.alive { "live" } else { "ended" },
        "died": if session.alive { None } else { exit_record::read(&session.dir) },
        "age_s": age_s,
        "command": info.command,
    })
}
