//! What the program's own settings and memory cost: threads, checkpoints, allocators, growth in each step.

use gnntop_wire::{Definition, Fact};

use super::*;

fn of_kind(store: &Store, kind: FindingKind) -> Vec<Finding> {
    all_findings(store).found.into_iter().filter(|finding| finding.kind == kind).collect()
}

/// A machine of eight cores of which this many are busy, and a program that computes with this many threads and uses as many cores
/// as it takes.
fn computes(threads: u64, used: f64, busy: f64) -> Vec<Finding> {
    let cores = [0, 1, 2, 3, 4, 5, 6, 7].map(|core| {
        let name: &'static str = format!("machine.cpu.{core}.busy").leak();
        counted(name, Unit::Nanoseconds, move |t| t * busy / 8.0 * 1e9)
    });
    let mut readings: Vec<Reading> = cores.into_iter().collect();
    readings.push(counted("machine.cpu.busy", Unit::Nanoseconds, move |t| t * busy * 1e9));
    readings.push(counted("process.cpu_time", Unit::Nanoseconds, move |t| t * used * 1e9));
    let mut stream = stream(300, |_| StepPlan::default(), &readings);
    stream.define(Definition::Fact(Fact::ComputeThreads(threads)));
    of_kind(&store_of(stream), FindingKind::Threads)
}

#[test]
fn threads_are_few_if_cores_are_free() {
    let [found] = &computes(1, 1.0, 1.2)[..] else { panic!("not found") };
    assert_facts(found, FindingKind::Threads, &[(Number::Threads, 1.0), (Number::FreeCores, 6.8)]);
    assert_eq!(found.confidence, Confidence::Low);
    assert_eq!(computes(1, 1.0, 7.0), [], "other ranks use the cores");
    assert_eq!(computes(4, 4.0, 4.2), [], "half of them is not few");
}

#[test]
fn threads_are_many_beyond_the_cores() {
    let [found] = &computes(64, 7.9, 8.0)[..] else { panic!("not found") };
    assert_facts(found, FindingKind::Threads, &[(Number::Threads, 64.0), (Number::MayUseCores, 8.0)]);
    assert_eq!(computes(8, 7.9, 8.0), []);
}

#[test]
fn one_thread_is_not_too_many_for_half_a_core() {
    let found = |threads: u64, quota: f64| {
        let mut stream =
            stream(300, |_| StepPlan::default(), &[gauge("allotted.cpu.quota", Unit::MilliPercent, move |_| quota)]);
        stream.define(Definition::Fact(Fact::ComputeThreads(threads)));
        let found = of_kind(&store_of(stream), FindingKind::Threads);
        found.first().map(|it| it.summary.clone())
    };
    let summary = |cores: &str| Some(format!("the program computes with 4 threads and may use {cores}"));
    assert_eq!([found(1, 50e3), found(4, 50e3), found(4, 100e3)], [None, summary("0.5 cores"), summary("1 core")]);
}

/// Two cores, of which this program uses as much and others the rest, and its threads; a thread waits for a CPU half of the time.
fn crowded(threads: u64, own: f64) -> Store {
    let readings = [
        counted("process.main_thread.cpu_wait", Unit::Nanoseconds, |t| t * 5e8),
        counted("process.cpu_time", Unit::Nanoseconds, move |t| t * own * 1e9),
        counted("machine.cpu.busy", Unit::Nanoseconds, |t| t * 2e9),
        counted("machine.cpu.0.busy", Unit::Nanoseconds, |t| t * 1e9),
        counted("machine.cpu.1.busy", Unit::Nanoseconds, |t| t * 1e9),
    ];
    let mut stream = stream(300, |_| StepPlan::default(), &readings);
    stream.define(Definition::Fact(Fact::ComputeThreads(threads)));
    store_of(stream)
}

#[test]
fn threads_of_the_program_come_before_other_programs_that_use_less() {
    let contention = |store: &Store| of_kind(store, FindingKind::Contention).remove(0);
    let own = crowded(8, 1.3);
    assert_contains(&contention(&own), FindingKind::Contention, &["with 8 threads on 2 cores", "use fewer threads"]);
    let verdict = judge_newest(&own).to_string();
    assert!(verdict.starts_with("CPU contention (50 %, in all phases); number of threads; backward"), "{verdict}");
    for store in [crowded(8, 0.6), crowded(2, 1.3)] {
        assert!(contention(&store).advice[0].contains("what else runs"), "{:#?}", contention(&store));
        let verdict = judge_newest(&store).to_string();
        assert!(verdict.starts_with("CPU contention (50 %, in all phases); backward-bound"), "{verdict}");
    }
}

#[test]
fn churn_costs_no_more_than_its_faults() {
    let plan = |_| {
        let mut plan = StepPlan::default();
        plan.usage.get_or_insert_default().minor_faults = 1_000;
        plan
    };
    let cpu = |name, share: f64| counted(name, Unit::Nanoseconds, move |t| t * share * 1e9);
    let readings = [cpu("process.cpu_time", 0.6), cpu("process.cpu_time.system", 0.12)];
    let [found] = &of_kind(&run(300, plan, &readings), FindingKind::AllocationChurn)[..] else { panic!("not found") };
    // 29 steps a second with 1,000 faults of 2.4 us.
    assert!((found.share.unwrap() - 0.07).abs() < 0.003, "{found:#?}");
}

#[test]
fn batches_are_not_tiny_where_the_run_waits_for_something_else() {
    let found = |wait_ms: u64| {
        let plan = move |_| StepPlan {
            phases: vec![("data wait", wait_ms * MS), ("forward", MS), ("backward", 2 * MS), ("optimizer", MS)],
            batch: BatchShape { seeds: Some(4), ..BatchShape::default() },
            ..StepPlan::default()
        };
        of_kind(&run(300, plan, &[]), FindingKind::TinyBatch).len()
    };
    assert_eq!([found(1), found(10)], [1, 0]);
}

#[test]
fn steps_after_a_checkpoint_are_slower() {
    let after = |slow: u64, more_ms: u64| {
        let plan = move |step: u64| {
            let after = (step - 1) % 40;
            let is_slow = after < slow && step > 40;
            let mut plan = if is_slow { with_phase("forward", more_ms * MS) } else { StepPlan::default() };
            plan.mark_before = (after == 0 && step > 1).then_some("checkpoint");
            plan
        };
        of_kind(&run(400, plan, &[]), FindingKind::AfterCheckpoint)
    };
    let [found] = &after(5, 20)[..] else { panic!("not found") };
    assert_facts(
        found,
        FindingKind::AfterCheckpoint,
        &[(Number::Steps, 5.0), (Number::More, 20e6), (Number::Times, 9.0)],
    );
    assert_eq!(steps_of(found)[0], 41);
    assert_eq!(after(0, 0), []);
    assert_eq!(after(40, 20), [], "what lasts to the next one is another thing");
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

#[test]
fn growth_by_the_same_in_each_step_is_possible_soon() {
    // 400 steps of 2.5 ms: ten readings.
    let short = |bytes: fn(f64) -> f64| {
        let plan = |_| StepPlan { gap_ns: 0, phases: vec![("forward", 5 * MS / 2)], ..StepPlan::default() };
        of_kind(&run(400, plan, &[gauge("process.rss", Unit::Bytes, bytes)]), FindingKind::MemoryGrowth)
    };
    let [found] = &short(|t| 5e8 + t * 400.0 * 1.7e6)[..] else { panic!("not found") };
    assert_facts(found, FindingKind::MemoryGrowth, &[(Number::BytesPerStep, 1.7e6)]);
    assert_eq!((found.confidence, found.severity), (Confidence::Low, Severity::Minor));
    assert_eq!(short(|t| 5e8 + 4e8 * (1.0 - (-4.0 * t).exp())), [], "it levels off");
    assert_eq!(short(|t| 5e8 + t * 1e7), [], "little");
}

#[test]
fn pages_of_mapped_files_are_no_growth() {
    let mapped = |own: f64| {
        let rss = gauge("process.rss", Unit::Bytes, |t| 1e9 + 3e8 * t);
        let own = gauge("process.rss.own", Unit::Bytes, move |t| 8e8 + own * t);
        of_kind(&run(1200, |_| StepPlan::default(), &[rss, own]), FindingKind::MemoryGrowth)
    };
    assert_eq!(mapped(0.0), []);
    let [found] = &mapped(5e7)[..] else { panic!("not found") };
    assert_contains(found, FindingKind::MemoryGrowth, &["without the pages of mapped files", "from 772 MiB"]);
}

#[test]
fn growth_of_workers_and_of_a_caching_allocator_is_distinguished() {
    let plan = |_| StepPlan::default();
    let rss = |bytes: f64| gauge("process.rss", Unit::Bytes, move |t| 2e9 + bytes * t);
    let machine = || gauge("machine.memory.used", Unit::Bytes, |t| 8e9 + 5e7 * t);
    let grows = |readings: &[Reading]| {
        let mut stream = stream(1200, plan, readings);
        stream.track(TrackRole::Loader, "loader 1 worker 0");
        of_kind(&store_of(stream), FindingKind::MemoryGrowth)
    };
    let children = |bytes: f64| gauge("children.rss", Unit::Bytes, move |t| 1e9 + bytes * t);
    let [workers] = &grows(&[rss(0.0), machine(), children(2e7)])[..] else { panic!("not found") };
    assert_contains(
        workers,
        FindingKind::MemoryGrowth,
        &["the memory of its loader's workers grows", "workers so far: 1"],
    );
    assert_eq!(workers.confidence, Confidence::Medium);
    assert_eq!(grows(&[rss(0.0), machine(), children(0.0)]), [], "other programs' grows");
    let with_workers = |own: f64| grows(&[rss(own), machine()]);
    let [workers] = &with_workers(0.0)[..] else { panic!("not found") };
    assert_contains(workers, FindingKind::MemoryGrowth, &["the machine's memory in use grows", "arrays or tensors"]);
    assert_eq!(workers.confidence, Confidence::Low);
    let [own] = &with_workers(5e7)[..] else { panic!("not found") };
    assert_contains(own, FindingKind::MemoryGrowth, &["the process's resident memory grows"]);
    assert_eq!(of_kind(&run(1200, plan, &[rss(0.0), machine()]), FindingKind::MemoryGrowth), [], "it has no workers");

    let on_gpu = |tensors: f64| {
        let gpu = gauge("gpu.0.memory.used", Unit::Bytes, |t| 8e9 + 1e8 * t);
        let mut stream = stream(600, plan, &[gpu]);
        for step in 1..=600 {
            let (t_ns, s) = (START_NS + step * 34 * MS, step as f64 * 0.034);
            stream.counter(gnntop_wire::TrackId(1), "device memory used", t_ns, 4e9 + tensors * s);
            stream.counter(gnntop_wire::TrackId(1), "device memory reserved", t_ns, 7e9 + 1e8 * s);
        }
        let [found] = &of_kind(&store_of(stream), FindingKind::MemoryGrowth)[..] else { panic!("not found") };
        found.advice.join("\n")
    };
    assert!(on_gpu(0.0).contains("expandable_segments:True"));
    assert!(on_gpu(1e8).contains("objects kept from step to step"));
}

/// The gap of a training whose steps have this much time in no phase, and in which these libraries are hooked.
fn gap(unnamed_ns: u64, hooked: &str) -> Vec<Finding> {
    let mut stream = stream(300, |_| StepPlan { unnamed_ns, ..StepPlan::default() }, &[]);
    stream.define(Definition::Fact(Fact::Other { key: "hooks".to_owned(), text: hooked.to_owned() }));
    of_kind(&store_of(stream), FindingKind::Gap)
}

#[test]
fn what_the_loop_of_a_library_takes_in_each_step_is_no_mistake() {
    assert_eq!([gap(2 * MS, "torch").len(), gap(2 * MS, "torch, lightning").len()], [1, 0], "7 %");
    assert_eq!(gap(5 * MS, "torch, lightning").len(), 1, "a seventh");
}
