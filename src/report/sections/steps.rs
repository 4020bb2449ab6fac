//! Which steps a report is about, and what of the elapsed time they cover.

use serde::Serialize;

use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::figures::{count, duration, quantity, utc};

/// Which steps the numbers are about.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StepCounts {
    /// Steps in what was read.
    pub total: u64,
    /// Steps at the start that were to be left out.
    pub skipped: u64,
    /// Steps that the numbers are about.
    pub reported: u64,
    /// The first steps, if only summaries have them: those that a session dropped, or of a long recording that was not
    /// read event by event. Findings, classes and stacks are about the others.
    pub from_summaries: u64,
    /// When these ended, in nanoseconds since 1970-01-01 UTC; `null` without any.
    pub summaries_until_unix_ns: Option<u64>,
    /// Why these are fewer than wanted; absent where they are not.
    pub reason: Option<String>,
    /// Epochs that the reported steps belong to.
    pub epochs: u64,
    /// Wall time of the reported steps: what the shares of phases and gap refer to.
    pub tiled_ns: u64,
    /// Time before the period of the first step that was read; `null` if rows are no longer held.
    pub before_first_step_ns: Option<u64>,
    /// Time after the last step.
    pub after_last_step_ns: Option<u64>,
    /// The first loss that the program read in these steps.
    pub first_loss: Option<f64>,
    /// The last one. `null` also where it is not a number.
    pub last_loss: Option<f64>,
    /// Minor page faults of the training thread during these steps; `null` if the system does not report them.
    pub minor_faults: Option<u64>,
    /// Major page faults.
    pub major_faults: Option<u64>,
    /// Times the training thread waited.
    pub voluntary_switches: Option<u64>,
    /// Times it was made to wait.
    pub involuntary_switches: Option<u64>,
}

impl StepCounts {
    pub(in crate::report) fn new(figures: &Catalogue<'_>, skipped: u64) -> Self {
        let (store, statistics) = (figures.store(), figures.statistics());
        let (table, past) = (store.steps(), store.past());
        let whole = |figure| figures.value(figure).map(|value| value as u64);
        Self {
            total: table.total(),
            skipped: skipped.min(table.total()),
            reported: whole("steps.count").unwrap_or(0),
            from_summaries: past.map_or(0, |past| past.steps),
            summaries_until_unix_ns: past.and_then(|past| store.session().wall_ns(past.last_ns)),
            reason: (skipped > 0 && table.discarded() > skipped).then(|| not_held(table.discarded(), table.len())),
            epochs: whole("epochs.count").unwrap_or(0),
            tiled_ns: whole("period.total").unwrap_or(0),
            before_first_step_ns: whole("before_steps.total"),
            after_last_step_ns: whole("after_steps.total"),
            // A loss that is not a number is no figure, but must be seen.
            first_loss: statistics.first_loss(),
            last_loss: statistics.last_loss(),
            minor_faults: whole("minor_faults.total"),
            major_faults: whole("major_faults.total"),
            voluntary_switches: whole("voluntary_switches.total"),
            involuntary_switches: whole("involuntary_switches.total"),
        }
    }

    /// The steps that only summaries have, in words.
    pub(super) fn describe_summaries(&self) -> Option<String> {
        let until = self.summaries_until_unix_ns.map(|ns| format!(", until {},", utc(ns))).unwrap_or_default();
        let steps = count(self.from_summaries);
        let said =
            format!("the first {steps}{until} from summaries; findings, classes and stacks are about the others");
        (self.from_summaries > 0).then_some(said)
    }

    /// The first and the last loss.
    pub(super) fn loss(&self) -> Option<String> {
        let (first, last) = self.first_loss.zip(self.last_loss)?;
        Some(format!("{} to {}", quantity(first), quantity(last)))
    }

    /// The time before and after the steps.
    pub(super) fn outside(&self) -> Option<String> {
        let places =
            [("before the first step", self.before_first_step_ns), ("after the last", self.after_last_step_ns)];
        let known = places.into_iter().filter_map(|(place, ns)| Some(format!("{} {place}", duration(ns?))));
        let known: Vec<String> = known.collect();
        (!known.is_empty()).then(|| format!("outside steps: {}", known.join(", ")))
    }
}

fn not_held(discarded: u64, kept: usize) -> String {
    format!("only the newest {kept} steps are held one by one, so the first {discarded} are skipped")
}
