//! What steps alone show: their times, batches and marks.

use gnntop_wire::{BatchShape, Unit};

use super::*;

#[test]
fn clean_runs_have_no_findings() {
    assert_eq!(all(&run(500, |_| MadeUpStep::default(), &[])).found, []);
    let sized = |step: u64| {
        let edges = 6000 + step * 7919 % 3000;
        let forward = 10 * MS * edges / 7500;
        let mut plan = with_phase("forward", 0);
        plan.phases[1].1 = forward;
        plan.phases[2].1 = 2 * forward;
        plan.batch = BatchShape { edges: Some(edges), ..BatchShape::default() };
        plan
    };
    let readings = [
        gauge("process.rss", Unit::Bytes, |t| 5e8 + 1e6 * (t * 3.0).sin()),
        counted("machine.pressure.cpu.some", Unit::Nanoseconds, |t| t * 3e7),
        counted("machine.cpu.steal", Unit::Nanoseconds, |t| t * 1e7),
    ];
    assert_eq!(all(&run(500, sized, &readings)).found, []);
}

#[test]
fn too_few_steps_are_not_enough_for_anything() {
    let findings = all(&run(8, |_| MadeUpStep::default(), &[]));
    assert_eq!(findings.found, []);
    let about_spikes = findings.not_enough.iter().find(|n| n.kind == Kind::Spike).unwrap();
    assert_eq!(about_spikes.reason, "only 8 steps: 13 are needed, as the first 3 may warm up");
    assert_eq!(all(&Store::new()).found, []);
}

#[test]
fn spikes_are_found_with_their_phase_also_on_a_slope() {
    let plan = |step: u64| {
        let slope = step * MS / 150; // a third slower at the end
        if step == 77 { with_phase("forward", 80 * MS) } else { with_phase("backward", slope) }
    };
    let findings = all(&run(300, plan, &[]));
    let spike = findings.found.iter().find(|f| f.kind == Kind::Spike).unwrap();
    assert_eq!(steps_of(spike), [77]);
    assert_says(spike, Kind::Spike, &["step 77 took 1", "more in forward"]);
    assert!(spike.summary.starts_with("step 77 took 11"), "{}", spike.summary);
}

#[test]
fn spikes_that_come_regularly_are_said_to() {
    let plan =
        |step: u64| if step.is_multiple_of(40) { with_phase("backward", 130 * MS) } else { MadeUpStep::default() };
    let spike = only(&run(400, plan, &[]));
    assert_eq!(steps_of(&spike), (1..=10).map(|n| n * 40).collect::<Vec<u64>>());
    assert_states(&spike, Kind::Spike, &[("spikes", 10.0)]);
    assert_says(&spike, Kind::Spike, &["they come every 40 steps"]);
    assert_eq!(spike.severity, Severity::Major);
}

#[test]
fn a_batch_is_tiny_where_a_step_costs_much_whatever_its_size() {
    let plan = |samples: f64, optimizer: u64| MadeUpStep {
        phases: vec![("forward", MS), ("backward", 2 * MS), ("optimizer", optimizer)],
        gap_ns: MS / 20,
        batch: BatchShape::default(),
        counter: Some(("samples", samples)),
        ..MadeUpStep::default()
    };
    let found = only(&run(200, |_| plan(2.0, MS), &[]));
    assert_states(&found, Kind::TinyBatch, &[("batch_size", 2.0), ("optimizer_of_compute", 0.25)]);
    assert_eq!(all(&run(200, |_| plan(64.0, MS), &[])).found, [], "a usual batch");
    assert_eq!(all(&run(200, |_| plan(2.0, MS / 5), &[])).found, [], "small, but of much work");
    let of_graphs = |edges| MadeUpStep {
        batch: BatchShape { graphs: Some(1), nodes: None, edges: Some(edges), seeds: None },
        ..plan(0.0, MS)
    };
    assert_states(&only(&run(200, |_| of_graphs(40), &[])), Kind::TinyBatch, &[("batch_size", 1.0)]);
    assert_eq!(all(&run(200, |_| of_graphs(90_000), &[])).found, [], "one graph, but a large one");
}

#[test]
fn a_partial_batch_is_no_spike_and_its_time_is_explained() {
    let plan = |step: u64| {
        let mut plan = MadeUpStep { epoch: step / 3, ..MadeUpStep::default() };
        if step % 3 == 2 {
            plan.phases = vec![("data wait", MS), ("forward", 5 * MS), ("backward", 9 * MS), ("optimizer", 3 * MS)];
            plan.batch = BatchShape { graphs: Some(113), nodes: Some(1582), edges: Some(3164), seeds: None };
        }
        plan
    };
    let partial = only(&run(90, plan, &[]));
    let facts =
        [("partial_batch.count", 29.0), ("steps.count", 87.0), ("partial_batch.p50", 18e6), ("full_batch.p50", 34e6)];
    assert_states(&partial, Kind::PartialBatch, &facts);
    assert_says(&partial, Kind::PartialBatch, &["per 1,000 edges (r = 0.99"]);
    assert_eq!(partial.severity, Severity::Note);
    assert!(steps_of(&partial).iter().all(|step| step % 3 == 2));
}

#[test]
fn waiting_for_data_is_found_and_an_empty_queue_makes_it_certain() {
    let plan = |step: u64| MadeUpStep {
        counter: Some(("queue depth", (step % 8 / 7) as f64)),
        ..with_phase("data wait", 15 * MS)
    };
    let found = only(&run(200, plan, &[]));
    assert_states(
        &found,
        Kind::DataBound,
        &[("data_wait.share", 0.32), ("data_wait.mean", 16e6), ("queue_empty", 0.875)],
    );
    assert_eq!((found.confidence, found.severity), (Confidence::High, Severity::Major));
    let idle = |_| MadeUpStep { counter: Some(("queue depth", 4.0)), ..with_phase("data wait", 15 * MS) };
    assert_eq!(only(&run(200, idle, &[])).confidence, Confidence::Medium);
}

#[test]
fn a_gap_is_found_with_what_step_timers_make_of_it() {
    let plan = |step: u64| {
        let epoch = step / 20;
        let gap_ns = if step.is_multiple_of(20) { 300 * MS } else { 6 * MS };
        MadeUpStep { gap_ns, epoch, ..MadeUpStep::default() }
    };
    let gap = only(&run(200, plan, &[]));
    assert_says(&gap, Kind::Gap, &["outside every phase"]);
    assert_states(&gap, Kind::Gap, &[("between.epoch_start", 299e6), ("timed", 676e6)]);
    let plan = |step: u64| MadeUpStep { gap_ns: if step == 120 { 400 * MS } else { MS }, ..MadeUpStep::default() };
    let once = only(&run(200, plan, &[]));
    assert_states(&once, Kind::Gap, &[("long_gaps", 1.0)]);
    assert_eq!(steps_of(&once), [120]);
}

#[test]
fn steps_that_a_deep_trace_slows_down_are_nothing_to_find() {
    let found = |is_traced| {
        let plan = move |step: u64| match step {
            100..=105 => MadeUpStep { mark_before: Some("deep trace"), is_traced, ..with_phase("forward", 130 * MS) },
            _ => MadeUpStep::default(),
        };
        all(&run(300, plan, &[])).found.into_iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert!(!found(false).is_empty());
    assert_eq!(found(true), []);
}

#[test]
fn marks_are_joined_with_the_time_lost_in_and_between_steps() {
    let plan = |step: u64| match step {
        50 | 150 => MadeUpStep { mark_inside: Some("gc"), ..with_phase("forward", 130 * MS) },
        100 | 200 | 250 => MadeUpStep { mark_before: Some("gc"), gap_ns: 130 * MS, ..MadeUpStep::default() },
        _ => MadeUpStep { mark_before: (step % 25 == 3).then_some("epoch"), ..MadeUpStep::default() },
    };
    let findings = all(&run(300, plan, &[]));
    let stall = findings.found.iter().find(|f| f.kind == Kind::Stall).unwrap();
    assert_says(stall, Kind::Stall, &["\"gc\" costs 1", "2 in steps, 3 between them", "5 of 5 such marks", "garbage"]);
    assert_eq!(
        steps_of(stall),
        [50, 150, 100, 200, 250]
            .map(|n: u64| n)
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
    assert_eq!(findings.found.iter().filter(|f| f.kind == Kind::Stall).count(), 1, "the epochs cost nothing");
}

#[test]
fn on_a_busy_machine_where_many_steps_are_late_a_stall_is_still_one() {
    let plan = |step: u64| match step {
        _ if step.is_multiple_of(25) => MadeUpStep { mark_inside: Some("gc"), ..with_phase("forward", 130 * MS) },
        _ if step.is_multiple_of(4) => with_phase("forward", 40 * MS),
        _ => MadeUpStep::default(),
    };
    let findings = all(&run(300, plan, &[]));
    let stall = findings.found.iter().find(|f| f.kind == Kind::Stall).expect("the stall is named");
    assert_says(stall, Kind::Stall, &["\"gc\" costs 1", "12 of 12 such marks", "0.0 % of the other steps"]);
}

#[test]
fn a_warm_up_is_left_out_of_everything_else() {
    let plan =
        |step: u64| if step <= 6 { with_phase("forward", (200 - 20 * step) * MS) } else { MadeUpStep::default() };
    let found = only(&run(300, plan, &[]));
    assert_states(&found, Kind::WarmUp, &[("warm_up.count", 6.0), ("warm_up.max", 214e6), ("usual", 34e6)]);
    assert_eq!(found.places[0].ordinals, 0..6);
}

#[test]
fn steps_that_get_slower_are_found_with_their_phase() {
    let plan = |step: u64| with_phase("backward", step * MS / 30);
    let found = only(&run(300, plan, &[]));
    assert_states(&found, Kind::Drift, &[("slower", 0.18)]);
    assert_says(&found, Kind::Drift, &["most of it in backward"]);
}

#[test]
fn a_shift_from_phase_to_phase_is_found() {
    let plan = |step: u64| {
        let edges = if step.is_multiple_of(2) { 2000 } else { 8000 };
        MadeUpStep {
            phases: vec![("forward", 10 * MS), ("backward", edges * MS / 400)],
            batch: BatchShape { edges: Some(edges), ..BatchShape::default() },
            ..MadeUpStep::default()
        }
    };
    let found = only(&run(300, plan, &[]));
    assert_says(
        &found,
        Kind::PhaseShift,
        &["from 2,000 to 8,000 edges, backward grows from 33 % to 67 %", "forward falls"],
    );
}

#[test]
fn a_watch_looks_again_only_when_it_is_time() {
    let spiky = TrainingRun { spikes: vec![(50, "forward", 100 * MS)], ..TrainingRun::default() };
    let mut run = Run::default();
    each_item(&spiky.bytes(), |item| run.apply(item));
    let mut watch = Watch::new();
    let found = watch.update(&run).unwrap().findings.found;
    assert!(found.iter().any(|finding| finding.kind == Kind::Spike));
    assert!(watch.update(&run).is_none());
}

#[test]
fn a_mark_at_the_very_end_of_a_step_belongs_to_it() {
    let mut stream = StreamBuilder::new("marks");
    let main = stream.track(gnntop_wire::TrackRole::Training, "main");
    let mut t_ns = START_NS;
    for step in 1..=100 {
        let start_ns = t_ns;
        t_ns += noisy(10 * MS, step) + if step.is_multiple_of(20) { 30 * MS } else { 0 };
        stream.phase(main, step, "forward", start_ns, t_ns);
        if step.is_multiple_of(20) {
            stream.mark(main, "checkpoint", t_ns);
        }
        stream.step(main, step, start_ns, t_ns);
    }
    let findings = all(&store_of(stream));
    let stall = findings.found.iter().find(|f| f.kind == Kind::Stall).unwrap();
    assert_eq!(steps_of(stall), [20, 40, 60, 80, 100]);
    assert_says(stall, Kind::Stall, &["\"checkpoint\" costs", "all in steps", "another thread"]);
}
