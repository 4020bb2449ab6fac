//! Energy by component, as far as a counter measures it. Nothing is estimated here: a component without a counter has a
//! reason in the place of a number.

use std::ops::Range;

use gnntop_wire::{SignalKind, Unit};

use super::Store;
use super::signals::Signal;

/// A time is resolved by a counter that was read at least this often within it.
const READINGS_IN_A_TIME: u64 = 5;
/// Energy of a time is told where at least this share of it was measured.
const LEAST_KNOWN: f64 = 0.9;

/// What has an energy counter of its own, or might have.
#[derive(Clone, Copy, Debug)]
pub struct Component<'a> {
    /// Its counter.
    pub signal: &'a Signal,
    joules_per_unit: f64,
}

/// Energy that a counter counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joules {
    /// The energy, in joules.
    pub joules: f64,
    /// In how much time, in nanoseconds.
    pub ns: u64,
}

impl Joules {
    /// The mean power, in watts; `None` in no time.
    pub fn watts(&self) -> Option<f64> {
        (self.ns > 0).then(|| self.joules * 1e9 / self.ns as f64)
    }
}

/// Why no energy is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEnergy {
    /// The counter was not read twice in that time.
    NotRead,
    /// The time is shorter than what the counter resolves: readings come this far apart, in nanoseconds.
    TooShort(u64),
    /// The counter was away for more than a tenth of the time.
    Gaps,
}

impl<'a> Component<'a> {
    /// What is measured, such as `gpu 0`.
    pub fn name(&self) -> String {
        self.signal.name.strip_suffix(".energy").unwrap_or(&self.signal.name).replace('.', " ")
    }

    /// Joules in one unit of its counter: with an increase of one unit a second, watts.
    pub fn joules_per_unit(&self) -> f64 {
        self.joules_per_unit
    }

    /// Energy over all readings of the session.
    ///
    /// # Errors
    /// Where there are no two readings.
    pub fn total(&self) -> Result<Joules, NoEnergy> {
        let summary = self.signal.series.summary();
        let all = Joules { joules: summary.increase * self.joules_per_unit, ns: summary.increase_ns };
        if all.ns == 0 { Err(NoEnergy::NotRead) } else { Ok(all) }
    }

    /// The usual time between two readings, in nanoseconds; `None` before two.
    pub fn resolution_ns(&self) -> Option<u64> {
        let summary = self.signal.series.summary();
        summary.increase_ns.checked_div(summary.count.saturating_sub(1)).filter(|ns| *ns > 0)
    }

    /// Energy in a time of the session. At its ends the energy between two readings is taken as evenly spread.
    ///
    /// # Errors
    /// Where the counter does not resolve that time or was not there for more than a tenth of it.
    pub fn within(&self, range: Range<u64>) -> Result<Joules, NoEnergy> {
        let resolution_ns = self.resolution_ns().ok_or(NoEnergy::NotRead)?;
        let ns = range.end.saturating_sub(range.start);
        if ns < resolution_ns.saturating_mul(READINGS_IN_A_TIME) {
            return Err(NoEnergy::TooShort(resolution_ns));
        }
        let (increase, known_ns) = self.signal.series.increase_within(range);
        match known_ns as f64 / ns as f64 {
            0.0 => Err(NoEnergy::NotRead),
            share if share < LEAST_KNOWN => Err(NoEnergy::Gaps),
            _ => Ok(Joules { joules: increase * self.joules_per_unit, ns: known_ns }),
        }
    }
}

impl Store {
    /// Every component with an energy counter, those that cannot be read too, by name.
    pub fn energy_components(&self) -> Vec<Component<'_>> {
        let component = |signal| joules_per_unit(signal).map(|joules_per_unit| Component { signal, joules_per_unit });
        let mut all: Vec<Component<'_>> = self.signals().all().iter().filter_map(component).collect();
        all.sort_by_key(|component| std::cmp::Reverse(component.signal.name.starts_with("gpu.")));
        all
    }

    /// The newest epoch that is over, with the time from the end of the step before it to the end of its last one; `None`
    /// before one is, and where its first steps are no longer kept.
    pub fn last_whole_epoch(&self) -> Option<(u64, Range<u64>)> {
        let newest = self.steps().last()?.epoch();
        let mut before = self.steps().all().rev().skip_while(|row| row.epoch() == newest);
        let last = before.next()?;
        let first = before.take_while(|row| row.epoch() == last.epoch()).last().unwrap_or(last);
        let is_whole = first.ordinal() > self.steps().kept().start || self.steps().discarded() == 0;
        is_whole.then(|| (last.epoch(), first.period_start_ns()..last.end_ns()))
    }
}

fn joules_per_unit(signal: &Signal) -> Option<f64> {
    match (signal.kind, signal.unit) {
        (SignalKind::Counter, Unit::Millijoules) => Some(1e-3),
        (SignalKind::Counter, Unit::Microjoules) => Some(1e-6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gnntop_wire::TrackRole;

    use super::super::fixture::{MS, SECOND, START_NS, StreamBuilder, each_item};
    use super::*;

    /// 200 W from the start on, read every 100 ms for ten seconds; steps of 20 ms in epochs of 100.
    fn store() -> Store {
        let mut stream = StreamBuilder::new("pna");
        let (main, sensors) = (stream.track(TrackRole::Training, "main"), stream.track(TrackRole::Sensors, "sensors"));
        let energy = stream.signal("gpu.0.energy", Unit::Millijoules, SignalKind::Counter);
        stream.signal("cpu.0.energy", Unit::Microjoules, SignalKind::Counter);
        for n in 0..=100 {
            stream.sample(sensors, energy, START_NS + n * 100 * MS, 5_000_000 + n as i64 * 20_000);
        }
        for step in 0..500 {
            let start_ns = START_NS + step * 20 * MS;
            let times = gnntop_wire::Step {
                step: gnntop_wire::StepId(step + 1),
                epoch: step / 100,
                start_ns,
                end_ns: start_ns + 20 * MS,
                ..Default::default()
            };
            stream.event(main, gnntop_wire::Event::Step(times));
        }
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        store
    }

    #[test]
    fn a_counter_gives_energy_of_the_run_and_of_an_epoch() {
        let store = store();
        let gpu = store.energy_components()[0];
        assert_eq!((gpu.name().as_str(), gpu.resolution_ns()), ("gpu 0", Some(100 * MS)));
        assert_eq!(gpu.total(), Ok(Joules { joules: 2000.0, ns: 10 * SECOND }));
        let (epoch, range) = store.last_whole_epoch().unwrap();
        assert_eq!((epoch, range.end - range.start), (3, 2 * SECOND));
        let joules = gpu.within(range).unwrap();
        assert!((joules.joules - 400.0).abs() < 1e-6 && joules.ns == 2 * SECOND, "{joules:?}");
        let odd = gpu.within(START_NS + 250 * MS..START_NS + 1250 * MS).unwrap();
        assert!((odd.watts().unwrap() - 200.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_not_measured_is_no_number() {
        let store = store();
        let gpu = store.energy_components()[0];
        let step = store.steps().row(7).unwrap();
        assert_eq!(gpu.within(step.period_start_ns()..step.end_ns()), Err(NoEnergy::TooShort(100 * MS)));
        assert_eq!(gpu.within(START_NS + 9 * SECOND..START_NS + 30 * SECOND), Err(NoEnergy::Gaps));
        assert_eq!(gpu.within(START_NS + 90 * SECOND..START_NS + 99 * SECOND), Err(NoEnergy::NotRead));
        let cpu = store.energy_components()[1];
        assert_eq!((cpu.total(), cpu.within(0..u64::MAX)), (Err(NoEnergy::NotRead), Err(NoEnergy::NotRead)));
        assert_eq!(Store::new().last_whole_epoch(), None);
    }
}
