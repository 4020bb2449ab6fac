//! NVIDIA GPUs through NVML, which is loaded at run time: one binary works with and without a driver.
//!
//! Signals degrade independently: a call that fails makes its own signals absent and is retried after the retry
//! interval. A lost GPU takes all of its signals with it; it is reopened, by UUID, after the same interval. If NVML itself
//! went away, it is shut down and loaded again, such as after an update of the driver; in the observed program it is only
//! initialised again, never shut down. The set of GPUs is fixed when the sensor is opened: a driver that was missing then is
//! not looked for again.

mod driver;
mod query;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use gnntop_wire::Quantity;
use nvml_wrapper::error::NvmlError;

use self::driver::{Driver, NvmlErrorText, library_is_gone};
use self::query::{QUERIES, Query, QuerySpec, Rate, run_query};
use crate::clock::{monotonic_ns, stamped};
use crate::gpu_info::GpuInfo;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::{SignalIndex, SignalInfo};

/// Reads NVML.
pub(crate) struct Nvidia {
    driver: Result<Driver, String>,
    gpus: Vec<Gpu>,
    count: SignalIndex,
    /// GPUs that are not NVIDIA's.
    others: u32,
    settings: Settings,
    library: Option<PathBuf>,
    /// Whether this is the observed program, whose descriptors must not be closed.
    is_inside: bool,
    /// When a driver that went away is loaded again; `None` while it works.
    reload_at_ns: Option<u64>,
    /// The GPU whose turn it is for a blocking query.
    turn: usize,
}

/// What every query needs.
#[derive(Clone, Copy)]
struct Settings {
    /// The observed process.
    pid: u32,
    /// Whether NVML may list that process under another number.
    in_container: bool,
    slow_ns: u64,
    retry_ns: u64,
}

struct Gpu {
    index: u32,
    uuid: Option<String>,
    calls: Vec<GpuQuery>,
    /// When a lost GPU is opened again; `None` while it works.
    reopen_at_ns: Option<u64>,
}

/// A query with the signals registered for it on one GPU.
struct GpuQuery {
    spec: &'static QuerySpec,
    signals: Vec<SignalIndex>,
    due_at_ns: u64,
}

/// Opens the sensor and returns the GPUs. Without a driver its only signal is `gpu.count`, absent.
pub(crate) fn open(options: &SensorOptions, registry: &mut Registry) -> (Nvidia, Vec<GpuInfo>) {
    let count = registry.plain(Quantity::GpuCount, "NVML nvmlDeviceGetCount_v2");
    let is_inside = options.pid == std::process::id();
    let driver = if options.gpu {
        Driver::load(options.nvml_library.as_deref(), is_inside)
    } else {
        Err("GPU sensors are turned off".to_owned())
    };
    let mut nvidia = Nvidia {
        driver,
        gpus: Vec::new(),
        count,
        others: 0,
        settings: Settings {
            pid: options.pid,
            in_container: in_container(options),
            slow_ns: nanoseconds(options.gpu_slow_interval),
            retry_ns: nanoseconds(options.gpu_retry_interval),
        },
        library: options.nvml_library.clone(),
        is_inside,
        reload_at_ns: None,
        turn: 0,
    };
    let infos = nvidia.find_gpus(registry);
    (nvidia, infos)
}

fn nanoseconds(interval: Duration) -> u64 {
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether this process has its own PID namespace, in which NVML's numbers, which are the host's, mean nothing. The
/// first namespace has had this inode number since Linux 3.8 (`PROC_PID_INIT_INO`).
fn in_container(options: &SensorOptions) -> bool {
    std::fs::read_link(options.proc_root.join("self/ns/pid")).is_ok_and(|link| link.as_os_str() != "pid:[4026531836]")
}

impl Nvidia {
    /// Counts GPUs of other sensors: `gpu.count` is that of all.
    pub(crate) fn count_others(&mut self, others: u32) {
        self.others = others;
    }

    fn find_gpus(&mut self, registry: &mut Registry) -> Vec<GpuInfo> {
        let Ok(driver) = &mut self.driver else { return Vec::new() };
        let version = driver.version();
        let mut infos = Vec::new();
        for index in 0..driver.device_count().unwrap_or(0) {
            let info = describe(driver, index, version.clone());
            self.gpus.push(Gpu::register(&info, registry));
            infos.push(info);
        }
        infos
    }

    /// Reloads the driver if it went away and it is time to.
    fn revive_driver(&mut self) {
        if self.gpus.is_empty() || self.reload_at_ns.is_none_or(|at_ns| monotonic_ns() < at_ns) {
            return;
        }
        // The old library is unloaded first, where it may be, so that the new one is read from disk.
        self.driver = Err(String::new());
        self.driver = Driver::load(self.library.as_deref(), self.is_inside);
        self.reload_at_ns = self.driver.is_err().then(|| monotonic_ns().saturating_add(self.settings.retry_ns));
        self.gpus.iter_mut().for_each(|gpu| gpu.reopen_at_ns = Some(0));
    }

    /// Makes at most one blocking query, for each GPU in turn.
    fn read_one_blocking(&mut self, sink: &mut Sink<'_>) {
        let Ok(driver) = &mut self.driver else { return };
        let per_gpu = QUERIES.iter().filter(|spec| spec.rate == Rate::Blocking).count();
        let places = self.gpus.len() * per_gpu;
        for step in 0..places {
            let place = (self.turn + step) % places;
            let gpu = &mut self.gpus[place / per_gpu];
            if gpu.reopen_at_ns.is_some() {
                continue;
            }
            let call = gpu.calls.iter_mut().filter(|call| call.spec.rate == Rate::Blocking).nth(place % per_gpu);
            let Some(call) = call.filter(|call| monotonic_ns() >= call.due_at_ns) else { continue };
            if let Err(loss) = call.run(driver, gpu.index, self.settings, sink) {
                gpu.mark_lost(&loss, self.settings.retry_ns, sink);
            }
            self.turn = (place + 1) % places;
            return;
        }
    }
}

/// What the driver reports about one GPU; only its number if it does not open.
fn describe(driver: &mut Driver, index: u32, version: Option<String>) -> GpuInfo {
    let device = driver.open_device(index, None).ok();
    GpuInfo {
        index,
        uuid: device.and_then(|device| device.uuid().ok()),
        pci_slot: device.and_then(|device| device.pci_info().ok()).and_then(|pci| slot_of(&pci.bus_id)),
        name: device.and_then(|device| device.name().ok()),
        memory_bytes: device.and_then(|device| device.memory_info().ok()).map(|memory| memory.total),
        driver: version,
    }
}

/// A place on the bus as Linux writes it: NVML has eight digits for the domain, and capital ones.
fn slot_of(bus_id: &str) -> Option<String> {
    let (domain, rest) = bus_id.split_once(':')?;
    Some(format!("{:04x}:{}", u32::from_str_radix(domain, 16).ok()?, rest.to_ascii_lowercase()))
}

impl Sensor for Nvidia {
    fn name(&self) -> &'static str {
        "nvidia"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        self.revive_driver();
        let driver = match &mut self.driver {
            Ok(driver) => driver,
            Err(reason) => {
                let t_ns = monotonic_ns();
                let of_gpus = self.gpus.iter().flat_map(Gpu::signals);
                if self.others > 0 {
                    sink.value(self.count, t_ns, self.others.into());
                    return sink.all_absent(of_gpus, t_ns, reason);
                }
                return sink.all_absent(std::iter::once(self.count).chain(of_gpus), t_ns, reason);
            }
        };
        match stamped(|| driver.device_count()) {
            (t_ns, Ok(count)) => sink.value(self.count, t_ns, count.saturating_add(self.others).into()),
            (t_ns, Err(error)) => {
                sink.absent(self.count, t_ns, &NvmlErrorText(&error));
                if library_is_gone(&error) {
                    self.reload_at_ns.get_or_insert(t_ns.saturating_add(self.settings.retry_ns));
                }
            }
        }
        for gpu in &mut self.gpus {
            gpu.read(driver, self.settings, sink);
        }
        self.read_one_blocking(sink);
    }

    fn read_energy(&mut self, sink: &mut Sink<'_>) {
        let Ok(driver) = &mut self.driver else { return };
        for gpu in self.gpus.iter_mut().filter(|gpu| gpu.reopen_at_ns.is_none()) {
            let now_ns = monotonic_ns();
            let energy =
                gpu.calls.iter_mut().filter(|call| call.spec.query == Query::Energy && now_ns >= call.due_at_ns);
            let lost = energy.filter_map(|call| call.run(driver, gpu.index, self.settings, sink).err()).next();
            if let Some(loss) = lost {
                gpu.mark_lost(&loss, self.settings.retry_ns, sink);
            }
        }
    }
}

impl Gpu {
    fn register(info: &GpuInfo, registry: &mut Registry) -> Self {
        let device = match (&info.name, &info.uuid) {
            (Some(name), Some(uuid)) => Some(format!("{name} ({uuid})")),
            (name, uuid) => name.clone().or_else(|| uuid.clone()),
        };
        let calls =
            QUERIES.iter().map(|spec| GpuQuery::register(spec, info.index, device.as_deref(), registry)).collect();
        // The first pass tries again to open a GPU that did not open, and reports why not.
        let reopen_at_ns = info.uuid.is_none().then_some(0);
        Self { index: info.index, uuid: info.uuid.clone(), calls, reopen_at_ns }
    }

    fn signals(&self) -> impl Iterator<Item = SignalIndex> + '_ {
        self.calls.iter().flat_map(|call| call.signals.iter().copied())
    }

    /// Makes all queries that are due, except blocking ones.
    fn read(&mut self, driver: &mut Driver, settings: Settings, sink: &mut Sink<'_>) {
        if let Err(loss) = self.reopen(driver) {
            return self.mark_lost(&loss, settings.retry_ns, sink);
        }
        if self.reopen_at_ns.is_some() {
            return;
        }
        let now_ns = monotonic_ns();
        for call in &mut self.calls {
            if call.spec.rate == Rate::Blocking || now_ns < call.due_at_ns {
                continue;
            }
            if let Err(loss) = call.run(driver, self.index, settings, sink) {
                return self.mark_lost(&loss, settings.retry_ns, sink);
            }
        }
    }

    /// Reopens a lost GPU, if it is time to. Does nothing to one that works.
    fn reopen(&mut self, driver: &mut Driver) -> Result<(), NvmlError> {
        if self.reopen_at_ns.is_some_and(|at_ns| monotonic_ns() >= at_ns) {
            driver.open_device(self.index, self.uuid.as_deref())?;
            self.reopen_at_ns = None;
            self.calls.iter_mut().for_each(|call| call.due_at_ns = 0);
        }
        Ok(())
    }

    /// Makes every signal of the GPU absent, until it can be opened again.
    fn mark_lost(&mut self, loss: &NvmlError, retry_ns: u64, sink: &mut Sink<'_>) {
        let t_ns = monotonic_ns();
        self.reopen_at_ns = Some(t_ns.saturating_add(retry_ns));
        self.signals().for_each(|signal| sink.absent(signal, t_ns, &NvmlErrorText(loss)));
    }
}

impl GpuQuery {
    fn register(spec: &'static QuerySpec, index: u32, device: Option<&str>, registry: &mut Registry) -> Self {
        let register = |quantity: &Quantity| {
            let metric = quantity.with_instance(index);
            registry.add(SignalInfo { metric, source: spec.source, device: device.map(str::to_owned) })
        };
        Self { spec, signals: spec.quantities.iter().map(register).collect(), due_at_ns: 0 }
    }

    /// Makes the query and reports its signals. Returns an error only if the whole GPU is lost.
    fn run(&mut self, driver: &Driver, index: u32, settings: Settings, sink: &mut Sink<'_>) -> Result<(), NvmlError> {
        let device = driver.device(index).ok_or(NvmlError::NotFound)?;
        let (t_ns, answer) = stamped(|| run_query(device, self.spec.query, settings.pid));
        let wait_ns = match (&answer, self.spec.rate) {
            (Err(_), _) => settings.retry_ns,
            (Ok(_), Rate::Pass) => 0,
            (Ok(_), Rate::Slow | Rate::Blocking) => settings.slow_ns,
        };
        self.due_at_ns = t_ns.saturating_add(wait_ns);
        match answer {
            Ok(values) => self.report(t_ns, values, settings, sink),
            Err(error) if gpu_is_gone(&error) => return Err(error),
            Err(error) => {
                let reason = CallFailed { spec: self.spec, error: &error };
                self.signals.iter().for_each(|signal| sink.absent(*signal, t_ns, &reason));
            }
        }
        Ok(())
    }

    fn report(&self, t_ns: u64, values: query::QueryValues, settings: Settings, sink: &mut Sink<'_>) {
        for (signal, value) in self.signals.iter().zip(values) {
            match value {
                Some(value) => sink.value(*signal, t_ns, value),
                None if self.spec.query == Query::Processes => sink.absent(*signal, t_ns, &NotOnGpu(settings)),
                None => sink.absent(*signal, t_ns, &"the driver returned no usable number"),
            }
        }
    }
}

/// Whether the error is about the GPU, not the call.
fn gpu_is_gone(error: &NvmlError) -> bool {
    matches!(error, NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::NotFound) || library_is_gone(error)
}

/// Why one call failed.
struct CallFailed<'a> {
    spec: &'static QuerySpec,
    error: &'a NvmlError,
}

impl fmt::Display for CallFailed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error {
            NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
                let call = self.spec.source.trim_start_matches("NVML ");
                write!(f, "this NVIDIA driver has no {call}")
            }
            error => write!(f, "{}", NvmlErrorText(error)),
        }
    }
}

/// Why the memory of the observed process is not known.
struct NotOnGpu(Settings);

impl fmt::Display for NotOnGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.0.pid;
        if self.0.in_container {
            write!(f, "NVML does not list process {pid}: it lists the host's PIDs, not the container's")
        } else {
            write!(f, "process {pid} does not compute on this GPU")
        }
    }
}
