//! Loops that wait for their input, or make it themselves: which part, and where.

use std::ops::Range;

use gnntop_wire::{Definition, Event, Fact, Origin, SessionInfo, StackSample, Step, StepId};

use super::*;
use gnntop_fixtures::session_info;

/// A step of a sampled batch of 64 seeds, of which these phases come before the model.
fn sampled(phases: &[(&'static str, u64)], nodes: u64) -> StepPlan {
    let mut plan = StepPlan::default();
    plan.phases.splice(0..1, phases.iter().copied());
    plan.batch = BatchShape { seeds: Some(64), nodes: Some(nodes), edges: Some(10 * nodes), graphs: None };
    plan
}

/// A machine of four cores of which this many are busy, and what this process takes of them.
fn four_cores(busy: f64, own: f64) -> Vec<Reading> {
    let names = ["machine.cpu.0.busy", "machine.cpu.1.busy", "machine.cpu.2.busy", "machine.cpu.3.busy"];
    let cores = names.map(|name| counted(name, Unit::Nanoseconds, move |t| t * busy / 4.0 * 1e9));
    let all = counted("machine.cpu.busy", Unit::Nanoseconds, move |t| t * busy * 1e9);
    cores.into_iter().chain([all, counted("process.cpu_time", Unit::Nanoseconds, move |t| t * own * 1e9)]).collect()
}

/// Loader workers, each of which takes so long for the batches that it makes one after the other from a time on.
fn with_workers(stream: &mut StreamBuilder, loader: u64, from_ns: u64, batches: u64, each_ns: &[&dyn Fn(u64) -> u64]) {
    for (worker, each) in each_ns.iter().enumerate() {
        let track = stream.track(TrackRole::Loader, &format!("loader {loader} worker {worker}"));
        let mut t_ns = from_ns;
        for batch in 0..batches {
            let end_ns = t_ns + noisy(each(batch), batch);
            stream.phase(track, 0, "fetch", t_ns, end_ns);
            t_ns = end_ns;
        }
    }
}

/// Steps of 50 ms of a Python program whose batch comes after 30 ms, of which this part is spent in putting items together, on a
/// machine of four cores of which this many are busy.
fn with_collate(collate_ns: u64, busy: f64) -> StreamBuilder {
    let info = SessionInfo { origin: Origin::Python, ..session_info("made here") };
    let mut stream = StreamBuilder::from_info(&info);
    let main = stream.track(TrackRole::Training, "main");
    for step in 1..=100 {
        let start_ns = START_NS + step * 50 * MS;
        let batch_ns = start_ns + 30 * MS;
        stream.span(main, step, "collate", batch_ns - collate_ns, batch_ns);
        stream.phase(main, step, "data wait", start_ns, batch_ns);
        stream.phase(main, step, "forward", batch_ns, start_ns + 49 * MS);
        stream.step(main, step, start_ns, start_ns + 49 * MS);
    }
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let cores = (0..4).map(|core| (format!("machine.cpu.{core}.busy"), busy / 4.0));
    for (name, cores) in cores.chain([("machine.cpu.busy".to_owned(), busy)]) {
        let signal = stream.signal(&name, Unit::Nanoseconds, SignalKind::Counter);
        for at in 0..=100 {
            stream.sample(sensors, signal, START_NS + at * 50 * MS, (at as f64 * 50e6 * cores) as i64);
        }
    }
    stream
}

/// Adds stacks that were sampled, each from the phase inwards, and how many there are of it.
fn with_samples(stream: &mut StreamBuilder, stacks: &[(&[&str], u64)]) {
    let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
    for (frames, count) in stacks {
        let path = stream.path(frames);
        stream.stack_sample(track, path, START_NS, *count);
    }
}

#[test]
fn sampling_on_the_training_thread_is_waiting_for_input() {
    let plan = |_| sampled(&[("data wait", MS), ("sample", 20 * MS), ("gather", 10 * MS)], 6400);
    let found = only(&run(300, plan, &four_cores(1.0, 1.0)));
    let numbers = [(Number::OfTime, 0.48), (Number::Each, 31e6), (Number::NodesPerSeed, 100.0)];
    assert_facts(&found, FindingKind::DataBound, &numbers);
    assert_states_of(&found, "sample", &[(Number::OfTime, 0.31)]);
    assert_states_of(&found, "gather", &[(Number::OfTime, 0.155)]);
    assert_eq!(found.confidence, Confidence::High);
    let words = ["sample is on the training thread", "(num_workers): cores are free"];
    assert_contains(&found, FindingKind::DataBound, &words);
    let little = |_| sampled(&[("data wait", MS), ("sample", 2 * MS), ("gather", MS)], 6400);
    assert_eq!(all_findings(&run(300, little, &four_cores(1.0, 1.0))).found, []);
}

#[test]
fn advice_for_input_follows_part_and_cores() {
    let advice = |phases: &'static [(&'static str, u64)], readings: Vec<Reading>| {
        let found = all_findings(&run(300, |_| sampled(phases, 6400), &readings)).found;
        found.into_iter().find(|finding| finding.kind == FindingKind::DataBound).unwrap().advice.remove(0)
    };
    let samples: &[(&str, u64)] = &[("sample", 20 * MS), ("gather", 10 * MS)];
    let gathers: &[(&str, u64)] = &[("sample", 10 * MS), ("gather", 20 * MS)];
    assert!(advice(samples, four_cores(3.9, 3.9)).contains("fewer neighbours or hops"));
    assert!(advice(gathers, four_cores(3.9, 3.9)).contains("gather less"));
    let allotted = gauge("allotted.cpu.quota", Unit::MilliPercent, |_| 100e3);
    assert!(advice(samples, four_cores(1.0, 1.0).into_iter().chain([allotted]).collect()).contains("no core is free"));
    let gpu = || gauge("gpu.0.util", Unit::MilliPercent, |_| 60e3);
    assert!(advice(gathers, vec![gpu()]).contains("features on the GPU"));
    assert!(advice(&[("transfer", 20 * MS)], vec![gpu()]).contains("pin_memory=True"));
}

#[test]
fn copies_that_wait_for_a_busy_gpu_are_no_input() {
    let busy = [gauge("gpu.0.util", Unit::MilliPercent, |_| 97e3)];
    assert_eq!(all_findings(&run(300, |_| sampled(&[("transfer", 20 * MS)], 6400), &busy)).found, []);
}

#[test]
fn nodes_per_seed_that_rise_are_reported() {
    let plan = |step: u64| sampled(&[("sample", 30 * MS)], 6400 + 32 * step);
    let found = only(&run(300, plan, &[]));
    assert_facts(&found, FindingKind::DataBound, &[(Number::SeedGrowth, 14_432.0 / 8_096.0)]);
}

#[test]
fn a_slow_worker_is_named() {
    let mut stream = stream(300, |_| with_phase("data wait", 15 * MS), &[]);
    let usual = &|_| 100 * MS;
    with_workers(&mut stream, 1, START_NS, 70, &[usual, usual, usual, &|_| 210 * MS]);
    let found = only(&store_of(stream));
    assert_contains(&found, FindingKind::DataBound, &["worker 3 takes 2.1 x as long for a batch as the others"]);
    assert_states_of(&found, "worker 3", &[(Number::Ratio, 2.1), (Number::Each, 210e6), (Number::Otherwise, 100e6)]);
    assert_contains(&found, FindingKind::DataBound, &["give each worker as much to do"]);
    assert_facts(&found, FindingKind::DataBound, &[(Number::Loaders, 4.0)]);
}

#[test]
fn even_workers_are_counted_once_for_all_epochs() {
    let mut stream = stream(300, |_| with_phase("data wait", 15 * MS), &[]);
    for epoch in 0..3 {
        let usual = &|_| 100 * MS;
        with_workers(&mut stream, epoch + 1, START_NS + epoch * 4000 * MS, 30, &[usual, usual]);
    }
    let found = only(&store_of(stream));
    assert_facts(&found, FindingKind::DataBound, &[(Number::Loaders, 2.0)]);
    assert!(!found.evidence.iter().any(|line| line.contains("as the others")), "{found:#?}");
}

#[test]
fn few_slow_batches_are_reported() {
    let mut stream = stream(300, |_| with_phase("data wait", 15 * MS), &[]);
    let slow = &|batch: u64| if batch.is_multiple_of(20) { 2000 * MS } else { 100 * MS };
    with_workers(&mut stream, 1, START_NS, 60, &[slow, slow]);
    let found = only(&store_of(stream));
    let numbers = [(Number::SlowBatches, 6.0), (Number::UsualBatch, 100e6), (Number::OfWorkers, 0.51)];
    assert_facts(&found, FindingKind::DataBound, &numbers);
}

#[test]
fn an_import_does_not_conclude_from_missing_workers() {
    let words = |origin| {
        let info = SessionInfo { origin, ..session_info("imported") };
        let mut stream = StreamBuilder::from_info(&info);
        let main = stream.track(TrackRole::Training, "main");
        for step in 1..=100 {
            let start_ns = START_NS + step * 50 * MS;
            stream.phase(main, step, "data wait", start_ns, start_ns + 30 * MS);
            stream.phase(main, step, "forward", start_ns + 30 * MS, start_ns + 49 * MS);
            stream.step(main, step, start_ns, start_ns + 49 * MS);
        }
        only(&store_of(stream)).evidence.join("\n")
    };
    assert!(words(Origin::Python).contains("the training thread probably makes the batches"));
    let imported = words(Origin::Trace);
    assert!(!imported.contains("probably") && !imported.contains("is seen"), "{imported}");
}

#[test]
fn the_longer_part_of_a_batch_that_the_training_thread_makes_is_named_with_its_line() {
    let mut stream = with_collate(27 * MS, 1.0);
    let wait = ["data wait", "main (train.py:9)", "fetch (torch/fetch.py:54)"];
    let [mut slow, mut quick] = [wait.to_vec(), wait.to_vec()];
    slow.extend(["collate (data.py:7)", "pad (data.py:3)"]);
    quick.push("Items.__getitem__ (data.py:12)");
    with_samples(&mut stream, &[(&slow, 90), (&quick, 10), (&["forward", "main (train.py:11)"], 70)]);
    let found = only(&store_of(stream));
    assert_contains(&found, FindingKind::DataBound, &["the training thread makes the batches: collate takes 90 % of"]);
    assert_states_of(&found, "collate", &[(Number::OfWait, 0.9)]);
    let place = "90 stacks sampled in data wait: in pad (data.py:3), under collate (data.py:7)";
    assert_contains(&found, FindingKind::DataBound, &[place]);
    assert!(found.advice[0].starts_with("make collate cheaper, above all pad (data.py:3), or let loader workers"));
    assert_eq!(found.confidence, Confidence::High);

    let found = only(&store_of(with_collate(3 * MS, 3.9)));
    let words = [
        "making the items takes 90 % of the wait",
        "gnntop run --stacks 20 names the lines",
        "make the items cheaper: no core is free for loader workers",
    ];
    assert_contains(&found, FindingKind::DataBound, &words);
}

#[test]
fn workers_help_where_batches_wait_though_no_core_is_free() {
    let advice = |own: f64, starved: f64| {
        let mut readings = four_cores(3.9, own);
        readings.push(counted("process.main_thread.cpu_wait", Unit::Nanoseconds, move |t| t * starved * 1e9));
        let found = all_findings(&store_of(stream(300, |_| with_phase("data wait", 60 * MS), &readings))).found;
        let found = found.iter().find(|finding| finding.kind == FindingKind::DataBound).unwrap();
        (found.advice[0].clone(), found.evidence.join("\n"))
    };
    let (waiting, evidence) = advice(0.06, 0.01);
    assert!(waiting.contains("num_workers") && !waiting.contains("no core is free"), "{waiting}");
    assert!(evidence.contains("the program uses 0.06 cores: making batches is mostly waiting"), "{evidence}");
    assert!(advice(0.9, 0.01).0.contains("no core is free"), "it computes");
    assert!(advice(0.06, 0.6).0.contains("no core is free"), "it would compute if it could");
}

#[test]
fn the_longer_part_of_what_workers_do_is_named() {
    let mut stream = stream(300, |_| with_phase("data wait", 15 * MS), &four_cores(3.9, 1.0));
    let track = stream.track(TrackRole::Loader, "loader 1 worker 0");
    for batch in 0..150 {
        let start_ns = START_NS + batch * 100 * MS;
        stream.span(track, 0, "collate", start_ns + 20 * MS, start_ns + 100 * MS);
        stream.phase(track, 0, "fetch", start_ns, start_ns + 100 * MS);
    }
    with_samples(&mut stream, &[(&["data wait", "main (train.py:9)", "loader worker", "collate (data.py:7)"], 90)]);
    let found = only(&store_of(stream));
    let words = [
        "collate takes 80 % of the time in which the loader's workers make batches",
        "in collate (data.py:7), under main (train.py:9)",
        "make collate cheaper, above all collate (data.py:7): no core is free for more workers",
    ];
    assert_contains(&found, FindingKind::DataBound, &words);
}

#[test]
fn more_workers_are_no_advice_where_these_are_idle() {
    let mut stream = stream(300, |_| with_phase("data wait", 15 * MS), &four_cores(1.0, 1.0));
    let track = stream.track(TrackRole::Loader, "loader 1 worker 0");
    for batch in 0..150 {
        let start_ns = START_NS + batch * 100 * MS;
        stream.span(track, 0, "collate", start_ns + 5 * MS, start_ns + 10 * MS);
        stream.phase(track, 0, "fetch", start_ns, start_ns + 10 * MS);
    }
    let found = only(&store_of(stream));
    assert_contains(&found, FindingKind::DataBound, &["the workers make batches", "more workers would be idle, too"]);
}

#[test]
fn loader_without_workers_makes_its_batches_on_the_training_thread() {
    let judged = |workers: u64| {
        let mut stream = stream(300, |_| with_phase("data wait", 15 * MS), &[]);
        stream.define(Definition::Fact(Fact::LoaderWorkers(workers)));
        let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
        let path = stream.path(&["data wait", "main (train.py:9)", "pad (data.py:30)"]);
        stream.event(track, Event::StackSample(StackSample { path, t_ns: START_NS, count: 40, is_repeat: false }));
        only(&store_of(stream))
    };
    let none = judged(0);
    let words = [
        "has no workers (num_workers=0)",
        "the training thread makes its batches",
        "40 stacks sampled in data wait: in pad (data.py:30), under main (train.py:9)",
        "prepare batches ahead",
    ];
    assert_contains(&none, FindingKind::DataBound, &words);
    assert_eq!(none.confidence, Confidence::High);
    let two = judged(2);
    assert!(two.confidence == Confidence::Medium && !two.evidence.join(" ").contains("training thread"), "{two:#?}");
}

/// Eight epochs of 50 steps whose batches take so long in the first one, and 1 ms later.
fn slow_first_epoch(first_ms: u64) -> Vec<Finding> {
    let plan = |step: u64| {
        let epoch = (step - 1) / 50;
        // What made the data has pushed those of the model out of the caches.
        let (wait_ms, slow_ms) = if epoch == 0 { (first_ms, 12) } else { (0, 0) };
        StepPlan { epoch, ..with_phase("data wait", wait_ms * MS).with_phase("backward", slow_ms * MS) }
    };
    Judgement::for_steps(&run(400, plan, &[]), 0..u64::MAX).findings.found
}

#[test]
fn first_epoch_that_waits_for_its_data_is_no_warm_up() {
    let found = slow_first_epoch(100);
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&FindingKind::DataBound) && !kinds.contains(&FindingKind::WarmUp), "{found:#?}");
    let waits = found.iter().find(|finding| finding.kind == FindingKind::DataBound).unwrap();
    assert_facts(waits, FindingKind::DataBound, &[(Number::FirstEpoch, 0.93), (Number::To, 1e6)]);
    assert!(waits.advice[0].starts_with("make the data ready once"), "{waits:#?}");
}

#[test]
fn model_that_warms_up_beside_its_data_still_does() {
    let plan = |step: u64| match step {
        ..=20 => with_phase("forward", 60 * MS).with_phase("data wait", 5 * MS),
        _ => StepPlan::default(),
    };
    let found = all_findings(&run(400, plan, &[])).found;
    let warm = found.iter().find(|finding| finding.kind == FindingKind::WarmUp).unwrap();
    assert_facts(warm, FindingKind::WarmUp, &[(Number::Steps, 20.0)]);
}

/// Epochs of 20 steps, each of which begins with a long wait, of a program with so many loader workers, one of which has
/// times as given, in steps.
fn slow_epoch_starts(workers: u64, worker: &[Range<u64>]) -> Finding {
    let wait = |step: u64| if step.is_multiple_of(20) { 900 * MS } else { MS };
    let plan = |step: u64| StepPlan { epoch: step / 20, ..with_phase("data wait", wait(step)) };
    let mut stream = stream(300, plan, &[]);
    stream.define(Definition::Fact(Fact::LoaderWorkers(workers)));
    let starts_ns = |step: u64| START_NS + (1..step).map(|step| 34 * MS + MS / 2 + wait(step)).sum::<u64>();
    for steps in worker {
        let track = stream.track(TrackRole::Loader, "loader 1 worker 0");
        for step in steps.clone() {
            stream.phase(track, 0, "fetch", starts_ns(step), starts_ns(step) + 5 * MS);
        }
    }
    with_samples(&mut stream, &[(&["data wait", "main (train.py:9)", "sorted (data.py:13)"], 40)]);
    let found = all_findings(&store_of(stream)).found;
    found.into_iter().find(|finding| finding.kind == FindingKind::DataBound).unwrap()
}

#[test]
fn wait_at_the_start_of_epochs_is_for_workers_where_there_are_any() {
    let [none, some] = [0, 2].map(|workers| slow_epoch_starts(workers, &[]));
    for found in [&none, &some] {
        assert_contains(found, FindingKind::DataBound, &["of the waiting is for the first batch of an epoch"]);
    }
    assert_eq!(none.advice, ["do less at the start of each epoch, above all in sorted (data.py:13)"]);
    assert!(some.advice[0].starts_with("keep the loader's workers"), "{some:#?}");
}

#[test]
fn workers_that_are_kept_are_not_to_be_kept() {
    let each_epoch: Vec<Range<u64>> = (0..15).map(|epoch| epoch * 20 + 1..epoch * 20 + 19).collect();
    let started_again = slow_epoch_starts(2, &each_epoch);
    assert!(started_again.advice[0].starts_with("keep the loader's workers"), "{started_again:#?}");
    let kept = slow_epoch_starts(2, std::slice::from_ref(&(1..300)));
    assert!(kept.advice[0].starts_with("the loader keeps its workers"), "{kept:#?}");
}

#[test]
fn spikes_that_wait_for_the_first_batches_of_epochs_are_those_of_workers() {
    let spikes = |workers: u64| {
        let wait = |step: u64| if step.is_multiple_of(20) { 70 * MS } else { MS };
        let plan = |step: u64| StepPlan { epoch: step / 20, ..with_phase("data wait", wait(step)) };
        let mut stream = stream(150, plan, &[]);
        stream.define(Definition::Fact(Fact::LoaderWorkers(workers)));
        let found = all_findings(&store_of(stream)).found;
        assert!(found.iter().all(|finding| finding.kind != FindingKind::DataBound), "too little for that: {found:#?}");
        found.into_iter().find(|finding| finding.kind == FindingKind::Spike).unwrap()
    };
    let some = spikes(2);
    assert_contains(
        &some,
        FindingKind::Spike,
        &["they come every 20 steps", "each waits for the first batch of an epoch"],
    );
    assert!(some.advice[0].starts_with("keep the loader's workers"), "{some:#?}");
    assert_eq!(spikes(0).advice, ["look for work that the program does at that interval"]);
}

#[test]
fn what_comes_before_the_first_batch_of_an_epoch_is_not_making_its_items() {
    let mut stream = StreamBuilder::from_info(&SessionInfo { origin: Origin::Python, ..session_info("sorts") });
    let main = stream.track(TrackRole::Training, "main");
    let mut start_ns = START_NS;
    for step in 0..200 {
        let batch_ns = start_ns + if step % 20 == 0 { 900 * MS } else { 2 * MS };
        let end_ns = batch_ns + noisy(40 * MS, step);
        stream.span(main, step, "collate", batch_ns - MS, batch_ns);
        stream.phase(main, step, "data wait", start_ns, batch_ns);
        stream.phase(main, step, "forward", batch_ns, end_ns);
        let step = Step { step: StepId(step), epoch: step / 20, start_ns, end_ns, ..Step::default() };
        stream.event(main, Event::Step(step));
        start_ns = end_ns;
    }
    let found = all_findings(&store_of(stream)).found;
    let waits = found.iter().find(|finding| finding.kind == FindingKind::DataBound).unwrap();
    let evidence = waits.evidence.join("; ");
    assert!(evidence.contains("the training thread makes the batches") && !evidence.contains("items"), "{evidence}");
}
