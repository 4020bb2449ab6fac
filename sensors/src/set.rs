//! Sensors side by side: opening them, one sampling pass over them, and telling an absence once.
//!
//! A sensor registers its signals when it is opened and offers values or absences to a [`Sink`] in every pass.
//! The sink remembers which signals are absent and why, so that no sensor has to, and so that a pass in which
//! nothing changed allocates nothing.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use gnntop_wire::{SignalKind, Unit};

use crate::machine_info::GpuInfo;
use crate::signal::{Reading, SignalIndex, SignalInfo};

/// What to open, and where to look for it.
///
/// The default is this process on this machine with its GPUs.
#[derive(Clone, Debug)]
pub struct SensorOptions {
    /// The process whose CPU time, memory and faults are read.
    pub pid: u32,
    /// Whether the CPU time, memory, faults and threads of what the process has started count as its own. Costs a look at all
    /// processes once a second.
    pub descendants: bool,
    /// Where the process file system is mounted, `/proc` by default.
    pub proc_root: PathBuf,
    /// Where the kernel's device tree is mounted, `/sys` by default.
    pub sys_root: PathBuf,
    /// Where the processor's energy counters lie, in the place of `class/powercap` under `sys_root`: for a container that has
    /// them mounted elsewhere. By default as [`look_for_powercap_in`] or [`POWERCAP_ROOT`]
    /// says.
    pub powercap_root: Option<PathBuf>,
    /// Whether every core gets signals of its own. On machines of hundreds of cores this is most of the volume.
    pub per_core: bool,
    /// Whether to look for GPUs.
    pub gpu: bool,
    /// The NVML library to load in place of the driver's own, for tests and unusual installations.
    pub nvml_library: Option<PathBuf>,
    /// Shortest time between two reads of the GPU signals that are slow to read (see the table in the crate's
    /// documentation), one second by default.
    pub gpu_slow_interval: Duration,
    /// How long a GPU signal that failed is left alone before it is tried again, five seconds by default.
    pub gpu_retry_interval: Duration,
}

impl SensorOptions {
    /// Where the processor's energy counters lie.
    pub(crate) fn powercap(&self) -> PathBuf {
        self.powercap_root.clone().unwrap_or_else(|| self.sys_root.join("class/powercap"))
    }
}

impl Default for SensorOptions {
    fn default() -> Self {
        Self {
            pid: std::process::id(),
            descendants: false,
            proc_root: PathBuf::from("/proc"),
            sys_root: PathBuf::from("/sys"),
            powercap_root: powercap_root(),
            per_core: true,
            gpu: true,
            nvml_library: None,
            gpu_slow_interval: Duration::from_secs(1),
            gpu_retry_interval: Duration::from_secs(5),
        }
    }
}

/// The variable that says where the processor's energy counters lie.
pub const POWERCAP_ROOT: &str = "GNNTOP_POWERCAP_ROOT";

/// Where they lie by a command's flag.
static POWERCAP_ROOT_SAID: OnceLock<PathBuf> = OnceLock::new();

/// Has all [`SensorOptions`] that are made by default from now on in this process look for the processor's energy counters in
/// `dir`, whatever [`POWERCAP_ROOT`] says. The first call counts.
pub fn look_for_powercap_in(dir: PathBuf) {
    // Whoever said it first was the command line.
    let _ = POWERCAP_ROOT_SAID.set(dir);
}

fn powercap_root() -> Option<PathBuf> {
    let of_variable = || std::env::var_os(POWERCAP_ROOT).filter(|path| !path.is_empty()).map(PathBuf::from);
    POWERCAP_ROOT_SAID.get().cloned().or_else(of_variable)
}

/// A source of readings, such as `/proc/stat` or NVML.
pub trait Sensor: Send {
    /// A short name for logs and the doctor, such as `cpu` or `nvidia`.
    fn name(&self) -> &'static str;

    /// Reads every signal once and tells `sink` the value or why there is none.
    ///
    /// A sensor may leave a signal out of a pass, when it is slow to read or is waiting to try again.
    fn read(&mut self, sink: &mut Sink<'_>);

    /// Reads counters of energy alone, which deserve more reads than the rest. Nothing where there are none.
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

    /// Registers a signal that belongs to no particular device.
    pub(crate) fn plain(&mut self, name: &str, unit: Unit, kind: SignalKind, source: &'static str) -> SignalIndex {
        self.add(SignalInfo { name: name.to_owned(), unit, kind, source, device: None })
    }
}

/// Where a sensor puts what it read in one pass.
pub struct Sink<'a> {
    out: &'a mut dyn FnMut(Reading),
    absences: &'a mut [Absence],
    scratch: &'a mut String,
}

impl Sink<'_> {
    /// The signal has this value.
    pub fn value(&mut self, signal: SignalIndex, t_ns: u64, value: i64) {
        if let Some(absence) = self.absences.get_mut(signal.slot()) {
            absence.lasting = false;
        }
        (self.out)(Reading::Value { signal, t_ns, value });
    }

    /// The signal could not be read. Passed on only where that, or the reason, is new.
    pub fn absent(&mut self, signal: SignalIndex, t_ns: u64, reason: &dyn fmt::Display) {
        let Some(absence) = self.absences.get_mut(signal.slot()) else { return };
        self.scratch.clear();
        // Writing to a String fails only if the reason's own Display does; what it wrote until then is kept.
        let _ = write!(self.scratch, "{reason}");
        if absence.lasting && absence.reason == *self.scratch {
            return;
        }
        absence.lasting = true;
        absence.reason.clone_from(self.scratch);
        (self.out)(Reading::Absent { signal, t_ns, reason: absence.reason.clone() });
    }
}

/// Whether a signal is absent now, and the last reason it was.
#[derive(Clone, Debug, Default)]
struct Absence {
    lasting: bool,
    reason: String,
}

/// Opened sensors side by side.
///
/// It starts no thread: whoever holds it calls [`read`](Self::read) as often as it wants a sample, on a thread of
/// its own, since a read of the GPUs may block for some 20 ms.
pub struct SensorSet {
    registry: Registry,
    sensors: Vec<Box<dyn Sensor>>,
    absences: Vec<Absence>,
    scratch: String,
    options: SensorOptions,
    gpus: Vec<GpuInfo>,
}

impl SensorSet {
    /// A set without sensors, to [`add`](Self::add) some to.
    pub fn empty(options: &SensorOptions) -> Self {
        Self {
            registry: Registry::default(),
            sensors: Vec::new(),
            absences: Vec::new(),
            scratch: String::new(),
            options: options.clone(),
            gpus: Vec::new(),
        }
    }

    /// Opens every sensor this system may have. It never fails: what is missing has its signals all the same,
    /// and the first pass says why they are absent.
    ///
    /// Opening takes about a millisecond, with a GPU up to seconds (the driver may have to wake it), so open the
    /// set on the thread that reads it.
    pub fn open(options: &SensorOptions) -> Self {
        let mut set = Self::empty(options);
        set.add_host();
        let (nvidia, gpus) = crate::nvidia::open(options, &mut set.registry);
        set.gpus = gpus;
        set.push(Box::new(nvidia));
        set
    }

    #[cfg(target_os = "linux")]
    fn add_host(&mut self) {
        let options = self.options.clone();
        for sensor in crate::linux::open(&options, &mut self.registry) {
            self.push(sensor);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn add_host(&mut self) {
        let options = self.options.clone();
        self.add(|registry| Box::new(crate::portable::Portable::open(&options, registry)));
    }

    /// Opens one more sensor. Its signals come after those already there.
    pub fn add(&mut self, open: impl FnOnce(&mut Registry) -> Box<dyn Sensor>) {
        let sensor = open(&mut self.registry);
        self.push(sensor);
    }

    fn push(&mut self, sensor: Box<dyn Sensor>) {
        self.sensors.push(sensor);
        self.absences.resize_with(self.registry.signals.len(), Absence::default);
    }

    /// Every signal of the set, in the order of their [`SignalIndex`]. Absent ones are in it.
    pub fn signals(&self) -> &[SignalInfo] {
        &self.registry.signals
    }

    /// The signal of this name, if the set has it.
    pub fn find(&self, name: &str) -> Option<SignalIndex> {
        let slot = self.signals().iter().position(|signal| signal.name == name)?;
        u32::try_from(slot).ok().map(SignalIndex)
    }

    /// One sampling pass over every sensor.
    ///
    /// A value is passed on in each pass, an absence once when it begins. A pass over an unchanged system
    /// allocates nothing, GPUs apart.
    pub fn read(&mut self, out: &mut dyn FnMut(Reading)) {
        let mut sink = Sink { out, absences: &mut self.absences, scratch: &mut self.scratch };
        for sensor in &mut self.sensors {
            sensor.read(&mut sink);
        }
    }

    /// Reads the counters of energy alone, between two passes: a knot of energy over time is as sharp as they are read often.
    pub fn read_energy(&mut self, out: &mut dyn FnMut(Reading)) {
        let mut sink = Sink { out, absences: &mut self.absences, scratch: &mut self.scratch };
        for sensor in &mut self.sensors {
            sensor.read_energy(&mut sink);
        }
    }

    /// Why the signal was absent in the last pass, or `None` if it had a value or was not read yet.
    pub fn absence(&self, signal: SignalIndex) -> Option<&str> {
        let absence = self.absences.get(signal.slot())?;
        absence.lasting.then_some(absence.reason.as_str())
    }

    /// The names of the sensors, in the order in which a pass reads them.
    pub fn sensor_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.sensors.iter().map(|sensor| sensor.name())
    }

    /// The GPUs found when the set was opened.
    pub fn gpus(&self) -> &[GpuInfo] {
        &self.gpus
    }

    /// What the set was opened with.
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
    use super::*;

    /// A sensor of one signal that plays back a script: a value, or a reason for having none.
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
            let signal = registry.plain("test.signal", Unit::Count, SignalKind::Gauge, "script");
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
    fn an_absence_is_told_once_and_a_return_ends_it() {
        let readings = play(vec![Err("gone"), Err("gone"), Ok(5), Ok(5), Err("gone"), Err("gone")]);
        assert_eq!(readings, [absent("gone"), value(5), value(5), absent("gone")]);
    }

    #[test]
    fn a_new_reason_is_told() {
        assert_eq!(play(vec![Err("denied"), Err("gone"), Err("gone")]), [absent("denied"), absent("gone")]);
    }

    #[test]
    fn the_state_of_each_signal_can_be_asked() {
        let mut set = SensorSet::empty(&SensorOptions::default());
        set.add(|registry| {
            let signal = registry.plain("test.signal", Unit::Count, SignalKind::Gauge, "script");
            Box::new(Scripted { signal, script: vec![Err("gone"), Ok(1)] })
        });
        let signal = set.find("test.signal").unwrap();
        assert_eq!(set.absence(signal), None);
        set.read(&mut |_| ());
        assert_eq!(set.absence(signal), Some("gone"));
        set.read(&mut |_| ());
        assert_eq!(set.absence(signal), None);
        assert_eq!(set.find("no.such.signal"), None);
        assert_eq!(set.absence(SignalIndex(99)), None);
    }
}
