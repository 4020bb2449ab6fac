//! The last reading of each signal and counter, and figures over all of them.

use gnntop_wire::past::Readings;
use gnntop_wire::{NameId, SignalId};

use crate::merge::entry;
use crate::slices::add_reading;

/// Most signals, and most of the program's counters, that are kept apart.
const MAX_QUANTITIES: usize = 2048;

/// The increase of a counter, and in how many nanoseconds.
pub(crate) type Increase = Option<(f64, u64)>;

/// One quantity.
#[derive(Clone, Copy, Debug, Default)]
struct LastReading {
    readings: Readings,
    /// Whether it is a cumulative counter, whose increase is worth keeping.
    is_counter: bool,
    /// Whether it became unreadable since its last reading.
    is_broken: bool,
}

impl LastReading {
    fn add(&mut self, t_ns: u64, value: f64) -> Increase {
        let last = self.readings;
        let follows = self.is_counter && last.count > 0 && !std::mem::take(&mut self.is_broken);
        let goes_on = follows && t_ns > last.last_ns && value >= last.last;
        let increase = goes_on.then(|| (value - last.last, t_ns - last.last_ns));
        add_reading(&mut self.readings, t_ns, value, increase);
        increase
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct LastReadings {
    signals: Vec<(SignalId, LastReading)>,
    counters: Vec<(NameId, LastReading)>,
}

impl LastReadings {
    pub(crate) fn define(&mut self, signal: SignalId, is_counter: bool) {
        if self.signals.len() < MAX_QUANTITIES {
            entry(&mut self.signals, signal, LastReading::default).is_counter = is_counter;
        }
    }

    /// Adds a reading and returns the increase since the previous one.
    pub(crate) fn signal(&mut self, signal: SignalId, t_ns: u64, value: f64) -> Increase {
        let at = self.signals.binary_search_by_key(&signal, |(known, _)| *known).ok()?;
        self.signals[at].1.add(t_ns, value)
    }

    pub(crate) fn absent(&mut self, signal: SignalId) {
        if let Ok(at) = self.signals.binary_search_by_key(&signal, |(known, _)| *known) {
            self.signals[at].1.is_broken = true;
        }
    }

    pub(crate) fn counter(&mut self, name: NameId, t_ns: u64, value: f64) -> Increase {
        if self.counters.len() >= MAX_QUANTITIES
            && self.counters.binary_search_by_key(&name, |(known, _)| *known).is_err()
        {
            return None;
        }
        entry(&mut self.counters, name, LastReading::default).add(t_ns, value)
    }

    /// Continues readings of an earlier time.
    pub(crate) fn resume(&mut self, signals: &[(SignalId, Readings)], counters: &[(NameId, Readings)]) {
        for (id, readings) in signals.iter().take(MAX_QUANTITIES) {
            entry(&mut self.signals, *id, LastReading::default).readings = *readings;
        }
        for (id, readings) in counters.iter().take(MAX_QUANTITIES) {
            entry(&mut self.counters, *id, LastReading::default).readings = *readings;
        }
    }

    /// Figures over all readings of each signal.
    pub(crate) fn signals(&self) -> Vec<(SignalId, Readings)> {
        let read = self.signals.iter().filter(|(_, known)| known.readings.count > 0);
        read.map(|(id, known)| (*id, known.readings)).collect()
    }

    /// Figures over all readings of each counter.
    pub(crate) fn counters(&self) -> Vec<(NameId, Readings)> {
        self.counters.iter().map(|(id, known)| (*id, known.readings)).collect()
    }
}
