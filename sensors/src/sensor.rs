//! A sensor registers its signals when it is opened, and offers values or absences to a [`Sink`] in every pass.

use gnntop_wire::Quantity;

use crate::signal::{SignalIndex, SignalInfo};
use crate::sink::Sink;

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
