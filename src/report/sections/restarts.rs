//! The starts of a run in a report: when each continued, and what the time between cost.

use serde::Serialize;

use crate::report::document::Block;
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::figures::{count, duration, utc};
use gnntop_analysis::store::{Attempt, Outage};

/// The restarts of a run, over its whole history, whichever steps are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Restarts {
    /// How often it was started again.
    pub count: u64,
    /// From the last step before each outage to the first new one after it, as far as that is known.
    pub lost_ns: u64,
    /// Steps that were done twice; `null` if the program does not say where it resumed.
    pub repeated_steps: Option<u64>,
    /// Each start, oldest first.
    pub starts: Vec<Start>,
}

/// One start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Start {
    /// Its process.
    pub pid: u32,
    /// Where it ran.
    pub host: String,
    /// When it began, in nanoseconds since 1970-01-01 UTC.
    pub start_unix_ns: Option<u64>,
    /// Steps that it did.
    pub steps: u64,
    /// Steps of the run that were done when its checkpoint was written; `null` if it does not say.
    pub resumed: Option<u64>,
    /// Time without steps before its first one; `null` for the first start and for one without steps.
    pub outage_ns: Option<u64>,
    /// Steps that it did again.
    pub repeated_steps: Option<u64>,
}

impl Restarts {
    /// The starts of a run that was restarted.
    pub(in crate::report) fn new(figures: &Catalogue<'_>) -> Option<Self> {
        let store = figures.store();
        let restarts = store.restarts()?;
        let attempts = store.attempts().all();
        let ends = attempts.iter().skip(1).map(|next| next.first_ordinal).chain([store.steps().total()]);
        let start = |(attempt, end): (&Attempt, u64)| {
            let outage = restarts.outages.iter().find(|outage| attempt.first_step_ns == Some(outage.to_ns));
            Start {
                pid: attempt.pid,
                host: attempt.host.clone(),
                start_unix_ns: store.session().wall_ns(attempt.start_ns),
                steps: end.saturating_sub(attempt.first_ordinal),
                resumed: attempt.resumed,
                outage_ns: outage.map(|outage| outage.to_ns.saturating_sub(outage.from_ns)),
                repeated_steps: outage.and_then(|outage: &Outage| outage.repeated_steps),
            }
        };
        let starts = attempts.iter().zip(ends).map(start).collect();
        let whole = |figure| figures.value(figure).map(|value| value as u64);
        Some(Self {
            count: whole("restarts.count").unwrap_or(0),
            lost_ns: whole("restarts.total").unwrap_or(0),
            repeated_steps: whole("repeated_steps.count"),
            starts,
        })
    }
}

/// The section; nothing for a run that was started once.
pub(in crate::report) fn blocks(restarts: Option<&Restarts>) -> Vec<Block> {
    let Some(restarts) = restarts else { return Vec::new() };
    let mut rows = vec![Vec::from(["start", "process", "host", "steps", "outage", "done twice"].map(str::to_owned))];
    let dash = || "-".to_owned();
    for start in &restarts.starts {
        rows.push(vec![
            start.start_unix_ns.map_or_else(dash, utc),
            start.pid.to_string(),
            start.host.clone(),
            count(start.steps),
            start.outage_ns.map_or_else(dash, duration),
            start.repeated_steps.map_or_else(dash, count),
        ]);
    }
    vec![Block::heading("Restarts"), Block::table(rows)]
}
