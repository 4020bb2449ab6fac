//! Marks with the duration of what ended at them: that is their cost, however many there are.

use super::advice::advice;
use super::marked::{Effect, Marked};
use crate::figures::{count, duration, percent};
use crate::findings::claim::Claim;
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind, PLACES_LISTED};

/// They matter from this share of the wall time...
const WORTH_SAYING: f64 = 0.01;
/// ...unless one of them takes this share of a step.
const LONG: f64 = 0.5;
/// Marks at more than one in this many steps are listed only if they are long.
const OFTEN: usize = 4;

/// The finding about the marks of one text; `None` if they have no durations or do not matter.
pub(super) fn finding(evidence: &Evidence<'_>, text: &str, marked: &Marked) -> Option<Finding> {
    let own_ns = marked.own_ns?;
    let warm_up_ns: f64 = evidence.warm_up.iter().map(|row| row.period_ns() as f64).sum();
    let share = own_ns / (evidence.wall_ns + warm_up_ns).max(1.0);
    let is_long = |effect: &&Effect| {
        let step_ns = evidence.expected_ns[effect.row] + evidence.usual_between_ns;
        effect.own_ns.is_some_and(|ns| ns > LONG * step_ns)
    };
    let long = marked.effects.iter().filter(is_long).count();
    if share < WORTH_SAYING && long == 0 {
        return None;
    }
    let is_frequent = marked.effects.len() * OFTEN > evidence.rows.len();
    let listed: Vec<&Effect> = marked.effects.iter().filter(|effect| !is_frequent || is_long(effect)).collect();
    let places = listed.iter().take(PLACES_LISTED).map(|effect| effect.place(evidence, text)).collect();
    let times = if marked.count() == 1 { "once".to_owned() } else { format!("{} times", count(marked.count())) };
    let summary = format!(
        "\"{text}\": {times}, {}, {} of the wall time, {}",
        duration(own_ns as u64),
        percent(share),
        marked.place_in_words()
    );
    let mut finding = Finding::of_run(Kind::Stall, Confidence::High, Some(share), summary)
        .at(places, marked.count())
        .claiming(Claim::Steps(marked.effects.iter().map(Effect::claim).collect()))
        .because(format!(
            "{} each on average, by the marks' durations",
            duration((own_ns / marked.count() as f64) as u64)
        ));
    if marked.outside > 0 {
        finding = finding.because(super::advice::outside(marked.outside));
    }
    Some(finding.advise(advice(text)))
}
