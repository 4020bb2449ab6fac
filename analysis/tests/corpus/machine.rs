//! What sensors and the system tell: page faults, memory, clocks, energy, and events that do not add up.

use gnntop_analysis::findings::FindingKind;
use gnntop_fixtures::planned::{StepPlan, counted, gauge};
use gnntop_fixtures::{MS, START_NS, StreamBuilder};
use gnntop_wire::{SignalKind, ThreadUsage, TrackRole, Unit};

use super::case::{Case, strengths};
use super::random::Random;
use super::training::{Training, ns};

pub fn cases() -> Vec<Case> {
    [
        strengths([(1.5, "+4 %"), (7.0, "+20 %"), (16.0, "+47 %")], page_faults),
        strengths([(5e6, "0.5 %"), (5e7, "5 %"), (3e8, "30 %")], reclaim),
        strengths([((1000, 0.03), "3 %"), ((8000, 0.18), "18 %"), ((20_000, 0.4), "40 %")], churn),
        strengths([(1e6, "1 MB/s"), (8e6, "8 MB/s"), (60e6, "60 MB/s")], growth),
        strengths([(0.02, "1.02 x"), (0.3, "1.3 x"), (1.2, "2.2 x")], denormals),
        strengths([(0.02, "2 %"), (0.1, "10 %"), (0.5, "50 %")], throttled),
        strengths([(2e-2, "2 %"), (3e-4, "0.03 %"), (0.0, "0 %")], modelled),
        strengths([(0.1, "10 %"), (0.3, "30 %"), (0.8, "80 %")], constant_counter),
        strengths([(0.02, "2 %"), (5e-4, "0.05 %"), (0.0, "0 %")], proportional),
        strengths([(0.85, "0.2"), (0.4, "0.8"), (0.1, "1.0")], aliased),
        strengths([(0.005, "0.5 %"), (0.03, "3 %"), (0.3, "30 %")], overlap),
        strengths([(1, "0.5 %"), (9, "4 %"), (60, "23 %")], lost),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Each fiftieth step has 40,000 page faults and takes so much longer.
fn page_faults(more_ms: f64) -> Case {
    let stream = Training::new(300, 501).stream(|step, _| {
        if !step.is_multiple_of(50) {
            return StepPlan::default();
        }
        let usage = ThreadUsage { minor_faults: 40_000, voluntary_switches: 2, ..ThreadUsage::default() };
        StepPlan { usage: Some(usage), ..StepPlan::default().with_phase("forward", ns(more_ms)) }
    });
    Case::new("page faults", stream)
        .expect(FindingKind::PageFaults)
        .allow(FindingKind::Spike)
        .allow(FindingKind::StepKinds)
}

/// Something waits so long of each second for memory to be reclaimed, and the program reads some of its own back.
fn reclaim(ns_per_s: f64) -> Case {
    let pressure = counted("machine.pressure.memory.some", Unit::Nanoseconds, move |t| t * ns_per_s);
    let read_back = counted("process.faults.major", Unit::Count, |t| t * 50.0);
    let stream = Training::new(300, 502).reads(pressure).reads(read_back).stream(|_, _| StepPlan::default());
    Case::new("memory is reclaimed", stream).expect(FindingKind::PageFaults)
}

/// So many page faults in every step, for which the kernel takes such a share of the CPU time.
fn churn((minor_faults, in_kernel): (u64, f64)) -> Case {
    let stream = Training::new(300, 503)
        .reads(counted("process.cpu_time", Unit::Nanoseconds, |t| t * 1e9))
        .reads(counted("process.cpu_time.system", Unit::Nanoseconds, move |t| t * 1e9 * in_kernel))
        .stream(move |_, _| {
            let usage = ThreadUsage { minor_faults, voluntary_switches: 2, ..ThreadUsage::default() };
            StepPlan { usage: Some(usage), ..StepPlan::default() }
        });
    Case::new("allocation churn", stream).expect(FindingKind::AllocationChurn)
}

fn growth(bytes_per_s: f64) -> Case {
    let rss = gauge("process.rss", Unit::Bytes, move |t| 5e8 + t * bytes_per_s + 1e5 * (t * 7.0).sin());
    Case::new("memory grows", Training::new(300, 504).reads(rss).stream(|_, _| StepPlan::default()))
        .expect(FindingKind::MemoryGrowth)
}

/// Two in five steps, in no order, count denormals and take so much longer.
fn denormals(slower: f64) -> Case {
    let stream = Training::new(300, 505).stream(|_, random| {
        let numbers = if random.chance(0.4) { random.between(3e4, 6e4) } else { 0.0 };
        let plan = StepPlan::default().times(1.0 + slower * numbers / 6e4);
        StepPlan { counters: vec![("denormals", numbers)], ..plan }
    });
    Case::new("denormal numbers", stream)
        .expect(FindingKind::Denormals)
        .allow(FindingKind::StepKinds)
        .allow(FindingKind::Spike)
}

/// The driver slows the GPU down for heat in such a share of the time, at the end of each second.
fn throttled(share: f64) -> Case {
    let is_hot = move |t: f64| t.fract() > 1.0 - share;
    let training = Training::new(600, 506)
        .reads(gauge("gpu.0.util", Unit::MilliPercent, |t| 97e3 + 2e3 * (t * 11.0).sin()))
        .reads(gauge("gpu.0.throttle", Unit::Bits, move |t| if is_hot(t) { 64.0 } else { 0.0 }))
        .reads(gauge("gpu.0.clock.sm", Unit::Megahertz, move |t| if is_hot(t) { 1200.0 } else { 1980.0 }));
    let stream = Training { reading_ms: 7.3, ..training }.stream(|_, _| StepPlan::default());
    Case::new("GPU throttled", stream).expect(FindingKind::GpuThrottled)
}

/// A power that varies by so much from reading to reading.
fn modelled(spread: f64) -> Case {
    let energy = counted("cpu.energy", Unit::Microjoules, move |t| {
        // The spread is that of the increase in 93 ms, in which the sine may change by twice its height.
        t * 360e6 + 360e6 * 0.093 * spread / 2.0 * (t * 31.0).sin()
    });
    let stream = Training::new(300, 507).reads(energy).stream(|_, _| StepPlan::default());
    Case::new("energy of constant power", stream).expect(FindingKind::ModelledEnergy)
}

/// A counter that is brought up to date so seldom that such a share of its readings shows no increase.
fn constant_counter(share: f64) -> Case {
    let every_s = 0.093 / (1.0 - share);
    let energy = counted("gpu.0.energy", Unit::Microjoules, move |t| {
        let n = (t / every_s).floor();
        100e6 * every_s * (n + 0.3 * n.sin())
    });
    let stream = Training::new(400, 508).reads(energy).stream(|_, _| StepPlan::default());
    Case::new("energy counter stands still", stream).expect(FindingKind::DoubtfulEnergy)
}

/// The second counter is a fourth of the first one, but for so much of its increase in 93 ms.
fn proportional(spread: f64) -> Case {
    let package = |t: f64| t * 100e6 + (t * 3.0).sin() * 20e6;
    let stream = Training::new(400, 509)
        .reads(counted("cpu.0.energy", Unit::Microjoules, package))
        .reads(counted("dram.0.energy", Unit::Microjoules, move |t| {
            // Between two readings the sine may change by twice its height, and the first counter by 0.4 of its mean.
            package(t) * 0.25 + 25e6 * 0.093 * spread * 0.4 / 2.0 * (t * 37.0).sin()
        }))
        .stream(|_, _| StepPlan::default());
    Case::new("energy counters in proportion", stream).expect(FindingKind::DoubtfulEnergy)
}

/// A GPU that is read once a step, somewhere within such a share of it. The amount is the length of the mean vector.
fn aliased(width: f64) -> Case {
    let (mut stream, mut random) = (StreamBuilder::new("corpus"), Random::new(510));
    let (main, sensors) = (stream.track(TrackRole::Training, "main"), stream.track(TrackRole::Sensors, "sensors"));
    let util = stream.signal("gpu.0.util", Unit::MilliPercent, SignalKind::Gauge);
    for step in 1..=200 {
        let start_ns = START_NS + step * 100 * MS;
        stream.phase(main, step, "forward", start_ns, start_ns + 99 * MS);
        stream.step(main, step, start_ns, start_ns + 99 * MS);
        let at_ms = 50.0 + 99.0 * width * (random.unit() - 0.5);
        stream.sample(sensors, util, start_ns + ns(at_ms), 90_000 + (step % 5) as i64 * 1000);
    }
    Case::new("sampling aliased", stream.bytes()).expect(FindingKind::Aliasing)
}

/// Another thread's phase takes such a share of each step a second time.
fn overlap(share: f64) -> Case {
    let mut stream = StreamBuilder::new("corpus");
    let (main, other) = (stream.track(TrackRole::Training, "main"), stream.track(TrackRole::Other, "other"));
    for step in 1..=200 {
        let start_ns = START_NS + step * 50 * MS;
        stream.phase(main, step, "forward", start_ns, start_ns + 49 * MS);
        stream.phase(other, step, "backward", start_ns + 10 * MS, start_ns + 10 * MS + ns(50.0 * share));
        stream.step(main, step, start_ns, start_ns + 49 * MS);
    }
    Case::new("phases overlap", stream.bytes()).expect(FindingKind::Bookkeeping)
}

/// So many events of 200 were lost.
fn lost(events: u64) -> Case {
    let mut stream = StreamBuilder::new("corpus");
    let main = stream.track(TrackRole::Training, "main");
    for step in 1..=100 {
        let start_ns = START_NS + step * 50 * MS;
        stream.phase(main, step, "forward", start_ns, start_ns + 49 * MS);
        stream.step(main, step, start_ns, start_ns + 49 * MS);
    }
    stream.dropped(main, events);
    Case::new("events lost", stream.bytes()).expect(FindingKind::Bookkeeping)
}
