//! Oversubscription: the ranks on a host compute with more threads than it has cores, so that times say little about
//! scaling.

use super::evidence::RankEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;
use crate::ranks::Rank;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    let known = |rank: &&Rank<'_>| rank.place.threads > 0 && rank.place.host_ranks > 0 && rank.place.host_cores > 0;
    let known: Vec<&Rank<'_>> = evidence.ranks.all().iter().filter(known).collect();
    if known.is_empty() {
        return CheckOutcome::NotEnough("ranks do not report how many threads and cores they have".to_owned());
    }
    let wanted = |rank: &Rank<'_>| u64::from(rank.place.threads) * u64::from(rank.place.host_ranks);
    let excess = |rank: &&Rank<'_>| wanted(rank) as f64 / f64::from(rank.place.host_cores);
    let Some(worst) = known.into_iter().max_by(|a, b| excess(a).total_cmp(&excess(b))) else {
        return CheckOutcome::Nothing;
    };
    let place = worst.place;
    if wanted(worst) <= u64::from(place.host_cores) {
        return CheckOutcome::Nothing;
    }
    let host = worst.store.session().info().map(|info| info.host.as_str()).unwrap_or_default();
    let advice = if place.threads > 1 { "use fewer threads per rank" } else { "use fewer ranks on this host" };
    let finding = Finding::for_run(FindingKind::Oversubscribed, Confidence::High, None, |facts| {
        facts.count(Number::Cores, place.host_cores.into());
        facts.about("a rank", |facts| facts.count(Number::Threads, place.threads.into()));
        format!(
            "{} ranks of {} on {host} share {}: oversubscribed",
            facts.count(Number::Ranks, place.host_ranks.into()),
            plural(place.threads, "thread"),
            plural(place.host_cores, "core")
        )
    });
    Finding { severity: Severity::Minor, ..finding }
        .with_evidence_from(|facts| {
            let threads = facts.count(Number::Threads, wanted(worst));
            format!("{threads} threads compete for {} cores", place.host_cores)
        })
        .with_evidence("such a run does not show how training scales with ranks")
        .with_advice(advice)
        .into()
}

fn plural(n: u32, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}
