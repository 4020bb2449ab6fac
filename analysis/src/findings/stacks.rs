//! Where in the program the time of a finding goes: the stacks that were taken in it, as a line of evidence.

use super::finding::{Finding, Findings, Kind};
use crate::figures::count;
use crate::store::{Stack, Store};

/// Kinds of findings about time that passes somewhere in the program.
const ABOUT_TIME: [Kind; 5] = [Kind::Spike, Kind::Stall, Kind::DataBound, Kind::Gap, Kind::Contention];
/// Places that are named.
const NAMED: usize = 3;

/// Adds to findings about slow steps where the program was in them.
pub(super) fn locate(mut findings: Findings, store: &Store) -> Findings {
    for finding in findings.found.iter_mut().filter(|finding| ABOUT_TIME.contains(&finding.kind)) {
        let evidence = evidence(store, &stacks_in(finding, store));
        finding.evidence.extend(evidence);
    }
    findings
}

/// The stacks taken in the steps of a finding, or all where it is about the whole run.
fn stacks_in<'s>(finding: &Finding, store: &'s Store) -> Vec<&'s Stack> {
    if finding.places.is_empty() {
        return store.stacks().iter().collect();
    }
    let is_there =
        |stack: &&Stack| finding.places.iter().any(|place| (place.start_ns..=place.end_ns).contains(&stack.t_ns));
    store.stacks().iter().filter(is_there).collect()
}

fn evidence(store: &Store, stacks: &[&Stack]) -> Option<String> {
    let places = store.places_of_stacks(stacks.iter().copied());
    let (all, first) = (stacks.len() as u64, places.first()?);
    let other = |(place, times): &(String, u64)| format!("; {} in {place}", count(*times));
    let others: String = places.iter().skip(1).take(NAMED - 1).map(other).collect();
    let of = if first.1 == all { String::new() } else { format!(" of {}", count(all)) };
    let word = if all == 1 { "stack" } else { "stacks" };
    Some(format!("{}{of} {word} taken there: in {}{others}", count(first.1), first.0))
}
