//! Energy of whole sessions: counters, models, scopes and parts that add up.

use gnntop_wire::{Definition, Quantity, SignalId, SignalKind, SignalSource, TrackId, TrackRole, Unit};

use crate::energy::{Assumptions, ComponentKind, EnergyScope, Label};
use crate::store::Store;
use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, each_item};

const RUN: std::ops::Range<u64> = START_NS..START_NS + 20 * SECOND;

fn store(stream: StreamBuilder) -> Store {
    let mut store = Store::new();
    each_item(&stream.bytes(), |item| store.apply(item));
    store
}

/// 20 s of two threads, of which the process uses one and others a half; 8 GiB of memory.
fn machine(stream: &mut StreamBuilder) -> TrackId {
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let cpu = |stream: &mut StreamBuilder, name: &str, ns_per_s: i64| {
        let signal = stream.signal(name, Unit::Nanoseconds, SignalKind::Counter);
        (0..=200).for_each(|n| stream.sample(sensors, signal, START_NS + n * 100 * MS, n as i64 * ns_per_s / 10));
    };
    cpu(stream, "machine.cpu.busy", 1_500_000_000);
    cpu(stream, "process.cpu_time", 1_000_000_000);
    cpu(stream, "machine.cpu.0.busy", 800_000_000);
    cpu(stream, "machine.cpu.1.busy", 700_000_000);
    let memory = stream.signal("machine.memory.total", Unit::Bytes, SignalKind::Gauge);
    stream.sample(sensors, memory, START_NS, 8 << 30);
    sensors
}

fn counter(stream: &mut StreamBuilder, sensors: TrackId, name: &str, unit: Unit, per_reading: i64) -> SignalId {
    let signal = stream.signal(name, unit, SignalKind::Counter);
    (0..=200).for_each(|n| stream.sample(sensors, signal, START_NS + n * 100 * MS, 7_000 + n as i64 * per_reading));
    signal
}

fn steps(stream: &mut StreamBuilder) {
    let main = stream.track(TrackRole::Training, "main");
    for step in 0..180 {
        let start_ns = START_NS + SECOND + step * 100 * MS;
        stream.phase(main, step, "forward", start_ns, start_ns + 60 * MS);
        stream.phase(main, step, "backward", start_ns + 60 * MS, start_ns + 95 * MS);
        stream.step(main, step, start_ns, start_ns + 99 * MS);
    }
}

#[test]
fn energy_without_counter_is_modelled_with_band() {
    let mut stream = StreamBuilder::new("pna");
    machine(&mut stream);
    let store = store(stream);
    let book = store.energy(&Assumptions::default());
    let names: Vec<&str> = book.components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["gpu", "cpu", "memory"]);
    let cpu = book.figure(&book.components[1], EnergyScope::Device, RUN).unwrap();
    // 8 W, a tenth of it at rest and 0.65 by a load of three quarters.
    assert!((cpu.joules - 20.0 * 8.0 * (0.1 + 0.65 * 0.75)).abs() < 1e-3, "{cpu:?}");
    assert!((cpu.lo - cpu.joules / 3.0).abs() < 1e-3 && (cpu.hi - cpu.joules * 3.0).abs() < 1e-3, "{cpu:?}");
    assert_eq!((cpu.label, cpu.coverage()), (Label::Modelled, 0.0));
    let job = book.figure(&book.components[1], EnergyScope::Job, RUN).unwrap();
    assert!((job.joules - 20.0 * 8.0 * (0.1 + 0.65 * 0.5)).abs() < 1e-3, "{job:?}");
    let (total, missing) = book.total(EnergyScope::Job, RUN).unwrap();
    assert_eq!(missing, ["gpu"], "what is not known is not zero");
    assert!((total.joules - job.joules - 20.0 * 1.5).abs() < 1e-3 && total.label == Label::Modelled);
    assert!(book.components[1].reason.is_some() && store.energy_by_phase(&book.components[1]).is_empty());
}

#[test]
fn memory_of_a_small_job_is_what_it_uses_or_is_allotted() {
    let memory = |signals: &[(&str, i64)]| {
        let mut stream = StreamBuilder::new("pna");
        let sensors = machine(&mut stream);
        for (name, bytes) in signals {
            let signal = stream.signal(name, Unit::Bytes, SignalKind::Gauge);
            stream.sample(sensors, signal, START_NS, *bytes);
        }
        let store = store(stream);
        let book = store.energy(&Assumptions::default());
        let component = &book.components[2];
        let joules = book.figure(component, EnergyScope::Job, RUN).unwrap().joules;
        (joules, component.source.clone().unwrap())
    };
    // One module of 1.5 W for 20 s.
    let (joules, source) = memory(&[]);
    assert!((joules - 30.0).abs() < 1e-3 && source.ends_with("100 % of it, as its use was not read"), "{source}");
    let (joules, source) = memory(&[("process.rss", 1 << 28)]);
    assert!((joules - 30.0 / 32.0).abs() < 1e-3, "{joules}");
    assert!(source.ends_with("3.1 % of it, used by the process at most"), "{source}");
    let (joules, source) = memory(&[("process.rss", 1 << 28), ("allotted.memory", 2 << 30)]);
    assert!((joules - 7.5).abs() < 1e-3 && source.ends_with("25 % of it, allotted to the job"), "{joules} {source}");
}

#[test]
fn assumptions_change_modelled_energy() {
    let mut stream = StreamBuilder::new("pna");
    machine(&mut stream);
    let store = store(stream);
    let joules =
        |assumptions: Assumptions| store.energy(&assumptions).total(EnergyScope::Device, RUN).unwrap().0.joules;
    let given = Assumptions { cpu_watts: Some(50.0), ram_watts: Some(2.0), ..Assumptions::default() };
    assert!((joules(given) - 20.0 * 52.0).abs() < 1e-3);
    let tdp = Assumptions { tdp_watts: Some(80.0), ram_watts: Some(0.0), ..Assumptions::default() };
    assert!((joules(tdp) - 20.0 * 80.0 * (0.1 + 0.65 * 0.75)).abs() < 1e-3);
}

#[test]
fn measured_processor_is_shared_by_cpu_time_without_idle() {
    let mut stream = StreamBuilder::new("pna");
    let sensors = machine(&mut stream);
    counter(&mut stream, sensors, "cpu.0.energy", Unit::Microjoules, 4_000_000);
    counter(&mut stream, sensors, "dram.0.energy", Unit::Microjoules, 100_000);
    let store = store(stream);
    let book = store.energy(&Assumptions::default());
    let cpu = book.components.iter().find(|component| component.kind == ComponentKind::Cpu).unwrap();
    let device = book.figure(cpu, EnergyScope::Device, RUN).unwrap();
    assert!((device.joules - 800.0).abs() < 1e-3 && device.label == Label::Measured, "{device:?}");
    assert!(device.coverage() == 1.0 && device.pm95 < 0.06 * device.joules, "{device:?}");
    let (job, idle) = (book.figure(cpu, EnergyScope::Job, RUN).unwrap(), book.idle(cpu, RUN).unwrap());
    assert!((job.joules - 400.0).abs() < 1.0 && (idle.joules - 200.0).abs() < 1.0, "{job:?} {idle:?}");
    let shared = Assumptions { shares_idle: true, ..Assumptions::default() };
    let book = store.energy(&shared);
    assert!((book.figure(&book.components[1], EnergyScope::Job, RUN).unwrap().joules - 600.0).abs() < 1.0);
    let memory = &book.components[2];
    assert_eq!((memory.name.as_str(), memory.source.as_deref()), ("dram 0", Some("fixture")), "the model is off");
}

#[test]
fn steps_phases_and_the_rest_add_up_to_the_run_to_a_microjoule() {
    let mut stream = StreamBuilder::new("pna");
    let sensors = machine(&mut stream);
    counter(&mut stream, sensors, "gpu.0.energy", Unit::Millijoules, 31_337);
    counter(&mut stream, sensors, "cpu.0.energy", Unit::Microjoules, 4_000_001);
    steps(&mut stream);
    let store = store(stream);
    let book = store.energy(&Assumptions::default());
    let time = store.steps_time().unwrap();
    for component in &book.components[..2] {
        let account = component.device.as_ref().unwrap();
        let uj = |range| account.between_uj(range);
        let in_steps: u64 = store.steps().all().map(|row| uj(row.period_start_ns()..row.end_ns())).sum();
        assert_eq!(in_steps, uj(time.clone()), "periods follow on each other");
        assert_eq!(uj(0..time.start) + in_steps + uj(time.end..u64::MAX), account.line().total_uj());
        let phases: f64 = store.energy_by_phase(component).iter().map(|(_, figure)| figure.joules).sum();
        assert!((phases - in_steps as f64 / 1e6).abs() < 1e-6, "{phases}");
        assert_eq!(store.energy_by_phase(component).len(), 3, "forward, backward, gap");
    }
}

#[test]
fn counter_range_turns_decrease_into_wrap() {
    let mut stream = StreamBuilder::new("pna");
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let range = stream.signal("cpu.0.energy.range", Unit::Microjoules, SignalKind::Gauge);
    let energy = stream.signal("cpu.0.energy", Unit::Microjoules, SignalKind::Counter);
    let max = 65_712_999_613;
    stream.sample(sensors, range, START_NS, max);
    for (n, value) in [max - 40_000_000, max - 10_000_000, 20_000_000 - 1, 50_000_000 - 1].into_iter().enumerate() {
        stream.sample(sensors, energy, START_NS + n as u64 * SECOND, value);
    }
    let store = store(stream);
    let line = store.meters.line(Quantity::CpuEnergy).unwrap();
    assert_eq!((line.total_uj(), line.gaps()), (90_000_000, &[][..]));
}

#[test]
fn gpu_energy_without_counter_uses_power() {
    let mut stream = StreamBuilder::new("pna");
    let sensors = machine(&mut stream);
    let power = stream.signal("gpu.0.power.instant", Unit::Milliwatts, SignalKind::Gauge);
    (0..=200).for_each(|n| stream.sample(sensors, power, START_NS + n * 100 * MS, 250_000));
    let store = store(stream);
    let book = store.energy(&Assumptions::default());
    let gpu = book.figure(&book.components[0], EnergyScope::Device, RUN).unwrap();
    assert!((gpu.joules - 5000.0).abs() < 1e-3 && gpu.label == Label::Interpolated, "{gpu:?}");
    assert!(book.components[0].source.as_ref().unwrap().starts_with("NVML field 186"));
    assert_eq!(book.figure(&book.components[0], EnergyScope::Job, RUN), None, "it is unknown who else is on it");
    assert!(book.job_absence(&book.components[0]).unwrap().contains("whether other processes use the GPU"));
}

#[test]
fn processor_has_name_and_threads() {
    let mut stream = StreamBuilder::new("pna");
    let sensors = machine(&mut stream);
    let id = SignalId(90);
    let device = "AMD EPYC 7763 64-Core Processor".to_owned();
    stream.define(Definition::Signal {
        id,
        metric: Quantity::MachineCpuThreads.into(),
        source: SignalSource::Sensor("/proc/cpuinfo".to_owned()),
        device,
    });
    stream.sample(sensors, id, START_NS, 128);
    let store = store(stream);
    let book = store.energy(&Assumptions::default());
    assert!(
        book.components[1].source.as_ref().unwrap().contains("TDP 280 W by name x 1, 128.0 of 128 threads"),
        "{}",
        book.components[1].source.as_ref().unwrap()
    );
}

#[test]
fn counter_contradicted_by_power_is_doubtful() {
    let mut stream = StreamBuilder::new("pna");
    let sensors = machine(&mut stream);
    counter(&mut stream, sensors, "gpu.0.energy", Unit::Millijoules, 18_700);
    let power = stream.signal("gpu.0.power.instant", Unit::Milliwatts, SignalKind::Gauge);
    (0..=200).for_each(|n| stream.sample(sensors, power, START_NS + n * 100 * MS, 327_000));
    let store = store(stream);
    let book = store.energy(&Assumptions::default());
    let gpu = book.figure(&book.components[0], EnergyScope::Device, RUN).unwrap();
    assert!((gpu.joules - 187.0 * 20.0).abs() < 40.0, "the counter counts: {gpu:?}");
    let check = book.components[0].check;
    assert_eq!((check.windows, check.apart), (1, 1));
    let (counted, added_up) = check.worst.unwrap();
    assert!((added_up / counted - 327.0 / 187.0).abs() < 0.02, "{check:?}");
}

#[test]
fn suspended_time_has_no_energy() {
    let mut stream = StreamBuilder::new("pna");
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let energy = stream.signal("gpu.0.energy", Unit::Millijoules, SignalKind::Counter);
    let sample =
        |stream: &mut StreamBuilder, n: u64, mj: i64| stream.sample(sensors, energy, START_NS + n * SECOND, mj);
    (0..=10).for_each(|n| sample(&mut stream, n, n as i64 * 100_000));
    // An hour of suspension: the clock of events stops, the boot clock does not, and the GPU keeps counting.
    let mut anchor = gnntop_fixtures::anchor(START_NS + 10 * SECOND);
    let mut bytes = Vec::new();
    gnntop_wire::put_anchor(&mut bytes, &anchor);
    anchor.monotonic_ns += SECOND / 2;
    anchor.boot_ns += SECOND / 2 + 3600 * SECOND;
    anchor.wall_ns += SECOND / 2 + 3600 * SECOND;
    gnntop_wire::put_anchor(&mut bytes, &anchor);
    stream.raw(&bytes);
    (11..=20).for_each(|n| sample(&mut stream, n, 900_000_000 + n as i64 * 100_000));
    let store = store(stream);
    let book = store.energy(&Assumptions::default());
    let account = book.components[0].device.as_ref().unwrap();
    assert_eq!(account.line().gaps(), [(crate::energy::GapReason::Suspended, 1)]);
    let figure = book.figure(&book.components[0], EnergyScope::Device, RUN).unwrap();
    // Eighteen seconds at 100 W: the first change begins the line, and the second around the sleep is left out.
    assert!((1700.0..=1900.0).contains(&figure.joules) && figure.coverage() == 1.0, "{figure:?}");
}

#[test]
fn failing_gpu_is_named_and_others_summed() {
    let mut stream = StreamBuilder::new("pna");
    let sensors = machine(&mut stream);
    let signals: Vec<SignalId> =
        (0..8).map(|gpu| stream.signal(&format!("gpu.{gpu}.energy"), Unit::Millijoules, SignalKind::Counter)).collect();
    for (gpu, signal) in (0..8).zip(&signals) {
        if gpu == 5 {
            stream.absent(sensors, *signal, START_NS, "the GPU is lost");
            continue;
        }
        (0..=200).for_each(|n| stream.sample(sensors, *signal, START_NS + n * 100 * MS, n as i64 * 10_000));
    }
    let store = store(stream);
    let assumptions = Assumptions { cpu_watts: Some(0.0), ram_watts: Some(0.0), ..Assumptions::default() };
    let book = store.energy(&assumptions);
    let (total, missing) = book.total(EnergyScope::Device, RUN).unwrap();
    assert_eq!(missing, ["gpu 5"]);
    assert!((total.joules - 7.0 * 100.0 * 20.0).abs() < 7.0 * 20.0, "{total:?}");
    assert_eq!(book.components[5].device.as_ref().unwrap_err().to_string(), "the GPU is lost");
}
