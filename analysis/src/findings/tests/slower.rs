//! Steps that have taken longer since some time: in the steps that are kept, and in those that only have a past.

use gnntop_history::{Digest, SECOND_NS};
use gnntop_wire::past::PastEntry;
use gnntop_wire::{Event, Item, StackSample};

use super::*;

/// Steps of all runs here, of 35 ms: nearly two minutes.
const STEPS: u64 = 3000;
/// The first step of those that are different.
const SINCE: u64 = 1800;

/// The stream of a run whose steps follow this plan.
fn stream(plan: impl Fn(u64) -> StepPlan) -> Vec<u8> {
    super::stream(STEPS, plan, &[]).bytes()
}

pub(super) fn store_of_stream(bytes: &[u8]) -> Store {
    let mut store = Store::new();
    each_item(bytes, |item| store.apply(item));
    store
}

/// The store of a viewer that attaches when this share of a run has been dropped.
pub(super) fn with_past(bytes: &[u8], dropped: f64) -> Store {
    let mut items = 0;
    each_item(bytes, |_| items += 1);
    let cut = (f64::from(items) * dropped) as i32;
    let (mut at, mut digest, mut store) = (0, Digest::new(), Store::new());
    each_item(bytes, |item| {
        at += 1;
        if at < cut {
            return digest.apply(item);
        }
        if at == cut {
            apply_past(&mut digest, &mut store);
        }
        store.apply(item);
    });
    assert!(store.steps().discarded() > 0 && store.steps().total() == store_of_stream(bytes).steps().total());
    store
}

fn apply_past(digest: &mut Digest, store: &mut Store) {
    store.apply(Item::Segment(digest.info().unwrap().clone()));
    store.apply(Item::Definitions(digest.definitions().cloned().collect()));
    let is_slice = |past: &PastEntry| matches!(past, PastEntry::Slice(_));
    let seconds = digest.take_closed().seconds;
    let (mut open, whole): (Vec<PastEntry>, Vec<PastEntry>) =
        digest.past_entries(Vec::new()).into_iter().partition(is_slice);
    open.retain(|past| matches!(past, PastEntry::Slice(slice) if slice.to_ns - slice.from_ns <= SECOND_NS));
    [whole, seconds, open].into_iter().for_each(|entries| store.apply(Item::Past(entries)));
}

#[test]
fn single_jump_is_no_drift() {
    let drifts = |plan: fn(u64) -> u64| {
        let found = all_findings(&run(200, |step| with_phase("backward", plan(step)), &[])).found;
        found.iter().any(|finding| finding.kind == FindingKind::Drift)
    };
    assert!(!drifts(|step| if step >= 60 { 12 * MS } else { 0 }), "nothing grows after it");
    assert!(drifts(|step| step * MS / 15));
}

/// Backward takes 8 ms more from a step on, in the step before which a mark stands.
fn slower_since(step: u64) -> StepPlan {
    let plan = with_phase("backward", if step >= SINCE { 8 * MS } else { 0 });
    StepPlan { mark_inside: (step == SINCE - 1).then_some("warm restart"), ..plan }
}

fn find_kind(store: &Store, kind: FindingKind) -> Option<Finding> {
    all_findings(store).found.into_iter().find(|finding| finding.kind == kind)
}

#[track_caller]
fn assert_no_finding(plan: impl Fn(u64) -> StepPlan) {
    let bytes = stream(plan);
    for store in [store_of_stream(&bytes), with_past(&bytes, 0.8), with_past(&bytes, 0.3)] {
        assert_eq!(find_kind(&store, FindingKind::SlowerSince), None);
    }
}

#[test]
fn slower_since_among_kept_steps_is_reported_once() {
    let store = store_of_stream(&stream(slower_since));
    let slower = only(&store);
    assert_contains(
        &slower,
        FindingKind::SlowerSince,
        &["longer since 2026-01-02 03:05:", "just after mark \"warm restart\""],
    );
    let numbers = [(Number::Slower, 0.232), (Number::SinceStep, 1800.0), (Number::From, 34.5e6), (Number::To, 42.5e6)];
    assert_facts(&slower, FindingKind::SlowerSince, &numbers);
    assert_states_of(&slower, "backward", &[(Number::From, 20e6), (Number::To, 28e6)]);
    assert_eq!(slower.places[0].ordinals, SINCE - 1..STEPS);
    let share = slower.share.unwrap();
    assert!((0.07..0.09).contains(&share), "{share} of the time since the start");
}

#[test]
fn slower_since_in_past_is_exact_to_a_second() {
    let bytes = stream(slower_since);
    for dropped in [0.7, 0.9] {
        let store = with_past(&bytes, dropped);
        assert!(store.steps().discarded() > SINCE);
        let slower = only(&store);
        assert_contains(&slower, FindingKind::SlowerSince, &["just after mark \"warm restart\""]);
        assert_states_of(&slower, "backward", &[(Number::From, 20e6), (Number::To, 28e6)]);
        let first = slower.places[0].ordinals.start;
        assert!(first.abs_diff(SINCE) <= 30, "{first}");
        let share = slower.share.unwrap();
        assert!((0.17..0.2).contains(&share), "{share} of the time that is looked at");
    }
}

#[test]
fn slower_since_accounts_for_batch_size() {
    let plan = |times: f64| {
        move |step: u64| {
            if step < SINCE {
                return StepPlan::default();
            }
            let batch = BatchShape { graphs: Some(512), nodes: Some(7168), edges: Some(14336), seeds: None };
            let mut plan = StepPlan { batch, ..StepPlan::default() };
            plan.phases.iter_mut().for_each(|phase| phase.1 = (phase.1 as f64 * times) as u64);
            plan
        }
    };
    assert_no_finding(plan(2.0));
    assert_no_finding(plan(1.5));
    let slower = find_kind(&store_of_stream(&stream(plan(2.6))), FindingKind::SlowerSince).unwrap();
    assert_contains(&slower, FindingKind::SlowerSince, &["steps with the same work take"]);
    assert_facts(&slower, FindingKind::SlowerSince, &[(Number::Slower, 0.29), (Number::SinceStep, 1800.0)]);
}

#[test]
fn temporary_slowness_is_no_level_change() {
    assert_no_finding(|_| StepPlan::default());
    assert_no_finding(
        |step| {
            if (1200..SINCE).contains(&step) { with_phase("backward", 8 * MS) } else { StepPlan::default() }
        },
    );
    assert_no_finding(|step| with_phase("forward", if step > SINCE && step.is_multiple_of(20) { 90 * MS } else { 0 }));
    assert_no_finding(|step| with_phase("forward", if step < SINCE { 9 * MS } else { 0 }));
}

#[test]
fn more_long_steps_are_no_level_change() {
    let chance = |step: u64| step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    let is_long = |step: u64| chance(step) < if step < SINCE { 96 } else { 160 };
    assert_no_finding(|step| with_phase("backward", if is_long(step) { 15 * MS } else { 0 }));
}

#[test]
fn gradual_slowing_is_no_level_change() {
    let bytes = stream(|step| with_phase("backward", step * 15 * MS / STEPS));
    let store = store_of_stream(&bytes);
    assert!(find_kind(&store, FindingKind::Drift).is_some());
    assert_eq!(find_kind(&store, FindingKind::SlowerSince), None);
}

/// 300 steps, from the 151st on with this much more in backward, on a machine whose other core is busy; the thread waits for a CPU for
/// these shares of the time before and since.
fn beside_others(more_ms: u64, waits: [f64; 2]) -> bool {
    let plan = move |step: u64| with_phase("backward", if step > 150 { more_ms * MS } else { 0 });
    // The first half takes 34.5 ms a step.
    let waited = move |t: f64| 1e9 * (waits[0] * t.min(5.2) + waits[1] * (t - 5.2).max(0.0));
    let readings = [
        counted("process.main_thread.cpu_wait", Unit::Nanoseconds, waited),
        counted("process.cpu_time", Unit::Nanoseconds, |t| t * 0.9e9),
        counted("machine.cpu.busy", Unit::Nanoseconds, |t| t * 1.9e9),
    ];
    let found = all_findings(&run(300, plan, &readings)).found;
    found.iter().any(|finding| finding.kind == FindingKind::SlowerSince)
}

#[test]
fn twice_as_long_is_slower_soon_beside_other_programs_too() {
    assert!(beside_others(60, [0.02, 0.02]));
    assert!(!beside_others(20, [0.02, 0.02]), "others may take half of what a core shares");
    assert!(!beside_others(60, [0.02, 0.5]), "it waits for a CPU");
}

#[test]
fn lines_of_all_phases_that_grew_are_named() {
    let more = |step: u64| if step >= SINCE { 8 * MS } else { 0 };
    let plan = |step: u64| with_phase("backward", 2 * more(step)).with_phase("forward", more(step));
    let mut stream = super::stream(STEPS, plan, &[]);
    let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
    for (phase, line) in
        [("forward", "forward (net.py:8)"), ("backward", "main (net.py:30)"), ("optimizer", "main (net.py:31)")]
    {
        let path = stream.path(&[phase, line]);
        stream.event(track, Event::StackSample(StackSample { path, t_ns: START_NS, count: 9, is_repeat: false }));
    }
    let found = all_findings(&store_of(stream)).found;
    let slower = found.iter().find(|finding| finding.kind == FindingKind::SlowerSince).unwrap();
    let sampled = slower.evidence.iter().filter(|line| line.contains("stacks sampled")).collect::<Vec<_>>();
    let lines = ["in backward: in main (net.py:30)", "in forward: in forward (net.py:8)"];
    assert_eq!(sampled, lines.map(|line| format!("9 stacks sampled {line}")).iter().collect::<Vec<_>>());
}
