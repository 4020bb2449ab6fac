//! What the machine shows: faults, switches, signals, losses.

use gnntop_wire::{
    AnyMetric, Definition, Event, Fact, Item, NameId, PhaseMemory, Rival, SignalId, SignalKind, SignalSource, TrackId,
    TrackRole, Unit,
};

use super::*;
use gnntop_fixtures::SECOND;

#[test]
fn page_faults_cost_no_more_than_the_time_in_the_kernel() {
    let plan = |step: u64| {
        let mut plan = if step.is_multiple_of(50) { with_phase("forward", 90 * MS) } else { StepPlan::default() };
        plan.usage.get_or_insert_default().minor_faults = if step.is_multiple_of(50) { 9_000 } else { 20 };
        plan
    };
    let kinds = |system: fn(f64) -> f64| {
        let kernel = [counted("process.cpu_time.system", Unit::Nanoseconds, system)];
        let found = all_findings(&run(300, plan, &kernel)).found;
        found.iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(|t| t * 19e6)[0], FindingKind::Spike, "they came with the time");
    assert_eq!(kinds(|t| t * 3e8)[0], FindingKind::PageFaults);
}

#[test]
fn a_page_fault_storm_is_found_with_its_cost() {
    let plan = |step: u64| {
        let mut plan = if step.is_multiple_of(50) { with_phase("forward", 12 * MS) } else { StepPlan::default() };
        plan.usage.get_or_insert_default().minor_faults = if step.is_multiple_of(50) { 40_000 } else { 20 };
        plan
    };
    let storm = only(&run(300, plan, &[]));
    let numbers = [(Number::Steps, 6.0), (Number::PageFaults, 240_000.0), (Number::UsualFaults, 20.0)];
    assert_facts(&storm, FindingKind::PageFaults, &numbers);
    assert_facts(&storm, FindingKind::PageFaults, &[(Number::Each, 300.0)]);
    let readings = [
        counted("machine.pressure.memory.some", Unit::Nanoseconds, |t| t * 2e8),
        counted("process.faults.major", Unit::Count, |t| t * 50.0),
    ];
    let reclaim = only(&run(300, |_| StepPlan::default(), &readings));
    assert_facts(&reclaim, FindingKind::PageFaults, &[(Number::OfTime, 0.2)]);
}

#[test]
fn faults_cost_no_more_than_faults_can() {
    let plan = |step: u64| {
        let mut plan = if step.is_multiple_of(50) { with_phase("forward", 90 * MS) } else { StepPlan::default() };
        plan.usage.get_or_insert_default().minor_faults = if step.is_multiple_of(50) { 3_000 } else { 20 };
        plan
    };
    let kernel = [counted("process.cpu_time.system", Unit::Nanoseconds, |t| t * 5e8)];
    let found = all_findings(&run(300, plan, &kernel)).found;
    assert!(found.iter().all(|finding| finding.kind != FindingKind::PageFaults), "15 ms of 90: {found:#?}");
}

#[test]
fn a_page_from_a_disk_costs_no_more_than_a_slow_disk_takes() {
    let found = |more_ms: u64| {
        let plan = |step: u64| {
            let mut plan =
                if step.is_multiple_of(50) { with_phase("forward", more_ms * MS) } else { StepPlan::default() };
            let usage = plan.usage.get_or_insert_default();
            (usage.minor_faults, usage.major_faults) = if step.is_multiple_of(50) { (3_000, 1) } else { (20, 0) };
            plan
        };
        let found = all_findings(&run(300, plan, &[])).found;
        found.into_iter().find(|finding| finding.kind == FindingKind::PageFaults)
    };
    assert_facts(&found(30).unwrap(), FindingKind::PageFaults, &[(Number::Steps, 6.0)]);
    assert_eq!(found(2_000), None, "35 ms of 2 s: it waits for something else");
}

#[test]
fn memory_that_other_processes_wait_for_is_not_this_ones() {
    let found = |major: Option<f64>| {
        let pressure = counted("machine.pressure.memory.some", Unit::Nanoseconds, |t| t * 2e8);
        let faults = major.map(|major| counted("process.faults.major", Unit::Count, move |t| t * major));
        let readings: Vec<Reading> = std::iter::once(pressure).chain(faults).collect();
        all_findings(&run(300, |_| StepPlan::default(), &readings)).found.len()
    };
    assert_eq!([found(Some(0.1)), found(Some(40.0)), found(None)], [0, 1, 0]);
}

#[test]
fn faults_that_come_with_other_work_of_the_kernel_are_no_churn() {
    let plan = |_| {
        let mut plan = StepPlan::default();
        plan.usage.get_or_insert_default().minor_faults = 1_000;
        plan
    };
    let found = |kernel: f64| {
        let cpu = |name, share: f64| counted(name, Unit::Nanoseconds, move |t| t * share * 1e9);
        let readings = [cpu("process.cpu_time", 0.6), cpu("process.cpu_time.system", kernel)];
        all_findings(&run(300, plan, &readings)).found.iter().any(|it| it.kind == FindingKind::AllocationChurn)
    };
    assert_eq!([found(0.12), found(0.22), found(0.5)], [true, false, false], "processes that are started cost more");
}

#[test]
fn denormals_are_claimed_only_where_they_are_counted() {
    let slow = |step: u64| if step.is_multiple_of(3) { with_phase("forward", 4 * MS) } else { StepPlan::default() };
    let not_counted = all_findings(&run(300, slow, &[]));
    assert!(not_counted.found.is_empty() && not_counted.not_enough.iter().any(|n| n.kind == FindingKind::Denormals));
    let counted = |step: u64| StepPlan {
        counters: vec![("denormals", if step.is_multiple_of(3) { 5e4 } else { 0.0 })],
        ..slow(step)
    };
    let found = only(&run(300, counted, &[]));
    assert_facts(&found, FindingKind::Denormals, &[(Number::More, 3.9e6), (Number::Correlation, 0.97)]);
}

#[test]
fn denormal_gradients_are_a_finding_where_the_processor_is_slower_with_them() {
    let sampled = |share: f64, cost: f64| {
        move |step: u64| match step % 20 {
            7 => StepPlan {
                counters: vec![
                    ("denormal gradients in a million", share * 1e6),
                    ("cost of denormals in percent", cost * 100.0),
                ],
                ..StepPlan::default()
            },
            _ => StepPlan::default(),
        }
    };
    let found = only(&run(300, sampled(0.08, 30.0), &[]));
    let numbers = [(Number::DenormalGradients, 0.08), (Number::Ratio, 30.0), (Number::Times, 15.0)];
    assert_facts(&found, FindingKind::Denormals, &numbers);
    for (share, cost) in [(0.002, 30.0), (0.08, 1.1)] {
        let outcome = all_findings(&run(300, sampled(share, cost), &[]));
        assert!(outcome.found.is_empty() && !outcome.not_enough.iter().any(|n| n.kind == FindingKind::Denormals));
    }
    assert!(all_findings(&run(40, sampled(0.08, 30.0), &[])).found.is_empty(), "two samples are too few");
}

#[test]
fn contention_needs_pressure_and_preemptions() {
    let taken = |step: u64| {
        let mut plan = if step.is_multiple_of(2) { with_phase("backward", 10 * MS) } else { StepPlan::default() };
        plan.usage.get_or_insert_default().involuntary_switches = if step.is_multiple_of(2) { 12 } else { 0 };
        plan
    };
    let pressed = [counted("machine.pressure.cpu.some", Unit::Nanoseconds, |t| t * 6e8)];
    let found = only(&run(300, taken, &pressed));
    let numbers = [(Number::PreemptionsPerS, 152.0), (Number::Pressure, 0.6), (Number::Otherwise, 34e6)];
    assert_facts(&found, FindingKind::Contention, &numbers);
    let calm = [counted("machine.pressure.cpu.some", Unit::Nanoseconds, |t| t * 1e7)];
    assert_eq!(all_findings(&run(300, taken, &calm)).found, []);
    let steal = [counted("machine.cpu.steal", Unit::Nanoseconds, |t| t * 2e8)];
    let stolen = only(&run(300, |_| StepPlan::default(), &steal));
    assert_facts(&stolen, FindingKind::Contention, &[(Number::OfTime, 0.2)]);
}

#[test]
fn preemptions_cost_at_most_the_wait_that_is_measured() {
    let taken = |step: u64| {
        let mut plan = if step.is_multiple_of(2) { with_phase("backward", 10 * MS) } else { StepPlan::default() };
        plan.usage.get_or_insert_default().involuntary_switches = if step.is_multiple_of(2) { 12 } else { 0 };
        plan
    };
    let pressed = || counted("machine.pressure.cpu.some", Unit::Nanoseconds, |t| t * 9e8);
    let waits = |share: f64| counted("process.main_thread.cpu_wait", Unit::Nanoseconds, move |t| t * share * 1e9);
    let found = |share| {
        let mut stream = stream(300, taken, &[pressed(), waits(share)]);
        // The main thread, whose wait is measured.
        let main = Definition::Track { id: TrackId(1), role: TrackRole::Training, thread_id: 0, text: "main".into() };
        stream.define(main);
        all_findings(&store_of(stream)).found
    };
    assert!(found(0.04).iter().all(|finding| finding.kind != FindingKind::Contention), "{:#?}", found(0.04));
    assert_facts(&found(0.3)[0], FindingKind::Contention, &[(Number::OfTime, 0.3)]);
}

#[test]
fn contention_that_takes_most_of_the_time_leads_the_verdict() {
    let plan = |_| StepPlan { phases: vec![("forward", MS), ("backward", 40 * MS)], ..StepPlan::default() };
    let waits = |share: f64| [counted("process.main_thread.cpu_wait", Unit::Nanoseconds, move |t| t * share * 1e9)];
    let verdict = |share| judge_newest(&run(300, plan, &waits(share))).to_string();
    assert!(verdict(0.8).starts_with("CPU contention (80 %, in all phases); backward-bound"), "{}", verdict(0.8));
    let some = verdict(0.3);
    assert!(some.starts_with("CPU contention (30 %, in all phases); backward-bound"), "backward is no fault: {some}");
}

#[test]
fn contention_names_rivals() {
    let readings = [
        counted("machine.pressure.cpu.some", Unit::Nanoseconds, |t| t * 6e8),
        counted("process.main_thread.cpu_wait", Unit::Nanoseconds, |t| t * 2e8),
        counted("process.cpu_time", Unit::Nanoseconds, |t| t * 1e9),
        counted("machine.cpu.busy", Unit::Nanoseconds, |t| t * 3e9),
    ];
    let unnamed = run(300, |_| StepPlan::default(), &readings);
    assert_contains(&only(&unnamed), FindingKind::Contention, &["see what else runs on the machine (top)"]);
    assert_facts(&only(&unnamed), FindingKind::Contention, &[(Number::OtherCores, 2.0), (Number::Cores, 1.0)]);
    let mut store = unnamed.clone();
    let mut stream = StreamBuilder::new("x");
    let sensors = TrackId(77);
    stream.define(Definition::Track { id: sensors, role: TrackRole::Sensors, thread_id: 0, text: "sensors".into() });
    let mut rival = |id, text: &str, pid, t_ns, cores| {
        stream.define(Definition::Name { id: NameId(id), kind: NameKind::Text, text: text.to_owned() });
        stream.event(sensors, Event::Rival(Rival { name: NameId(id), t_ns, pid, cores }));
    };
    let middle_ns = store.now_ns() - store.elapsed_ns() / 2;
    rival(900, "backup", Some(5), middle_ns, 0.3);
    rival(901, "cc1plus", None, middle_ns + MS, 1.4);
    rival(901, "cc1plus", None, middle_ns + 2 * MS, 1.6);
    each_item(&stream.bytes(), |item| {
        if !matches!(item, Item::Segment(_)) {
            store.apply(item)
        }
    });
    assert_contains(&only(&store), FindingKind::Contention, &["end or move the other process"]);
    assert_states_of(&only(&store), "other processes: cc1plus", &[(Number::Cores, 1.5)]);
    assert_states_of(&only(&store), "other process: backup (pid 5)", &[(Number::Cores, 0.3)]);
    assert_eq!((store.marks().iter().len(), store.rivals().iter().len()), (0, 3), "they are no marks of the program");
}

#[test]
fn contention_names_the_limit_of_the_control_group() {
    let readings = [
        counted("process.main_thread.cpu_wait", Unit::Nanoseconds, |t| t * 4e8),
        counted("process.cpu_time", Unit::Nanoseconds, |t| t * 1.5e9),
        counted("machine.cpu.busy", Unit::Nanoseconds, |t| t * 6e9),
        gauge("allotted.cpu.quota", Unit::MilliPercent, |_| 150e3),
        counted("allotted.cpu.periods", Unit::Count, |t| t * 10.0),
        counted("allotted.cpu.throttled_periods", Unit::Count, |t| t * 8.0),
    ];
    let found = only(&run(300, |_| StepPlan::default(), &readings));
    let numbers = [(Number::OfTime, 0.4), (Number::ThrottledPeriods, 0.8), (Number::QuotaCores, 1.5)];
    assert_facts(&found, FindingKind::Contention, &numbers);
    assert_contains(&found, FindingKind::Contention, &["raise the CPU limit of the container or job"]);
}

#[test]
fn contention_names_the_programs_own_threads() {
    let readings = [
        counted("process.main_thread.cpu_wait", Unit::Nanoseconds, |t| t * 4e8),
        counted("process.cpu_time", Unit::Nanoseconds, |t| t * 1.9e9),
        counted("machine.cpu.busy", Unit::Nanoseconds, |t| t * 2e9),
        counted("machine.cpu.0.busy", Unit::Nanoseconds, |t| t * 1e9),
        counted("machine.cpu.1.busy", Unit::Nanoseconds, |t| t * 1e9),
        gauge("process.threads", Unit::Count, |_| 32.0),
    ];
    let found = only(&run(300, |_| StepPlan::default(), &readings));
    assert_facts(&found, FindingKind::Contention, &[(Number::Threads, 32.0), (Number::MachineCores, 2.0)]);
    assert_contains(&found, FindingKind::Contention, &["use fewer threads (OMP_NUM_THREADS"]);
}

#[test]
fn contention_names_loader_workers() {
    let readings = [
        counted("process.main_thread.cpu_wait", Unit::Nanoseconds, |t| t * 4e8),
        counted("process.cpu_time", Unit::Nanoseconds, |t| t * 0.6e9),
        counted("machine.cpu.busy", Unit::Nanoseconds, |t| t * 2e9),
    ];
    let mut store = run(300, |_| StepPlan::default(), &readings);
    let mut stream = StreamBuilder::new("x");
    for worker in 0..4 {
        let (id, text) = (TrackId(80 + worker), format!("worker {worker}"));
        stream.define(Definition::Track { id, role: TrackRole::Loader, thread_id: 0, text });
    }
    stream.define(Definition::Fact(Fact::ComputeThreads(2)));
    each_item(&stream.bytes(), |item| {
        if !matches!(item, Item::Segment(_)) {
            store.apply(item)
        }
    });
    let numbers = [(Number::Loaders, 4.0), (Number::OtherCores, 1.4), (Number::Threads, 2.0)];
    assert_facts(&only(&store), FindingKind::Contention, &numbers);
    assert_contains(&only(&store), FindingKind::Contention, &["use fewer loader workers"]);
}

#[test]
fn gpu_findings_need_used_gpu() {
    let idle = [gauge("gpu.0.util", Unit::MilliPercent, |t| if (t * 3.0).sin() > 0.0 { 80e3 } else { 10e3 })];
    let found = only(&run(300, |_| StepPlan::default(), &idle));
    assert_facts(&found, FindingKind::GpuIdle, &[(Number::Gpu, 0.0), (Number::OfTime, 0.55)]);
    assert_states_of(&found, "backward", &[(Number::OfTime, 0.58)]);
    let unused = [gauge("gpu.0.util", Unit::MilliPercent, |_| 0.0)];
    assert_eq!(all_findings(&run(300, |_| StepPlan::default(), &unused)).found, []);
    let hot = [
        gauge("gpu.0.util", Unit::MilliPercent, |_| 99e3),
        gauge("gpu.0.throttle", Unit::Bits, |t| if t > 5.0 { 64.0 } else { 0.0 }),
        gauge("gpu.0.clock.sm", Unit::Megahertz, |t| if t > 5.0 { 1200.0 } else { 1980.0 }),
    ];
    let found = only(&run(300, |_| StepPlan::default(), &hot));
    assert_contains(&found, FindingKind::GpuThrottled, &["mostly by heat (hardware slowdown)"]);
    let clocks = [(Number::LowClock, 1.2e9), (Number::HighClock, 1.98e9)];
    assert_facts(&found, FindingKind::GpuThrottled, &clocks);
    let [util, _, clock] = hot;
    assert_facts(&only(&run(300, |_| StepPlan::default(), &[util, clock])), FindingKind::GpuThrottled, &clocks);
}

#[test]
fn a_lower_clock_of_the_cpu_is_named_if_steps_are_slower_with_it() {
    /// When it falls, which is after 1,000 steps.
    const HOT_S: f64 = 34.5;
    let found = |hot_mhz: f64, slower_ms: u64, hot_cores: f64| {
        let plan = |step| if step > 1000 { with_phase("forward", slower_ms * MS) } else { StepPlan::default() };
        let clock = move |t| if t > HOT_S { hot_mhz } else { 3600.0 };
        let used = move |t: f64| (t.min(HOT_S) + (t - HOT_S).max(0.0) * hot_cores) * 1e9;
        let readings = [
            gauge("process.main_thread.clock", Unit::Megahertz, clock),
            counted("process.cpu_time", Unit::Nanoseconds, used),
        ];
        all_findings(&run(2000, plan, &readings))
            .found
            .into_iter()
            .find(|finding| finding.kind == FindingKind::CpuClock)
    };
    let falls = found(2400.0, 10, 1.0).unwrap();
    assert_facts(&falls, FindingKind::CpuClock, &[(Number::From, 3.6e9), (Number::To, 2.4e9), (Number::Slower, 0.29)]);
    assert_contains(&falls, FindingKind::CpuClock, &["falls from 3.60 GHz to 2.40 GHz, and steps take 29 % longer"]);
    assert_eq!(found(2400.0, 0, 1.0), None, "steps are not slower");
    assert_eq!(found(3500.0, 10, 1.0), None, "it has not fallen");
    assert_eq!(found(2400.0, 10, 2.0), None, "more cores have a lower clock");
}

#[test]
fn main_thread_on_another_numa_node_than_its_gpu_is_possible_trouble() {
    let node = |name: &'static str, node: f64| gauge(name, Unit::Count, move |_| node);
    let found = |readings: &[Reading]| all_findings(&run(300, |_| StepPlan::default(), readings)).found;
    let far = found(&[node("process.main_thread.numa_node", 1.0), node("gpu.0.numa_node", 0.0)]);
    assert_contains(&far[0], FindingKind::Numa, &["on another NUMA node than GPU 0", "--cpunodebind=0"]);
    let near = [node("process.main_thread.numa_node", 0.0), node("gpu.0.numa_node", 0.0)];
    assert_eq!(found(&near), []);
    let of_two = |memory: f64| {
        found(&[
            node("process.main_thread.numa_node", 1.0),
            node("gpu.0.numa_node", 0.0),
            node("gpu.1.numa_node", 1.0),
            gauge("gpu.1.process.memory", Unit::Bytes, move |_| memory),
        ])
    };
    assert_eq!((of_two(1e9), of_two(0.0)), (vec![], vec![]), "the program's GPU is near, or not known");
}

#[test]
fn contention_compares_with_least_disturbed_steps() {
    let pressed = [counted("machine.pressure.cpu.some", Unit::Nanoseconds, |t| t * 9e8)];
    let taken = |spared: u64| {
        move |step: u64| {
            let is_spared = step.is_multiple_of(10) && step <= 10 * spared;
            let mut plan = if is_spared { StepPlan::default() } else { with_phase("backward", 12 * MS) };
            plan.usage.get_or_insert_default().involuntary_switches = if is_spared { 3 } else { 40 };
            plan
        }
    };
    let found = only(&run(300, taken(30), &pressed));
    assert_facts(&found, FindingKind::Contention, &[(Number::Preemptions, 10.0), (Number::Otherwise, 34e6)]);
    assert!(found.share.is_some_and(|share| (0.15..0.35).contains(&share)), "{found:?}");
    let found = only(&run(300, taken(5), &pressed));
    assert_eq!(found.share, None, "without steps to compare with, the cost is unknown");
}

#[test]
fn memory_growth_ignores_levelling_memory() {
    let leak = [gauge("process.rss", Unit::Bytes, |t| 5e8 + t * 2e7)];
    let found = only(&run(300, |_| StepPlan::default(), &leak));
    assert_contains(&found, FindingKind::MemoryGrowth, &["resident memory grows from"]);
    assert_facts(&found, FindingKind::MemoryGrowth, &[(Number::BytesPerStep, 690e3)]);
    let level = [gauge("process.rss", Unit::Bytes, |t| 5e8 + 2e8 * (1.0 - (-t).exp()))];
    assert_eq!(all_findings(&run(300, |_| StepPlan::default(), &level)).found, []);
}

#[test]
fn allocation_churn_needs_faults_and_time_in_the_kernel() {
    let plan = |_| {
        let mut plan = StepPlan::default();
        plan.usage.get_or_insert_default().minor_faults = 5000;
        plan
    };
    let readings = |system: fn(f64) -> f64| {
        [
            counted("process.cpu_time", Unit::Nanoseconds, |t| t * 1e9),
            counted("process.cpu_time.system", Unit::Nanoseconds, system),
        ]
    };
    let found = only(&run(300, plan, &readings(|t| t * 3e8)));
    assert_facts(&found, FindingKind::AllocationChurn, &[(Number::UsualFaults, 5000.0), (Number::InKernel, 0.3)]);
    assert_contains(&found, FindingKind::AllocationChurn, &["MALLOC_TRIM_THRESHOLD_=", "LD_PRELOAD"]);
    assert_eq!(all_findings(&run(300, plan, &readings(|t| t * 3e7))).found, []);
}

#[test]
fn allocation_churn_claims_what_faults_can_cost() {
    let found = |faults: u64, cores: f64, kernel: f64| {
        let plan = move |_| {
            let mut plan = StepPlan::default();
            plan.usage.get_or_insert_default().minor_faults = faults;
            plan
        };
        let cpu = counted("process.cpu_time", Unit::Nanoseconds, move |t| t * cores * 1e9);
        let system = counted("process.cpu_time.system", Unit::Nanoseconds, move |t| t * kernel * 1e9);
        all_findings(&run(300, plan, &[cpu, system])).found
    };
    assert_eq!(found(600, 1.0, 0.5), [], "17,000 faults a second take a tenth of a core at most");
    assert_eq!(found(2000, 1.0, 0.5), [], "58,000 take 0.29 of one at most: the kernel does something else");
    let [bound] = &found(2000, 1.0, 0.25)[..] else { panic!("not found") };
    assert_facts(bound, FindingKind::AllocationChurn, &[(Number::InKernel, 0.25)]);
    let [of_threads] = &found(50_000, 4.0, 1.2)[..] else { panic!("not found") };
    assert!((of_threads.share.unwrap() - 0.3).abs() < 0.01, "four threads at once: {of_threads:#?}");
}

#[test]
fn stuck_energy_counter_is_doubtful() {
    // Microjoules of about 100 W, which the counter shows only every half second.
    let jumps =
        [counted("gpu.0.energy", Unit::Microjoules, |t| (t * 2.0).floor() * 50e6 + (t * 2.0).floor().sin() * 3e6)];
    let found = only(&run(300, |_| StepPlan::default(), &jumps));
    assert_contains(&found, FindingKind::DoubtfulEnergy, &["gpu.0.energy does not change"]);
    assert_facts(&found, FindingKind::DoubtfulEnergy, &[(Number::Still, 0.81), (Number::Longest, 465e6)]);
    let moves = [counted("gpu.0.energy", Unit::Microjoules, |t| t * 100e6 + (t * 3.0).sin() * 20e6)];
    assert_eq!(all_findings(&run(300, |_| StepPlan::default(), &moves)).found, []);
}

#[test]
fn proportional_energy_counters_are_doubtful() {
    fn package(t: f64) -> f64 {
        t * 100e6 + (t * 3.0).sin() * 20e6
    }
    let copied = [
        counted("cpu.0.energy", Unit::Microjoules, package),
        counted("dram.0.energy", Unit::Microjoules, |t| package(t) * 0.25),
    ];
    let found = only(&run(300, |_| StepPlan::default(), &copied));
    assert_contains(&found, FindingKind::DoubtfulEnergy, &["dram.0.energy is always 0.2500 x cpu.0.energy"]);
    assert_facts(&found, FindingKind::DoubtfulEnergy, &[(Number::Ratio, 0.25)]);
    let apart = [
        counted("cpu.0.energy", Unit::Microjoules, package),
        counted("dram.0.energy", Unit::Microjoules, |t| package(t) * 0.25 + (t * 5.0).cos() * 2e6),
    ];
    assert_eq!(all_findings(&run(300, |_| StepPlan::default(), &apart)).found, []);
}

#[test]
fn energy_at_constant_power_is_taken_for_modelled() {
    let model = [counted("cpu.energy", Unit::Microjoules, |t| t * 360e6)];
    let found = only(&run(300, |_| StepPlan::default(), &model));
    assert_facts(&found, FindingKind::ModelledEnergy, &[(Number::Power, 360.0)]);
    let measured = [counted("cpu.energy", Unit::Microjoules, |t| t * 100e6 + 4e6 * (t * 2.0).sin())];
    assert_eq!(all_findings(&run(300, |_| StepPlan::default(), &measured)).found, []);
}

#[test]
fn aliasing_of_readings_is_found() {
    let mut stream = StreamBuilder::new("in step");
    let (main, sensors) = (stream.track(TrackRole::Training, "main"), stream.track(TrackRole::Sensors, "sensors"));
    let util = stream.signal("gpu.0.util", Unit::MilliPercent, SignalKind::Gauge);
    for step in 1..=100 {
        let start_ns = START_NS + step * SECOND / 10;
        stream.phase(main, step, "forward", start_ns, start_ns + 99 * MS);
        stream.step(main, step, start_ns, start_ns + 99 * MS);
        stream.sample(sensors, util, start_ns + 30 * MS, 90_000 + (step % 5) as i64 * 1000);
    }
    let numbers = [(Number::AtPart, 0.31), (Number::ReadingsApart, 100e6)];
    assert_facts(&only(&store_of(stream)), FindingKind::Aliasing, &numbers);
}

#[test]
fn phases_inside_evaluation_do_not_overlap() {
    let mut stream = StreamBuilder::new("evaluates");
    let main = stream.track(TrackRole::Training, "main");
    for step in 1..=100 {
        let start_ns = START_NS + step * 50 * MS;
        stream.phase(main, step, "forward", start_ns, start_ns + 30 * MS);
        stream.phase(main, step, "forward", start_ns + 30 * MS, start_ns + 48 * MS);
        stream.phase(main, step, "validation", start_ns + 30 * MS, start_ns + 49 * MS);
        stream.step(main, step, start_ns, start_ns + 49 * MS);
    }
    let found = all_findings(&store_of(stream)).found;
    assert!(found.iter().all(|finding| finding.kind != FindingKind::Bookkeeping), "{found:?}");
}

#[test]
fn garbage_collection_inside_a_phase_does_not_overlap_it() {
    let mut stream = StreamBuilder::new("collects");
    let main = stream.track(TrackRole::Training, "main");
    for step in 1..=100 {
        let start_ns = START_NS + step * 50 * MS;
        stream.phase(main, step, "gc", start_ns + 10 * MS, start_ns + 14 * MS);
        stream.phase(main, step, "compile", start_ns, start_ns + 49 * MS);
        stream.step(main, step, start_ns, start_ns + 49 * MS);
    }
    let found = all_findings(&store_of(stream)).found;
    assert!(found.iter().all(|finding| finding.kind != FindingKind::Bookkeeping), "{found:?}");
}

#[test]
fn phases_that_overlap_and_events_that_are_lost_are_found() {
    let mut stream = StreamBuilder::new("overlap");
    let (main, other) = (stream.track(TrackRole::Training, "main"), stream.track(TrackRole::Other, "other"));
    for step in 1..=100 {
        let start_ns = START_NS + step * 50 * MS;
        stream.phase(main, step, "forward", start_ns, start_ns + 49 * MS);
        stream.phase(other, step, "backward", start_ns + 20 * MS, start_ns + 40 * MS);
        stream.step(main, step, start_ns, start_ns + 49 * MS);
    }
    assert_facts(&only(&store_of(stream)), FindingKind::Bookkeeping, &[(Number::OfTime, 0.39)]);
    let mut stream = StreamBuilder::new("lost");
    let main = stream.track(TrackRole::Training, "main");
    for step in 1..=100 {
        let start_ns = START_NS + step * 50 * MS;
        stream.phase(main, step, "forward", start_ns, start_ns + 49 * MS);
        stream.step(main, step, start_ns, start_ns + 49 * MS);
    }
    stream.dropped(main, 40);
    let numbers = [(Number::Missing, 40.0), (Number::MissingShare, 0.166)];
    assert_facts(&only(&store_of(stream)), FindingKind::Bookkeeping, &numbers);
}

#[test]
fn memory_growth_uses_allocator_memory() {
    let mut stream = StreamBuilder::new("leak");
    let main = stream.track(TrackRole::Training, "main");
    for step in 1..=200 {
        let start_ns = START_NS + step * 50 * MS;
        stream.phase(main, step, "forward", start_ns, start_ns + 49 * MS);
        stream.step(main, step, start_ns, start_ns + 49 * MS);
        let live_bytes = 100_000_000 + step * 1_000_000;
        stream.event(main, Event::PhaseMemory(PhaseMemory { t_ns: start_ns, live_bytes, ..PhaseMemory::default() }));
    }
    let found = only(&store_of(stream));
    assert_contains(&found, FindingKind::MemoryGrowth, &["live memory grows from"]);
    assert_facts(&found, FindingKind::MemoryGrowth, &[(Number::BytesPerStep, 1e6)]);
}

#[test]
fn energy_whose_source_is_a_model_is_stated() {
    let mut stream = StreamBuilder::new("model");
    let (main, sensors) = (stream.track(TrackRole::Training, "main"), stream.track(TrackRole::Sensors, "sensors"));
    let metric = AnyMetric::from_name("cpu.energy".to_owned(), Unit::Microjoules, SignalKind::Counter);
    let (id, source) = (SignalId(0), SignalSource::Sensor("TDP model".to_owned()));
    stream.define(Definition::Signal { id, metric, source, device: String::new() });
    for step in 0..101 {
        let start_ns = START_NS + step * SECOND / 10;
        stream.phase(main, step, "forward", start_ns, start_ns + 99 * MS);
        stream.step(main, step, start_ns, start_ns + 99 * MS);
        stream.sample(sensors, id, start_ns + 30 * MS, (step * 6_000_000 + step % 2 * 500_000) as i64);
    }
    let mut all = all_findings(&store_of(stream)).found.into_iter();
    let found = all.find(|finding| finding.kind == FindingKind::ModelledEnergy).unwrap();
    assert_facts(&found, FindingKind::ModelledEnergy, &[(Number::InAll, 600.0)]);
    assert!(found.summary.contains("is modelled, not measured: 600 J in all"), "{}", found.summary);
}
