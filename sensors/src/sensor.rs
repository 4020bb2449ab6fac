//! A sensor registers its signals when it is opened, and offers values or absences to a [`Sink`] in every pass.
//!
//! The sink remembers which signals are absent and why, so that no sensor has to, and so that a pass in which nothing changed
//! allocates nothing.

use std::fmt::{self, Write as _};

use gnntop_wire::Quantity;

use crate::signal::{Reading, SignalIndex, SignalInfo};

/// A source of readings, such as `/proc/stat` or NVML.
pub trait Sensor: Send {
    /// A short name for logs and the doctor, such as `cpu` or `nvidia`.
    fn name(&self) -> &'static str;

    /// Reads every signal once and gives `sink` the value or the reason of its absence.
    ///
    /// A sensor may skip a signal in a pass, if it is slow to read or waits to retry.
    fn read(&mut self, sink: &mut Sink<'_>);

    /// Reads only counters of energy, which deserve more reads than the rest. Does nothing if there are none.
    fn read_energy(&mut self, _sink: &mut Sink<'_>) {}
}

/// Where a sensor that is being opened registers its signals.
#[derive(Debug, Default)]
pub struct Registry {
    signals: Vec<SignalInfo>,
}

impl Registry {
    /// Registers a signal and returns its index.
    ///
    /// # Panics
    /// Never: indices saturate at `u32::MAX`, which no set reaches.
    pub fn add(&mut self, signal: SignalInfo) -> SignalIndex {
        let index = SignalIndex(u32::try_from(self.signals.len()).unwrap_or(u32::MAX));
        self.signals.push(signal);
        index
    }

    /// Every signal, in the order of their [`SignalIndex`].
    pub(crate) fn signals(&self) -> &[SignalInfo] {
        &self.signals
    }

    /// Registers a signal that belongs to no particular device.
    pub(crate) fn plain(&mut self, quantity: Quantity, source: &'static str) -> SignalIndex {
        self.add(SignalInfo { metric: quantity.into(), source, device: None })
    }
}

/// Where a sensor puts its readings of one pass.
pub struct Sink<'a> {
    out: &'a mut dyn FnMut(Reading),
    absences: &'a mut Absences,
}

impl Sink<'_> {
    /// The signal has this value.
    pub fn value(&mut self, signal: SignalIndex, t_ns: u64, value: i64) {
        if let Some(absence) = self.absences.by_signal.get_mut(signal.slot()) {
            absence.lasting = false;
        }
        (self.out)(Reading::Value { signal, t_ns, value });
    }

    /// The signal could not be read. Passed on only if that, or the reason, is new.
    pub fn absent(&mut self, signal: SignalIndex, t_ns: u64, reason: &dyn fmt::Display) {
        if let Some(reason) = self.absences.begin(signal, reason) {
            (self.out)(Reading::Absent { signal, t_ns, reason });
        }
    }

    /// Signals without a value now, all for the same reason.
    pub(crate) fn all_absent(
        &mut self,
        signals: impl IntoIterator<Item = SignalIndex>,
        t_ns: u64,
        reason: &dyn fmt::Display,
    ) {
        signals.into_iter().for_each(|signal| self.absent(signal, t_ns, reason));
    }
}

/// Which signals are absent now, and why.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    by_signal: Vec<Absence>,
    scratch: String,
}

/// Whether a signal is absent now, and the last reason it was.
#[derive(Debug, Default)]
struct Absence {
    lasting: bool,
    reason: String,
}

impl Absences {
    /// Makes room for this many signals, none of them absent so far.
    pub(crate) fn grow(&mut self, signals: usize) {
        self.by_signal.resize_with(signals, Absence::default);
    }

    /// A sink that passes readings on.
    pub(crate) fn sink<'a>(&'a mut self, out: &'a mut dyn FnMut(Reading)) -> Sink<'a> {
        Sink { out, absences: self }
    }

    /// Why a signal is absent now; `None` if it is not, or was not read yet.
    pub(crate) fn reason(&self, signal: SignalIndex) -> Option<&str> {
        let absence = self.by_signal.get(signal.slot())?;
        absence.lasting.then_some(absence.reason.as_str())
    }

    /// Notes that a signal is absent; returns the reason if it is new.
    fn begin(&mut self, signal: SignalIndex, reason: &dyn fmt::Display) -> Option<String> {
        let absence = self.by_signal.get_mut(signal.slot())?;
        self.scratch.clear();
        // Writing to a String fails only if the reason's own Display does; what it wrote until then is kept.
        let _ = write!(self.scratch, "{reason}");
        if absence.lasting && absence.reason == self.scratch {
            return None;
        }
        absence.lasting = true;
        absence.reason.clone_from(&self.scratch);
        Some(self.scratch.clone())
    }
}
