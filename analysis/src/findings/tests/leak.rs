//! Memory that grows so slowly that only the whole run shows it.

use super::slower::{store_of_stream, with_past};
use super::*;
use gnntop_fixtures::SECOND;

/// Steps of a second: ten hours, of which the newest two are looked at step by step.
const STEPS: u64 = 36_000;

/// The stream of a run whose memory, and the GPU's, is this after some hours, in MB.
fn stream(host: impl Fn(f64) -> f64, gpu: impl Fn(f64) -> f64) -> Vec<u8> {
    let mut stream = StreamBuilder::new("leak");
    let main = stream.track(TrackRole::Training, "main");
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let names = ["process.rss", "gpu.0.memory.used", "gpu.0.memory.total"];
    let signals = names.map(|name| stream.signal(name, Unit::Bytes, SignalKind::Gauge));
    for step in 1..=STEPS {
        let (start_ns, end_ns) = (START_NS + (step - 1) * SECOND, START_NS + step * SECOND);
        stream.phase(main, step, "forward", start_ns, end_ns);
        stream.step(main, step, start_ns, end_ns);
        if step.is_multiple_of(5) {
            let hours = step as f64 / 3600.0;
            for (signal, mb) in signals.iter().zip([host(hours), gpu(hours), 80_000.0]) {
                // What a step takes and gives back.
                let taken = (step * 7919 % 97) as f64 * 1e5;
                stream.sample(sensors, *signal, end_ns, (mb * 1e6 + taken) as i64);
            }
        }
        if step.is_multiple_of(50) {
            stream.flush();
        }
    }
    stream.bytes()
}

fn leaks(bytes: &[u8]) -> Vec<Vec<Finding>> {
    let of = |store: Store| {
        let found = judge_newest(&store).findings.found.into_iter();
        found.filter(|finding| finding.kind == FindingKind::MemoryGrowth).collect()
    };
    [store_of_stream(bytes), with_past(bytes, 0.5), with_past(bytes, 0.95)].map(of).into()
}

#[test]
fn slow_leak_reports_rate() {
    for found in leaks(&stream(|hours| 500.0 + 8.0 * hours, |_| 2000.0)) {
        let [leak] = found.as_slice() else { panic!("{found:#?}") };
        assert_contains(leak, FindingKind::MemoryGrowth, &["resident memory grows from"]);
        assert_facts(leak, FindingKind::MemoryGrowth, &[(Number::BytesPerHour, 8e6), (Number::Lasting, 8.3 * 3600e9)]);
    }
}

#[test]
fn gpu_leak_is_found_beside_host_leak() {
    for found in leaks(&stream(|hours| 500.0 + 8.0 * hours, |hours| 2000.0 + 100.0 * hours)) {
        let [host, gpu] = found.as_slice() else { panic!("{found:#?}") };
        assert_eq!([host.fact(Number::Gpu), gpu.fact(Number::Gpu)], [None, Some(0.0)]);
        assert_facts(gpu, FindingKind::MemoryGrowth, &[(Number::Left, 770.0 * 3600e9)]);
    }
}

#[test]
fn levelling_memory_is_no_leak() {
    let level = |hours: f64| 500.0 + 300.0 * (1.0 - (-hours).exp());
    let saw = |hours: f64| 500.0 + 200.0 * hours.fract();
    let at_once = |hours: f64| if hours > 6.0 { 900.0 } else { 500.0 };
    for host in [&(|_| 500.0) as &dyn Fn(f64) -> f64, &level, &saw, &at_once] {
        let found: Vec<Finding> = leaks(&stream(host, |_| 2000.0)).into_iter().flatten().collect();
        assert_eq!(found, []);
    }
}

/// A training of which every eighth step compiles a function again for longer than the steps in between, and memory that grows at
/// these rates, in MB, in a compilation and in any step.
fn compiling(per_compilation: f64, per_step: f64) -> Vec<Finding> {
    let mut stream = StreamBuilder::new("compiles");
    let main = stream.track(TrackRole::Training, "main");
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let memory = stream.signal("process.rss", Unit::Bytes, SignalKind::Gauge);
    let (mut t_ns, mut bytes) = (START_NS, 8e8);
    for step in 1..=400 {
        let compiles = step > 8 && step % 8 == 0;
        let forward_ns = t_ns + if compiles { 600 * MS } else { 0 };
        if compiles {
            stream.span(main, step, "compile again: forward (train.py:7): size mismatch", t_ns, forward_ns);
            stream.phase(main, step, "compile", t_ns, forward_ns);
        }
        stream.phase(main, step, "forward", forward_ns, forward_ns + 60 * MS);
        stream.step(main, step, t_ns, forward_ns + 60 * MS);
        bytes += 1e6 * (per_step + if compiles { per_compilation } else { 0.0 });
        t_ns = forward_ns + 60 * MS;
        stream.sample(sensors, memory, t_ns, bytes as i64);
        if step.is_multiple_of(50) {
            stream.flush();
        }
    }
    let found = all_findings(&store_of(stream)).found.into_iter();
    found.filter(|finding| finding.kind == FindingKind::MemoryGrowth).collect()
}

#[test]
fn memory_of_compiled_code_is_no_leak_and_a_leak_beside_it_is() {
    assert_eq!(compiling(6.0, 0.0), []);
    let [leak] = &compiling(6.0, 2.0)[..] else { panic!("not found") };
    assert_contains(leak, FindingKind::MemoryGrowth, &["resident memory grows from"]);
}
