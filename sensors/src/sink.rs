//! Where readings go, and how an absence is reported once.
//!
//! The sink remembers which signals are absent and why, so that no sensor has to, and so that a pass in which nothing changed
//! allocates nothing.

use std::fmt::{self, Write as _};

use crate::signal::{Reading, SignalIndex};

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
