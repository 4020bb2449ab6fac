//! Sensors side by side: opening them, and one sampling pass over them.

use std::fmt;

use gnntop_wire::Metric;

use crate::gpu_info::GpuInfo;
#[cfg(target_os = "linux")]
use crate::linux;
use crate::nvidia;
use crate::options::SensorOptions;
#[cfg(not(target_os = "linux"))]
use crate::portable;
use crate::sensor::{Absences, Registry, Sensor};
use crate::signal::{Reading, SignalIndex, SignalInfo};

/// Opened sensors side by side.
///
/// It starts no thread: the owner calls [`read`](Self::read) as often as it wants a sample, on a dedicated thread,
/// since a read of the GPUs may block for about 20 ms.
pub struct SensorSet {
    registry: Registry,
    sensors: Vec<Box<dyn Sensor>>,
    absences: Absences,
    options: SensorOptions,
    gpus: Vec<GpuInfo>,
}

impl SensorSet {
    /// A set without sensors, to [`add`](Self::add) some to.
    pub fn empty(options: &SensorOptions) -> Self {
        Self {
            registry: Registry::default(),
            sensors: Vec::new(),
            absences: Absences::default(),
            options: options.clone(),
            gpus: Vec::new(),
        }
    }

    /// Opens every sensor this system may have. It never fails: missing sensors still have their signals, and the first
    /// pass reports why they are absent.
    ///
    /// Opening takes about a millisecond, with a GPU up to seconds (the driver may have to wake it), so open the
    /// set on the thread that reads it.
    pub fn open(options: &SensorOptions) -> Self {
        let mut set = Self::empty(options);
        set.add_host();
        let (mut nvidia, gpus) = nvidia::open(options, &mut set.registry);
        set.gpus = gpus;
        let others = set.open_other_gpus();
        nvidia.count_others(others.as_ref().map_or(0, |(_, count)| *count));
        set.push(Box::new(nvidia));
        others.into_iter().for_each(|(sensor, _)| set.push(sensor));
        #[cfg(target_os = "linux")]
        if let Some(nodes) = linux::GpuNodes::open(options, &set.gpus, &mut set.registry) {
            set.push(Box::new(nodes));
        }
        set
    }

    /// Opens GPUs that are not NVIDIA's, and returns their number.
    #[cfg(target_os = "linux")]
    fn open_other_gpus(&mut self) -> Option<(Box<dyn Sensor>, u32)> {
        let first = u32::try_from(self.gpus.len()).unwrap_or(u32::MAX);
        let (drm, gpus) = linux::Drm::open(&self.options, first, &mut self.registry);
        let count = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
        self.gpus.extend(gpus);
        (count > 0).then(|| (Box::new(drm) as Box<dyn Sensor>, count))
    }

    #[cfg(not(target_os = "linux"))]
    fn open_other_gpus(&mut self) -> Option<(Box<dyn Sensor>, u32)> {
        None
    }

    #[cfg(target_os = "linux")]
    fn add_host(&mut self) {
        let options = self.options.clone();
        for sensor in linux::open(&options, &mut self.registry) {
            self.push(sensor);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn add_host(&mut self) {
        let options = self.options.clone();
        self.add(|registry| Box::new(portable::Portable::open(&options, registry)));
    }

    /// Opens one more sensor. Its signals come after the existing ones.
    pub fn add(&mut self, open: impl FnOnce(&mut Registry) -> Box<dyn Sensor>) {
        let sensor = open(&mut self.registry);
        self.push(sensor);
    }

    fn push(&mut self, sensor: Box<dyn Sensor>) {
        self.sensors.push(sensor);
        self.absences.grow(self.registry.signals().len());
    }

    /// Every signal of the set, in the order of their [`SignalIndex`]. Absent ones are in it.
    pub fn signals(&self) -> &[SignalInfo] {
        self.registry.signals()
    }

    /// The signal that measures this, if the set has it.
    pub fn find(&self, metric: impl Into<Metric>) -> Option<SignalIndex> {
        let metric = metric.into();
        let slot = self.signals().iter().position(|signal| signal.metric == metric)?;
        u32::try_from(slot).ok().map(SignalIndex)
    }

    /// One sampling pass over every sensor.
    ///
    /// A value is passed on in each pass, an absence once when it begins. A pass over an unchanged system allocates
    /// nothing, except for GPUs.
    pub fn read(&mut self, out: &mut dyn FnMut(Reading)) {
        let mut sink = self.absences.sink(out);
        for sensor in &mut self.sensors {
            sensor.read(&mut sink);
        }
    }

    /// Reads only the counters of energy, between two passes: the more often they are read, the finer the curve of
    /// energy over time.
    pub fn read_energy(&mut self, out: &mut dyn FnMut(Reading)) {
        let mut sink = self.absences.sink(out);
        for sensor in &mut self.sensors {
            sensor.read_energy(&mut sink);
        }
    }

    /// Why the signal was absent in the last pass, or `None` if it had a value or was not read yet.
    pub fn absence(&self, signal: SignalIndex) -> Option<&str> {
        self.absences.reason(signal)
    }

    /// The names of the sensors, in the order in which a pass reads them.
    pub fn sensor_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.sensors.iter().map(|sensor| sensor.name())
    }

    /// The GPUs found when the set was opened.
    pub fn gpus(&self) -> &[GpuInfo] {
        &self.gpus
    }

    /// The options that the set was opened with.
    pub fn options(&self) -> &SensorOptions {
        &self.options
    }
}

impl fmt::Debug for SensorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SensorSet")
            .field("sensors", &self.sensor_names().collect::<Vec<_>>())
            .field("signals", &self.signals().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use gnntop_wire::Quantity;

    use super::*;
    use crate::sensor::Sink;

    /// A sensor of one signal that plays back a script: a value, or the reason of its absence.
    struct Scripted {
        signal: SignalIndex,
        script: Vec<Result<i64, &'static str>>,
    }

    impl Sensor for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn read(&mut self, sink: &mut Sink<'_>) {
            if self.script.is_empty() {
                return;
            }
            match self.script.remove(0) {
                Ok(value) => sink.value(self.signal, 1, value),
                Err(reason) => sink.absent(self.signal, 1, &reason),
            }
        }
    }

    fn play(script: Vec<Result<i64, &'static str>>) -> Vec<Reading> {
        let passes = script.len();
        let mut set = SensorSet::empty(&SensorOptions::default());
        set.add(|registry| {
            let signal = registry.plain(Quantity::ProcessRss, "script");
            Box::new(Scripted { signal, script })
        });
        let mut readings = Vec::new();
        for _ in 0..passes {
            set.read(&mut |reading| readings.push(reading));
        }
        readings
    }

    fn value(value: i64) -> Reading {
        Reading::Value { signal: SignalIndex(0), t_ns: 1, value }
    }

    fn absent(reason: &str) -> Reading {
        Reading::Absent { signal: SignalIndex(0), t_ns: 1, reason: reason.to_owned() }
    }

    #[test]
    fn absence_is_reported_once_until_value_returns() {
        let readings = play(vec![Err("gone"), Err("gone"), Ok(5), Ok(5), Err("gone"), Err("gone")]);
        assert_eq!(readings, [absent("gone"), value(5), value(5), absent("gone")]);
    }

    #[test]
    fn absence_is_reported_again_with_new_reason() {
        assert_eq!(play(vec![Err("denied"), Err("gone"), Err("gone")]), [absent("denied"), absent("gone")]);
    }

    #[test]
    fn absence_gives_current_reason() {
        let mut set = SensorSet::empty(&SensorOptions::default());
        set.add(|registry| {
            let signal = registry.plain(Quantity::ProcessRss, "script");
            Box::new(Scripted { signal, script: vec![Err("gone"), Ok(1)] })
        });
        let signal = set.find(Quantity::ProcessRss).unwrap();
        assert_eq!(set.absence(signal), None);
        set.read(&mut |_| ());
        assert_eq!(set.absence(signal), Some("gone"));
        set.read(&mut |_| ());
        assert_eq!(set.absence(signal), None);
        assert_eq!(set.find(Quantity::ProcessSwap), None);
        assert_eq!(set.absence(SignalIndex(99)), None);
    }
}
