//! Clean runs on a machine that others use as well: two cores, of which they take one now and then. The steps of these
//! small loops take 0.3 to 3 ms, so that each time the CPU is taken away is many steps long. That the CPU is taken away
//! is true and may be said; nothing may be said of the loop itself.

use gnntop_analysis::findings::FindingKind;
use gnntop_fixtures::planned::{StepPlan, counted, gauge};
use gnntop_wire::{BatchShape, ThreadUsage, Unit};

use super::case::Case;
use super::random::Random;
use super::training::{Training, ns};

/// A small loop on a machine that is shared.
#[derive(Clone, Copy)]
struct Shared {
    /// A step's usual time.
    ms: f64,
    steps: u64,
    seed: u64,
    /// Spread of a step's time (of its logarithm).
    sigma: f64,
    /// How often a second of work is interrupted.
    interrupts_per_s: f64,
    /// How much longer everything takes while the others are at work, which they are by turns.
    load: f64,
    /// Page faults of a usual step.
    faults: f64,
    /// Share of the CPU time that the kernel takes, for whatever reason.
    in_kernel: f64,
    /// What the loop does between two steps, as a share of a step.
    gap: f64,
}

const SMALL: Shared = Shared {
    ms: 1.0,
    steps: 300,
    seed: 0,
    sigma: 0.15,
    interrupts_per_s: 8.0,
    load: 1.2,
    faults: 40.0,
    in_kernel: 0.08,
    gap: 0.02,
};

pub fn cases() -> Vec<Case> {
    let runs = [
        ("0.3 ms steps", Shared { ms: 0.3, steps: 400, seed: 21, ..SMALL }),
        ("0.5 ms steps", Shared { ms: 0.5, steps: 300, seed: 22, sigma: 0.25, ..SMALL }),
        ("1 ms steps", Shared { seed: 23, ..SMALL }),
        ("1 ms steps, many interrupts", Shared { seed: 24, interrupts_per_s: 40.0, ..SMALL }),
        ("2 ms steps", Shared { ms: 2.0, seed: 25, sigma: 0.2, ..SMALL }),
        ("3 ms steps", Shared { ms: 3.0, steps: 200, seed: 26, ..SMALL }),
        ("others take half", Shared { seed: 27, load: 1.6, interrupts_per_s: 30.0, ..SMALL }),
        ("others take half, 2 ms", Shared { seed: 28, ms: 2.0, load: 1.6, steps: 600, ..SMALL }),
        ("long tail", Shared { seed: 29, sigma: 0.5, ..SMALL }),
        ("long tail, 0.4 ms", Shared { seed: 30, ms: 0.4, sigma: 0.45, steps: 800, ..SMALL }),
        ("page faults here and there", Shared { seed: 31, faults: 300.0, ..SMALL }),
        ("much of the kernel at the start", Shared { seed: 32, faults: 600.0, in_kernel: 0.25, ms: 3.0, ..SMALL }),
        ("a gap of 4 %", Shared { seed: 33, gap: 0.04, interrupts_per_s: 30.0, ..SMALL }),
        ("35 ms steps", Shared { seed: 34, ms: 35.0, interrupts_per_s: 4.0, ..SMALL }),
        ("120 ms steps", Shared { seed: 35, ms: 120.0, steps: 150, interrupts_per_s: 4.0, sigma: 0.1, ..SMALL }),
    ];
    runs.into_iter().map(|(name, shared)| case(name, shared)).collect()
}

fn case(name: &str, shared: Shared) -> Case {
    Case { amount: name.to_owned(), ..Case::new("clean, busy machine", stream(shared)) }.allow(FindingKind::Contention)
}

fn stream(shared: Shared) -> Vec<u8> {
    let mut is_loaded = false;
    let training = Training::new(shared.steps, shared.seed).spread(0.0);
    let in_kernel = shared.in_kernel;
    Training { reading_ms: 20.0, ..training }
        .reads(counted("process.cpu_time", Unit::Nanoseconds, |t| t * 0.9e9))
        .reads(counted("process.cpu_time.system", Unit::Nanoseconds, move |t| t * 0.9e9 * in_kernel))
        .reads(counted("machine.pressure.cpu.some", Unit::Nanoseconds, |t| t * 5e8))
        .reads(gauge("process.rss", Unit::Bytes, |t| 4e8 + 1e6 * (t * 5.0).sin()))
        .stream(move |_, random| {
            // The others come and go after some 70 steps.
            if random.chance(1.0 / 70.0) {
                is_loaded = !is_loaded;
            }
            plan(&shared, if is_loaded { shared.load } else { 1.0 }, random)
        })
}

fn plan(shared: &Shared, load: f64, random: &mut Random) -> StepPlan {
    let mut interrupts = 0;
    let parts = [("data wait", 0.05), ("forward", 0.3), ("backward", 0.5), ("optimizer", 0.15)];
    let mut times =
        parts.map(|(text, share)| (text, busy_ms(shared, shared.ms * share * load, random, &mut interrupts)));
    let step = random.skewed(1.0, shared.sigma);
    times.iter_mut().for_each(|phase| phase.1 *= step);
    let gap_ms = busy_ms(shared, shared.ms * shared.gap * load, random, &mut interrupts);
    // Memory is touched for the first time now and then, which costs little beside the rest.
    let burst = if random.chance(0.03) { random.between(1000.0, 3000.0) } else { 0.0 };
    let usage = ThreadUsage {
        minor_faults: (random.skewed(shared.faults, 0.3) + burst) as u64,
        voluntary_switches: 1,
        involuntary_switches: interrupts,
        ..ThreadUsage::default()
    };
    let batch = BatchShape { graphs: Some(64), ..BatchShape::default() };
    StepPlan {
        phases: times.map(|(text, ms)| (text, ns(ms))).to_vec(),
        gap_ns: ns(gap_ms),
        batch,
        usage: Some(usage),
        ..StepPlan::default()
    }
}

/// Some work with the time for which the CPU was taken away meanwhile: at least a slice of the scheduler's.
fn busy_ms(shared: &Shared, ms: f64, random: &mut Random, interrupts: &mut u64) -> f64 {
    let lost_ms = if random.chance(shared.interrupts_per_s * ms / 1000.0) {
        *interrupts += 1;
        random.tail(2.5, 2.5).min(12.0)
    } else {
        0.0
    };
    ms + lost_ms
}
