//! The sensor thread: samples hardware at its own interval and writes what changed, on its own track.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gnntop_sensors::{Reading, Rival, SensorOptions, SensorSet, SignalInfo, monotonic_ns};
use gnntop_wire::{Definition, NameKind, Quantity, SignalId, SignalKind, SignalSource, TrackRole, Unit};
use rustix::time::ClockId;

use crate::clock;
use crate::names::{NameRef, intern};
use crate::publisher::Publisher;
use crate::rivals::RivalWatch;
use crate::track::{self, Track};

/// Every signal is repeated this often, changed or not, so that any part of a recording has them all.
const REPEAT_AFTER: Duration = Duration::from_secs(5);

/// Interval between reads of energy counters: locates to 10 ms when a counter moves that does so ten times a second.
const ENERGY_EVERY: Duration = Duration::from_millis(20);

/// Samples until the session stops.
pub(crate) fn run(publisher: &Arc<Publisher>, options: &SensorOptions, interval: Duration) {
    let mut sampler = Sampler::open(publisher, options);
    let mut next = Instant::now();
    let mut energy_every = ENERGY_EVERY;
    while !publisher.is_stopping() {
        sampler.sample(publisher);
        next = (next + interval).max(Instant::now());
        while Instant::now() < next && !publisher.is_stopping() {
            let wait = if sampler.has_energy() { energy_every } else { interval };
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()).min(wait));
            if sampler.has_energy() && Instant::now() + wait / 2 < next {
                energy_every = energy_pause(sampler.sample_energy());
            }
        }
    }
}

/// How long to leave energy counters alone after a read that took this long: they may use a hundredth of a core at most.
fn energy_pause(took: Duration) -> Duration {
    ENERGY_EVERY.max(took * 100)
}

/// The last value written for a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LastReading {
    Nothing,
    Value(i64),
    Absent(NameRef),
}

struct Sampler {
    set: SensorSet,
    /// One entry per signal of the set, and a last one for the publisher's own cost.
    last: Vec<LastReading>,
    /// By signal: when an energy counter was last read unchanged since it was written; 0 for others.
    unchanged_ns: Vec<u64>,
    is_energy: Vec<bool>,
    repeated: Instant,
    segments: usize,
    rivals: RivalWatch,
    _track: Track,
}

impl Sampler {
    fn open(publisher: &Arc<Publisher>, options: &SensorOptions) -> Self {
        let set = SensorSet::open(options);
        let own = probe_cost_signal();
        let signals = set.signals().iter().chain([&own]).enumerate();
        publisher.define_signals(signals.map(|(index, signal)| definition(index, signal)));
        Self {
            last: vec![LastReading::Nothing; set.signals().len() + 1],
            unchanged_ns: vec![0; set.signals().len() + 1],
            is_energy: set.signals().iter().chain([&own]).map(is_energy).collect(),
            repeated: Instant::now(),
            segments: 0,
            rivals: RivalWatch::new(&set),
            _track: Track::open(publisher, "sensors", TrackRole::Sensors),
            set,
        }
    }

    fn sample(&mut self, publisher: &Publisher) {
        let segments = publisher.segments();
        if segments != self.segments || self.repeated.elapsed() >= REPEAT_AFTER {
            self.repeat_all();
            (self.segments, self.repeated) = (segments, Instant::now());
        }
        let (last, unchanged_ns, is_energy) = (&mut self.last, &mut self.unchanged_ns, &self.is_energy);
        let rivals = &mut self.rivals;
        self.set.read(&mut |reading| {
            rivals.note(&reading);
            write_before(last, unchanged_ns, is_energy, &reading);
            write_change(last, &reading);
        });
        if let Some(Rival { command, pid, cores }) = rivals.poll() {
            track::rival(intern(NameKind::Text, &command), pid, cores);
        }
        let own = last.len() - 1;
        if let Some(value) = thread_cpu_ns() {
            let signal = gnntop_sensors::SignalIndex(own as u32);
            write_change(last, &Reading::Value { signal, t_ns: monotonic_ns(), value });
        }
    }

    /// Reads the energy counters between two samples; returns how long that took.
    fn sample_energy(&mut self) -> Duration {
        let begun = Instant::now();
        let (last, unchanged_ns, is_energy) = (&mut self.last, &mut self.unchanged_ns, &self.is_energy);
        self.set.read_energy(&mut |reading| {
            write_before(last, unchanged_ns, is_energy, &reading);
            write_change(last, &reading);
        });
        begun.elapsed()
    }

    /// Whether any energy counter has a value.
    fn has_energy(&self) -> bool {
        self.is_energy
            .iter()
            .zip(&self.last)
            .any(|(is_energy, last)| *is_energy && matches!(last, LastReading::Value(_)))
    }

    /// Forgets values, since they are about to be read again, and repeats absences, since a set reports each only once.
    fn repeat_all(&mut self) {
        let t_ns = whole_microseconds(monotonic_ns());
        for (signal, last) in self.last.iter_mut().enumerate() {
            match *last {
                LastReading::Absent(reason) => track::absent(signal as u32, t_ns, reason),
                _ => *last = LastReading::Nothing,
            }
        }
    }
}

fn is_energy(signal: &SignalInfo) -> bool {
    signal.kind() == SignalKind::Counter && matches!(signal.unit(), Unit::Millijoules | Unit::Microjoules)
}

/// Before a change of an energy counter, writes when its old value was last read. Only changes are written, so this
/// shows between which two reads the change happened.
fn write_before(last: &[LastReading], unchanged_ns: &mut [u64], is_energy: &[bool], reading: &Reading) {
    let slot = reading.signal().0 as usize;
    let (Some(true), Some(unchanged_ns)) = (is_energy.get(slot), unchanged_ns.get_mut(slot)) else { return };
    match (last.get(slot), reading) {
        (Some(LastReading::Value(before)), Reading::Value { t_ns, value, .. }) if before == value => {
            *unchanged_ns = *t_ns
        }
        (Some(LastReading::Value(before)), Reading::Value { .. }) if *unchanged_ns > 0 => {
            track::sample(reading.signal().0, whole_microseconds(std::mem::take(unchanged_ns)), *before);
        }
        _ => *unchanged_ns = 0,
    }
}

fn write_change(last: &mut [LastReading], reading: &Reading) {
    let signal = reading.signal().0;
    let Some(last) = last.get_mut(signal as usize) else { return };
    match reading {
        Reading::Value { t_ns, value, .. } => {
            if *last != LastReading::Value(*value) {
                *last = LastReading::Value(*value);
                track::sample(signal, whole_microseconds(*t_ns), *value);
            }
        }
        Reading::Absent { t_ns, reason, .. } => {
            let reason = intern(NameKind::Text, reason);
            *last = LastReading::Absent(reason);
            track::absent(signal, whole_microseconds(*t_ns), reason);
        }
    }
}

/// Rounds to whole microseconds: a sensor takes tens of them to read, and each reading is a byte shorter this way.
fn whole_microseconds(t_ns: u64) -> u64 {
    t_ns - t_ns % 1_000
}

fn probe_cost_signal() -> SignalInfo {
    SignalInfo { metric: Quantity::SensorsCpuTime.into(), source: "CLOCK_THREAD_CPUTIME_ID", device: None }
}

fn thread_cpu_ns() -> Option<i64> {
    i64::try_from(clock::system_ns(ClockId::ThreadCPUTime)).ok().filter(|&ns| ns > 0)
}

fn definition(index: usize, signal: &SignalInfo) -> Definition {
    Definition::Signal {
        id: SignalId(index as u32),
        metric: signal.metric.into(),
        source: SignalSource::Sensor(signal.source.to_owned()),
        device: signal.device.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_pause_grows_with_read_time() {
        assert_eq!(energy_pause(Duration::from_micros(30)), ENERGY_EVERY);
        assert_eq!(energy_pause(Duration::from_millis(3)), Duration::from_millis(300), "a hundredth of a core");
    }
}
