//! What the program's own settings and memory cost: threads, checkpoints, allocators, growth in each step.

use super::*;

fn of_kind(store: &Store, kind: FindingKind) -> Vec<Finding> {
    all_findings(store).found.into_iter().filter(|finding| finding.kind == kind).collect()
}

/// What a GPU's allocator holds and tensors use at most, in GB, and how often memory ran out by a step.
fn allocator(used: f64, reserved: f64, retries: impl Fn(u64) -> u64) -> Vec<Finding> {
    let plan =
        |step: u64| if [120, 200].contains(&step) { with_phase("forward", 200 * MS) } else { StepPlan::default() };
    let mut stream = stream(300, plan, &[]);
    let main = gnntop_wire::TrackId(1);
    let mut t_ns = START_NS;
    for step in 1..=300 {
        t_ns += 34 * MS + MS / 2 + if [120, 200].contains(&step) { 200 * MS } else { 0 };
        let values = [("peak", used * 1e9), ("reserved", reserved * 1e9), ("total", 80e9)];
        for (what, value) in values.into_iter().chain([("retries", retries(step) as f64)]) {
            stream.counter(main, &format!("device memory {what}"), t_ns, value);
        }
    }
    of_kind(&store_of(stream), FindingKind::GpuAllocator)
}

#[test]
fn retries_of_a_gpus_allocator_are_counted_with_their_cost() {
    let twice = |step| 3 + u64::from(step >= 120) + u64::from(step >= 200);
    let [found] = &allocator(70.0, 78.0, twice)[..] else { panic!("not found") };
    assert_facts(found, FindingKind::GpuAllocator, &[(Number::Retries, 2.0), (Number::OfTime, 0.0373)]);
    assert_contains(found, FindingKind::GpuAllocator, &["expandable_segments:True"]);
    assert_eq!(allocator(70.0, 78.0, |_| 3), [], "what was before the steps is not theirs");
}

#[test]
fn memory_that_only_the_allocator_holds_is_reported() {
    let [found] = &allocator(24.0, 61.0, |_| 0)[..] else { panic!("not found") };
    assert_facts(found, FindingKind::GpuAllocator, &[(Number::Reserved, 61e9), (Number::UsedAtMost, 24e9)]);
    assert_eq!(found.severity, Severity::Note);
    assert_eq!(allocator(40.0, 55.0, |_| 0), [], "a third is usual");
    assert_eq!(allocator(0.4, 1.2, |_| 0), [], "there is enough");
}

