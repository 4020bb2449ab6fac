//! `wait_for`: lets an agent wait for a live run instead of asking again and again.

use std::time::{Duration, Instant};

use serde_json::json;

use super::answer::Answer;
use super::jobs::LONGEST_CALL;
use super::parameters::Arguments;
use super::refusal::ToolError;
use super::run_tools::check_name;
use crate::cli::named;
use crate::cli::reading::empty_run;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::target::Target;
use gnntop_analysis::source::{SourceState, follow};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Waits until a live run has this many steps, or has ended.
pub(super) fn wait_for(arguments: Arguments<'_>) -> Result<Answer, ToolError> {
    let steps = arguments.number("steps")?;
    let longest = arguments.number("seconds")?.map_or(LONGEST_CALL, Duration::from_secs).min(LONGEST_CALL);
    let named = arguments.text("run")?;
    check_name(named)?;
    let session = match named::find(named).map_err(anyhow::Error::new)? {
        Target::Session(session) => session,
        Target::Recording(_) => return Err(anyhow::anyhow!("a recording does not go on: diagnose it").into()),
        Target::Process(_) => return Err(anyhow::anyhow!("the program publishes no steps to wait for").into()),
    };
    let (mut run, mut source) = (empty_run(), follow(&session));
    let begin = Instant::now();
    let is_over = loop {
        while source.poll(&mut run, INTERVAL).more {}
        let is_over = matches!(source.status().state, SourceState::Ended(_));
        let is_there = steps.is_some_and(|steps| run.store().steps().total() >= steps);
        if is_over || is_there || begin.elapsed() >= longest {
            break is_over;
        }
        std::thread::sleep(INTERVAL);
    };
    Ok(describe(&run, is_over, begin.elapsed()))
}

fn describe(run: &Run, is_over: bool, waited: Duration) -> Answer {
    let steps = run.store().steps().total();
    let next_step = if is_over { "diagnose it; if it died, why_died" } else { "diagnose it, or wait again" };
    Answer {
        summary: format!("{steps} steps, {}", if is_over { "ended" } else { "live" }),
        data: json!({ "steps": steps, "has_ended": is_over, "waited_s": waited.as_secs_f64() }),
        next_step: next_step.to_owned(),
        ..Answer::default()
    }
}
