//! Where in the program a finding's time goes: a line of evidence from the stacks taken in it.

use gnntop_wire::phase::{LOADING, TRANSFER};

use super::finding::{Finding, FindingKind, Findings};
use super::number::Number;
use super::stated_numbers::StatedNumbers;
use crate::figures::count;
use crate::store::{Stack, Store};

/// Kinds of findings about time spent somewhere in the program.
const ABOUT_TIME: [FindingKind; 4] = [FindingKind::Spike, FindingKind::Stall, FindingKind::DataBound, FindingKind::Gap];
/// Places that are named.
const NAMED: usize = 3;

/// Adds to findings about slow steps where the program was in them.
pub(super) fn locate(mut findings: Findings, store: &Store) -> Findings {
    for finding in findings.found.iter_mut().filter(|finding| ABOUT_TIME.contains(&finding.kind)) {
        let stacks = stacks_in(finding, store);
        finding.add_evidence(|facts| evidence(facts, store, &stacks));
    }
    findings
}

/// The stacks taken in the steps of a finding, or, if it is about the whole run, those taken in what it is about: where the
/// program is otherwise is evidence of nothing.
fn stacks_in<'s>(finding: &Finding, store: &'s Store) -> Vec<&'s Stack> {
    if finding.places.is_empty() {
        let end_ns = store.steps().last().map_or(0, |row| row.end_ns());
        let is_of_it = |stack: &&Stack| stack.t_ns <= end_ns && is_about(finding.kind, store, stack);
        return store.stacks().iter().filter(is_of_it).collect();
    }
    let is_there =
        |stack: &&Stack| finding.places.iter().any(|place| (place.start_ns..=place.end_ns).contains(&stack.t_ns));
    store.stacks().iter().filter(is_there).collect()
}

/// Whether this stack was taken in the time that findings of this kind are about, in all steps.
fn is_about(kind: FindingKind, store: &Store, stack: &Stack) -> bool {
    let lane = store.training_track().and_then(|track| track.lane());
    let Some(lane) = lane.filter(|lane| lane.full_from_ns() <= stack.t_ns) else { return false };
    let around = lane.enclosing_names(stack.t_ns);
    let is_in = |phase: &str| around.iter().any(|name| store.name(*name) == phase);
    match kind {
        FindingKind::DataBound => LOADING.into_iter().chain([TRANSFER]).any(is_in),
        FindingKind::Gap => !store.phases().iter().any(|phase| is_in(&phase.text)),
        _ => false,
    }
}

/// A line for what loader workers did, and one for the training thread, which waits for them.
fn evidence(facts: &mut StatedNumbers, store: &Store, stacks: &[&Stack]) -> Vec<String> {
    let (loaders, own): (Vec<&Stack>, Vec<&Stack>) = stacks.iter().partition(|stack| store.is_loader_stack(stack));
    let lines = [line(facts, store, &loaders, " of loader workers"), line(facts, store, &own, "")];
    lines.into_iter().flatten().collect()
}

fn line(facts: &mut StatedNumbers, store: &Store, stacks: &[&Stack], whose: &str) -> Option<String> {
    let places = store.stack_places(stacks.iter().copied());
    let (all, first) = (stacks.len() as u64, places.first()?);
    let mut taken = |place: &str, times: u64| facts.about(place, |facts| facts.count(Number::Stacks, times));
    let in_first = taken(&first.0, first.1);
    let other = |(place, times): &(String, u64)| format!("; {} in {place}", taken(place, *times));
    let others: String = places.iter().skip(1).take(NAMED - 1).map(other).collect();
    let of = if first.1 == all { String::new() } else { format!(" of {}", count(all)) };
    let word = if all == 1 { "stack" } else { "stacks" };
    Some(format!("{in_first}{of} {word}{whose} taken there: in {}{others}", first.0))
}

#[cfg(test)]
mod tests {
    use gnntop_wire::{StackThread, TrackRole};

    use super::*;
    use crate::findings::judgement::Judgement;
    use crate::findings::tests::{run, store_of, stream};
    use gnntop_fixtures::planned::StepPlan;
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};

    #[test]
    fn whole_run_has_the_stacks_of_what_it_is_about() {
        let plan = |_| StepPlan { gap_ns: 20 * MS, ..StepPlan::default().with_phase("data wait", 20 * MS) };
        let end_ns = run(20, plan, &[]).steps().all().nth(10).unwrap().end_ns();
        let mut stream = stream(20, plan, &[]);
        let track = stream.track(TrackRole::Stacks, "stacks of train");
        let (in_wait, in_gap) = (end_ns - 45 * MS, end_ns + 10 * MS);
        for (t_ns, frame) in [(in_wait, "fetch (data.py:2)"), (in_gap, "log (train.py:9)")] {
            stream.stack(track, t_ns, StackThread::Training, &[frame]);
        }
        let found = Judgement::for_steps(&store_of(stream), 0..u64::MAX).findings.found;
        let places = |kind: FindingKind| {
            let finding = found.iter().find(|finding| finding.kind == kind).unwrap();
            finding.evidence.iter().filter(|line| line.contains("taken there")).cloned().collect::<Vec<_>>()
        };
        assert_eq!(places(FindingKind::DataBound), ["1 stack taken there: in fetch (data.py:2)"]);
        assert_eq!(places(FindingKind::Gap), ["1 stack taken there: in log (train.py:9)"]);
    }

    #[test]
    fn stacks_distinguish_loader_and_waiting_thread() {
        let mut stream = StreamBuilder::new("test");
        let track = stream.track(TrackRole::Stacks, "stacks of train");
        let waits = &["get (python/queues.py:3)", "main (train.py:9)"][..];
        let reads = &["read (data.py:4)", "__getitem__ (data.py:2)", "fetch (torch/fetch.py:1)"][..];
        let decodes = &["decode (data.py:7)"][..];
        stream.stack(track, START_NS + 1, StackThread::Training, waits);
        for (after_ns, frames) in (2..).zip([reads, reads, decodes]) {
            stream.stack(track, START_NS + after_ns, StackThread::LoaderWorker, frames);
        }
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        let stacks: Vec<&Stack> = store.stacks().iter().collect();
        assert_eq!(
            evidence(&mut StatedNumbers::default(), &store, &stacks),
            [
                "2 of 3 stacks of loader workers taken there: in read (data.py:4), under __getitem__ (data.py:2); 1 in decode (data.py:7)",
                "1 stack taken there: in main (train.py:9)",
            ]
        );
        assert_eq!(evidence(&mut StatedNumbers::default(), &store, &[]), [""; 0]);
    }
}
