//! What steps alone show: their times, batches and marks.

use gnntop_fixtures::session_info;
use gnntop_wire::{BatchShape, Definition, Fact, Origin, SessionInfo, TrackId, TrackRole, Unit};

use super::*;

#[test]
fn clean_runs_have_no_findings() {
    assert_eq!(all_findings(&run(500, |_| StepPlan::default(), &[])).found, []);
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
    assert_eq!(all_findings(&run(500, sized, &readings)).found, []);
}

#[test]
fn too_few_steps_are_not_enough_for_anything() {
    let findings = all_findings(&run(8, |_| StepPlan::default(), &[]));
    assert_eq!(findings.found, []);
    let about_spikes = findings.not_enough.iter().find(|n| n.kind == FindingKind::Spike).unwrap();
    assert_eq!(about_spikes.reason, "only 8 steps: 13 are needed, as the first 3 may warm up");
    assert_eq!(all_findings(&Store::new()).found, []);
}

#[test]
fn spikes_are_found_with_their_phase_also_on_a_slope() {
    let plan = |step: u64| {
        let slope = step * MS / 150; // a third slower at the end
        if step == 77 { with_phase("forward", 80 * MS) } else { with_phase("backward", slope) }
    };
    let findings = all_findings(&run(300, plan, &[]));
    let spike = findings.found.iter().find(|f| f.kind == FindingKind::Spike).unwrap();
    assert_eq!(steps_of(spike), [77]);
    assert_contains(spike, FindingKind::Spike, &["step 77 took "]);
    assert_facts(spike, FindingKind::Spike, &[(Number::Steps, 1.0), (Number::Longest, 114e6)]);
    assert_states_of(spike, "forward", &[(Number::More, 80e6)]);
}

#[test]
fn worst_spike_is_the_first_of_the_places() {
    let plan = |step: u64| match step {
        20 => with_phase("forward", 70 * MS),
        280 => StepPlan::default().with_phase("backward", step * MS / 30).with_phase("forward", 75 * MS),
        _ => with_phase("backward", step * MS / 30),
    };
    let findings = all_findings(&run(300, plan, &[]));
    let spike = findings.found.iter().find(|f| f.kind == FindingKind::Spike).unwrap();
    let longest = &spike.longest_places()[0].sentence;
    assert!(longest.starts_with("step 280 took ") && spike.summary.ends_with(longest.as_str()), "{spike:#?}");
}

#[test]
fn samples_are_not_said_to_be_no_sizes() {
    let plan = |_| StepPlan { batch: BatchShape::default(), counters: vec![("samples", 16.0)], ..StepPlan::default() };
    let reason = |store: &Store| {
        let not_enough = all_findings(store).not_enough;
        not_enough.into_iter().find(|n| n.kind == FindingKind::PartialBatch).unwrap().reason
    };
    assert!(reason(&run(100, plan, &[])).contains("only its samples are known"));
    let none = |_| StepPlan { batch: BatchShape::default(), ..StepPlan::default() };
    assert_eq!(reason(&run(100, none, &[])), "the program does not report batch sizes");
}

#[test]
fn what_came_once_is_no_share_of_the_time() {
    let plan = |step: u64| if step == 77 { with_phase("forward", 900 * MS) } else { StepPlan::default() };
    let once = only(&run(100, plan, &[]));
    assert_eq!((once.kind, once.severity), (FindingKind::Spike, Severity::Minor), "{once:#?}");
    let plan = |step: u64| if step == 77 { with_phase("forward", 2000 * MS) } else { StepPlan::default() };
    assert_eq!(only(&run(100, plan, &[])).severity, Severity::Major, "long");
}

#[test]
fn rollouts_are_no_spikes() {
    let plan = |step: u64| if step % 40 == 7 { with_phase("rollout", 400 * MS) } else { StepPlan::default() };
    let found = all_findings(&run(300, plan, &[])).found;
    assert!(found.iter().all(|it| it.kind != FindingKind::Spike), "{found:#?}");
}

#[test]
fn regular_spikes_report_rhythm() {
    let plan = |step: u64| if step.is_multiple_of(40) { with_phase("backward", 130 * MS) } else { StepPlan::default() };
    let spike = only(&run(400, plan, &[]));
    assert_eq!(steps_of(&spike), (1..=10).map(|n| n * 40).collect::<Vec<u64>>());
    assert_facts(&spike, FindingKind::Spike, &[(Number::Steps, 10.0), (Number::EverySteps, 40.0)]);
    assert_eq!(spike.severity, Severity::Major);
}

#[test]
fn tiny_batch_needs_cost_independent_of_size() {
    let plan = |samples: f64, optimizer: u64| StepPlan {
        phases: vec![("forward", MS), ("backward", 2 * MS), ("optimizer", optimizer)],
        gap_ns: MS / 20,
        batch: BatchShape::default(),
        counters: vec![("samples", samples)],
        ..StepPlan::default()
    };
    let found = only(&run(200, |_| plan(2.0, MS), &[]));
    assert_facts(&found, FindingKind::TinyBatch, &[(Number::BatchSize, 2.0), (Number::OfCompute, 0.25)]);
    assert_eq!(all_findings(&run(200, |_| plan(64.0, MS), &[])).found, [], "a usual batch");
    assert_eq!(all_findings(&run(200, |_| plan(2.0, MS / 5), &[])).found, [], "small, but of much work");
    let of_graphs = |edges| StepPlan {
        batch: BatchShape { graphs: Some(1), nodes: None, edges: Some(edges), seeds: None },
        ..plan(0.0, MS)
    };
    assert_facts(&only(&run(200, |_| of_graphs(40), &[])), FindingKind::TinyBatch, &[(Number::BatchSize, 1.0)]);
    assert_eq!(all_findings(&run(200, |_| of_graphs(90_000), &[])).found, [], "one graph, but a large one");
}

#[test]
fn partial_batch_is_no_spike() {
    let plan = |step: u64| {
        let mut plan = StepPlan { epoch: step / 3, ..StepPlan::default() };
        if step % 3 == 2 {
            plan.phases = vec![("data wait", MS), ("forward", 5 * MS), ("backward", 9 * MS), ("optimizer", 3 * MS)];
            plan.batch = BatchShape { graphs: Some(113), nodes: Some(1582), edges: Some(3164), seeds: None };
        }
        plan
    };
    let partial = only(&run(90, plan, &[]));
    let steps = [(Number::Steps, 29.0), (Number::OfSteps, 87.0), (Number::Correlation, 0.99)];
    assert_facts(&partial, FindingKind::PartialBatch, &steps);
    let times = [(Number::PartialBatch, 18e6), (Number::FullBatch, 34e6)];
    assert_facts(&partial, FindingKind::PartialBatch, &times);
    assert_eq!(partial.severity, Severity::Note);
    assert!(steps_of(&partial).iter().all(|step| step % 3 == 2));
}

#[test]
fn data_bound_is_certain_with_empty_queue() {
    let plan = |step: u64| StepPlan {
        counters: vec![("queue depth", (step % 8 / 7) as f64)],
        ..with_phase("data wait", 15 * MS)
    };
    let found = only(&run(200, plan, &[]));
    assert_facts(
        &found,
        FindingKind::DataBound,
        &[(Number::OfTime, 0.32), (Number::Each, 16e6), (Number::QueueEmpty, 0.875)],
    );
    assert_eq!((found.confidence, found.severity), (Confidence::High, Severity::Major));
    let idle = |_| StepPlan { counters: vec![("queue depth", 4.0)], ..with_phase("data wait", 15 * MS) };
    assert_eq!(only(&run(200, idle, &[])).confidence, Confidence::Medium);
}

#[test]
fn gap_reports_timed_share_and_long_gaps() {
    let plan = |step: u64| {
        let epoch = step / 20;
        let gap_ns = if step.is_multiple_of(20) { 300 * MS } else { 6 * MS };
        StepPlan { gap_ns, epoch, ..StepPlan::default() }
    };
    let gap = only(&run(200, plan, &[]));
    assert_contains(&gap, FindingKind::Gap, &["outside every phase"]);
    assert_facts(
        &gap,
        FindingKind::Gap,
        &[(Number::EpochStart, 299e6), (Number::Timed, 676e6), (Number::FirstSteps, 0.71)],
    );
    assert_eq!(gap.advice, ["do less at the start of each epoch"]);
    let plan = |step: u64| StepPlan { gap_ns: if step == 120 { 400 * MS } else { MS }, ..StepPlan::default() };
    let once = only(&run(200, plan, &[]));
    assert_facts(&once, FindingKind::Gap, &[(Number::LongGaps, 1.0)]);
    assert_eq!(steps_of(&once), [120]);
}

#[test]
fn traced_steps_give_no_findings() {
    let found = |is_traced| {
        let plan = move |step: u64| match step {
            100..=105 => StepPlan { mark_before: Some("deep trace"), is_traced, ..with_phase("forward", 130 * MS) },
            _ => StepPlan::default(),
        };
        all_findings(&run(300, plan, &[])).found.into_iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert!(!found(false).is_empty());
    assert_eq!(found(true), []);
}

#[test]
fn stalls_at_marks_inside_and_between_steps() {
    let plan = |step: u64| match step {
        50 | 150 => StepPlan { mark_inside: Some("gc"), ..with_phase("forward", 130 * MS) },
        100 | 200 | 250 => StepPlan { mark_before: Some("gc"), gap_ns: 130 * MS, ..StepPlan::default() },
        _ => StepPlan { mark_before: (step % 25 == 3).then_some("epoch"), ..StepPlan::default() },
    };
    let findings = all_findings(&run(300, plan, &[]));
    let stall = findings.found.iter().find(|f| f.kind == FindingKind::Stall).unwrap();
    assert_contains(stall, FindingKind::Stall, &["\"gc\" costs 1", "garbage"]);
    let marks = [(Number::Inside, 2.0), (Number::Outside, 3.0), (Number::Costly, 5.0), (Number::Times, 5.0)];
    assert_facts(stall, FindingKind::Stall, &marks);
    assert_eq!(steps_of(stall), [50, 100, 150, 200, 250]);
    assert_eq!(findings.found.iter().filter(|f| f.kind == FindingKind::Stall).count(), 1, "the epochs cost nothing");
}

#[test]
fn stall_is_found_on_busy_machine() {
    let plan = |step: u64| match step {
        _ if step.is_multiple_of(25) => StepPlan { mark_inside: Some("gc"), ..with_phase("forward", 130 * MS) },
        _ if step.is_multiple_of(4) => with_phase("forward", 40 * MS),
        _ => StepPlan::default(),
    };
    let findings = all_findings(&run(300, plan, &[]));
    let stall = findings.found.iter().find(|f| f.kind == FindingKind::Stall).expect("the stall is named");
    let numbers = [(Number::Costly, 12.0), (Number::Times, 12.0), (Number::AsLongElsewhere, 0.0)];
    assert_facts(stall, FindingKind::Stall, &numbers);
}

#[test]
fn warm_up_is_excluded_from_other_checks() {
    let plan = |step: u64| if step <= 6 { with_phase("forward", (200 - 20 * step) * MS) } else { StepPlan::default() };
    let found = only(&run(300, plan, &[]));
    assert_facts(&found, FindingKind::WarmUp, &[(Number::Steps, 6.0), (Number::Longest, 214e6), (Number::Usual, 34e6)]);
    assert_eq!(found.places[0].ordinals, 0..6);
}

#[test]
fn steps_that_get_slower_are_found_with_their_phase() {
    let plan = |step: u64| with_phase("backward", step * MS / 30);
    let found = only(&run(300, plan, &[]));
    assert_facts(&found, FindingKind::Drift, &[(Number::Slower, 0.18)]);
    assert_states_of(&found, "backward", &[(Number::More, 6.6e6)]);
}

#[test]
fn steps_that_get_slower_for_another_reason_than_preemptions_are_found() {
    let plan = |step: u64| {
        let mut plan = with_phase("backward", step * MS / 30);
        plan.usage.get_or_insert_default().involuntary_switches = step / 75;
        plan
    };
    let found = |share: Option<f64>| {
        let waits =
            share.map(|share| counted("process.main_thread.cpu_wait", Unit::Nanoseconds, move |t| t * share * 1e9));
        let mut stream = stream(300, plan, waits.as_slice());
        // The main thread, whose wait is measured.
        stream.define(Definition::Track {
            id: TrackId(1),
            role: TrackRole::Training,
            thread_id: 0,
            text: "main".into(),
        });
        all_findings(&store_of(stream)).found.iter().any(|finding| finding.kind == FindingKind::Drift)
    };
    assert!(!found(None), "they may be why");
    assert!(found(Some(0.02)), "they cost no more than 2 %");
}

#[test]
fn steps_that_get_slower_beside_other_programs_for_seconds_say_nothing() {
    let found = |busy: f64| {
        let cores = |name, cores: f64| counted(name, Unit::Nanoseconds, move |t| t * cores * 1e9);
        let readings = [cores("machine.cpu.busy", busy), cores("process.cpu_time", 1.0)];
        let found = all_findings(&run(300, |step| with_phase("backward", step * MS / 30), &readings)).found;
        found.iter().any(|finding| finding.kind == FindingKind::Drift)
    };
    assert_eq!([found(1.1), found(2.0)], [true, false]);
}

#[test]
fn a_shift_from_phase_to_phase_is_found() {
    let plan = |step: u64| {
        let edges = if step.is_multiple_of(2) { 2000 } else { 8000 };
        StepPlan {
            phases: vec![("forward", 10 * MS), ("backward", edges * MS / 400)],
            batch: BatchShape { edges: Some(edges), ..BatchShape::default() },
            ..StepPlan::default()
        }
    };
    let found = only(&run(300, plan, &[]));
    assert_facts(&found, FindingKind::PhaseShift, &[(Number::From, 2000.0), (Number::To, 8000.0)]);
    assert_states_of(&found, "backward", &[(Number::From, 0.333), (Number::To, 0.667)]);
    assert_states_of(&found, "forward", &[(Number::From, 0.667), (Number::To, 0.333)]);
}

#[test]
fn watch_update_waits_for_interval() {
    let spiky = TrainingRun { spikes: vec![(50, "forward", 100 * MS)], ..TrainingRun::default() };
    let mut run = Run::default();
    each_item(&spiky.bytes(), |item| run.apply(item));
    let mut watch = Watch::new();
    let found = watch.update(&run).unwrap().findings.found;
    assert!(found.iter().any(|finding| finding.kind == FindingKind::Spike));
    assert!(watch.update(&run).is_none());
}

#[test]
fn mark_at_step_end_belongs_to_step() {
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
    let findings = all_findings(&store_of(stream));
    let stall = findings.found.iter().find(|f| f.kind == FindingKind::Stall).unwrap();
    assert_eq!(steps_of(stall), [20, 40, 60, 80, 100]);
    assert_contains(stall, FindingKind::Stall, &["\"checkpoint\" costs", "all in steps", "another thread"]);
}

#[test]
fn means_of_several_steps_say_nothing_of_single_ones() {
    let found = |mean_of: u64, steps: u64| {
        let mut stream = stream(steps, |step| with_phase("forward", if step / 10 == 7 { 80 * MS } else { 0 }), &[]);
        stream.define(Definition::Fact(Fact::MeanOfSteps(mean_of)));
        all_findings(&store_of(stream))
    };
    assert!(found(1, 300).found.iter().any(|finding| finding.kind == FindingKind::Spike));
    let means = found(10, 700);
    assert!(means.found.iter().all(|finding| finding.kind != FindingKind::Spike), "{means:#?}");
    let reason =
        |findings: &Findings, kind| findings.not_enough.iter().find(|n| n.kind == kind).unwrap().reason.clone();
    assert_eq!(reason(&means, FindingKind::Spike), "there is one mean time for every 10 steps");
    assert_eq!(reason(&found(10, 300), FindingKind::Drift), "only 29 means of 10 steps each: 60 are needed");
}

#[test]
fn validation_before_a_slow_step_is_not_what_it_took() {
    let plan = |step: u64| {
        let mut plan = with_phase("forward", if step == 77 { 30 * MS } else { 0 });
        plan.phases.insert(0, ("validation", if step == 77 { 90 * MS } else { 0 }));
        plan
    };
    let spike = only(&run(100, plan, &[]));
    assert!(spike.summary.contains("of its period of ") && spike.summary.ends_with(" more in forward"), "{spike:#?}");
}

#[test]
fn validation_with_gradients_is_known_by_its_forward_passes() {
    let found = |origin: Origin, [fetches, is_phase, micro_batches]: [bool; 3]| {
        let mut stream = StreamBuilder::from_info(&SessionInfo { origin, ..session_info("judges") });
        let main = stream.track(TrackRole::Training, "main");
        let mut end_ns = START_NS;
        for step in 0..200 {
            let start_ns = end_ns;
            let mut pass = |phase: &str, ns: u64| {
                let begin_ns = end_ns;
                end_ns += noisy(ns, step);
                stream.phase(main, step, phase, begin_ns, end_ns);
                end_ns
            };
            let runs = if step % 20 == 7 { 40 } else { 0 };
            for _ in 0..runs {
                if fetches {
                    pass("data wait", MS);
                }
                pass("forward", 10 * MS);
                if micro_batches {
                    pass("backward", MS);
                }
            }
            let judged_ns = pass("forward", 10 * MS);
            let stepped_ns = pass("backward", 20 * MS);
            if is_phase && runs > 0 {
                stream.phase(main, step, "validation", start_ns, judged_ns);
            }
            stream.step(main, step, start_ns, stepped_ns);
        }
        all_findings(&store_of(stream)).found
    };
    let validation = |found: Vec<Finding>| found.into_iter().find(|finding| finding.kind == FindingKind::Validation);
    let python = validation(found(Origin::Python, [true, false, false])).unwrap();
    assert_facts(
        &python,
        FindingKind::Validation,
        &[(Number::Steps, 10.0), (Number::ModelRuns, 41.0), (Number::UsualModelRuns, 1.0)],
    );
    assert!(python.advice[0].contains("torch.no_grad()") && python.share.unwrap() > 0.3, "{python:#?}");
    let spike =
        found(Origin::Python, [true, false, false]).into_iter().find(|finding| finding.kind == FindingKind::Spike);
    assert!(spike.is_none_or(|spike| spike.advice == ["see to validation first"]));
    assert!(validation(found(Origin::Probe, [true, false, false])).unwrap().advice[0].contains("a phase `validation`"));
    for other in [[true, true, false], [true, false, true], [false, false, false]] {
        let other = validation(found(Origin::Python, other));
        assert!(other.is_none_or(|it| it.confidence == Confidence::High), "a phase, micro-batches, or experience");
    }
}
