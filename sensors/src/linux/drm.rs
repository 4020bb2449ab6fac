//! GPUs of AMD and discrete ones of Intel, by files of their drivers below `/sys/class/drm/cardN/device`: amdgpu
//! (Documentation/gpu/amdgpu/thermal.rst), i915 and xe (Documentation/ABI/testing/sysfs-driver-intel-*-hwmon).
//!
//! Only what a driver has a file for is registered. A GPU that shares its memory with the processor is left out: no training
//! runs on it that could not be seen by the processor's own figures. How busy one of Intel's is, no file says.

use std::fs;
use std::path::{Path, PathBuf};

use gnntop_wire::Quantity;

use super::hot_file::{FileTrouble, HotFile};
use super::parse::decimal;
use crate::clock::monotonic_ns;
use crate::gpu_info::GpuInfo;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::{SignalIndex, SignalInfo};

/// The largest number of GPUs read.
const MAX_GPUS: usize = 64;
/// An AMD GPU with less memory than this shares the processor's.
const LEAST_OWN_MEMORY: i64 = 2 << 30;

/// Reads the files of GPUs.
#[derive(Debug)]
pub(crate) struct Drm {
    files: Vec<DrmFile>,
}

/// One file, which has one number.
#[derive(Debug)]
struct DrmFile {
    file: HotFile,
    signal: SignalIndex,
    scale: Scale,
}

/// How a file's number becomes that of the stream.
#[derive(Clone, Copy, Debug)]
enum Scale {
    Times(i64),
    Over(i64),
}

/// A file of a driver: its name, in the folder of the device or below it in `hwmon/hwmonN`, and what its number is.
struct DrmFileSpec {
    name: &'static str,
    is_hwmon: bool,
    quantity: Quantity,
    scale: Scale,
}

const fn file(name: &'static str, quantity: Quantity, scale: Scale) -> DrmFileSpec {
    DrmFileSpec { name, is_hwmon: false, quantity, scale }
}

const fn hwmon(name: &'static str, quantity: Quantity, scale: Scale) -> DrmFileSpec {
    DrmFileSpec { name, is_hwmon: true, quantity, scale }
}

/// Microwatts and microjoules to thousandths of a watt and a joule.
const MICRO: Scale = Scale::Over(1_000);

const AMD: [DrmFileSpec; 11] = [
    file("gpu_busy_percent", Quantity::GpuUtil, Scale::Times(1_000)),
    file("mem_busy_percent", Quantity::GpuMemoryUtil, Scale::Times(1_000)),
    file("mem_info_vram_total", Quantity::GpuMemoryTotal, Scale::Times(1)),
    file("mem_info_vram_used", Quantity::GpuMemoryUsed, Scale::Times(1)),
    hwmon("energy1_input", Quantity::GpuEnergy, MICRO),
    hwmon("power1_average", Quantity::GpuPower, MICRO),
    hwmon("power1_input", Quantity::GpuPowerNow, MICRO),
    hwmon("power1_cap", Quantity::GpuPowerLimit, MICRO),
    hwmon("temp1_input", Quantity::GpuTemperature, Scale::Times(1)),
    hwmon("freq1_input", Quantity::GpuClockSm, Scale::Over(1_000_000)),
    hwmon("freq2_input", Quantity::GpuClockMemory, Scale::Over(1_000_000)),
];

const INTEL: [DrmFileSpec; 5] = [
    hwmon("energy1_input", Quantity::GpuEnergy, MICRO),
    hwmon("power1_max", Quantity::GpuPowerLimit, MICRO),
    hwmon("temp2_input", Quantity::GpuTemperature, Scale::Times(1)),
    file("tile0/gt0/freq0/act_freq", Quantity::GpuClockSm, Scale::Times(1)),
    file("gt_act_freq_mhz", Quantity::GpuClockSm, Scale::Times(1)),
];

impl Drm {
    /// Opens those of this machine; they are numbered from `first` on, behind those of NVML.
    pub(crate) fn open(options: &SensorOptions, first: u32, registry: &mut Registry) -> (Self, Vec<GpuInfo>) {
        let (mut files, mut infos) = (Vec::new(), Vec::new());
        let cards = if options.gpu { cards(&options.sys_root.join("class/drm")) } else { Vec::new() };
        for (card, index) in cards.into_iter().filter_map(|path| Card::find(&path)).take(MAX_GPUS).zip(first..) {
            files.extend(card.register(index, registry));
            infos.push(card.info(index));
        }
        (Self { files }, infos)
    }
}

/// The folders of all cards, without their connectors, in order.
fn cards(folder: &Path) -> Vec<PathBuf> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("card")?.parse::<u32>().ok();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut cards: Vec<(u32, PathBuf)> = entries.filter_map(|path| Some((number(&path)?, path))).collect();
    cards.sort_unstable();
    cards.into_iter().map(|(_, path)| path).collect()
}

/// A GPU with memory of its own.
struct Card {
    path: PathBuf,
    device: PathBuf,
    hwmon: PathBuf,
    driver: String,
    slot: Option<String>,
    specs: &'static [DrmFileSpec],
    source: &'static str,
}

impl Card {
    fn find(path: &Path) -> Option<Self> {
        let device = path.join("device");
        let uevent = fs::read_to_string(device.join("uevent")).ok()?;
        let value = |name: &str| uevent.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let driver = value("DRIVER")?;
        let monitors = fs::read_dir(device.join("hwmon")).into_iter().flatten().flatten();
        let hwmon = monitors.map(|entry| entry.path()).min()?;
        let (specs, source, has_own_memory): (&[DrmFileSpec], _, _) = match driver {
            "amdgpu" => {
                let memory = number(&device.join("mem_info_vram_total")).unwrap_or(0);
                (&AMD, "amdgpu", memory >= LEAST_OWN_MEMORY)
            }
            // The driver of those that share memory has no such file.
            "i915" | "xe" => (&INTEL, "hwmon of i915 or xe", hwmon.join("energy1_input").exists()),
            _ => return None,
        };
        let (driver, slot) = (driver.to_owned(), value("PCI_SLOT_NAME").map(str::to_owned));
        has_own_memory.then(|| Self { path: path.to_owned(), device, hwmon, driver, slot, specs, source })
    }

    fn register(&self, index: u32, registry: &mut Registry) -> Vec<DrmFile> {
        let device = Some(self.name());
        let mut files: Vec<DrmFile> = Vec::new();
        for spec in self.specs {
            let folders = if spec.is_hwmon { vec![&self.hwmon] } else { vec![&self.device, &self.path] };
            let Some(path) = folders.into_iter().map(|folder| folder.join(spec.name)).find(|path| path.exists()) else {
                continue;
            };
            let metric = spec.quantity.with_instance(index);
            // Of two files for one number, the first counts.
            if registry.signals().iter().any(|signal| signal.metric == metric) {
                continue;
            }
            let signal = registry.add(SignalInfo { metric, source: self.source, device: device.clone() });
            files.push(DrmFile { file: HotFile::new(path), signal, scale: spec.scale });
        }
        files
    }

    fn name(&self) -> String {
        let text = |name: &str| fs::read_to_string(self.device.join(name)).unwrap_or_default().trim().to_owned();
        let product = Some(text("product_name")).filter(|name| !name.is_empty());
        let product =
            product.unwrap_or_else(|| if self.driver == "amdgpu" { "AMD GPU" } else { "Intel GPU" }.to_owned());
        self.slot.as_ref().map_or_else(|| product.clone(), |slot| format!("{product} ({slot})"))
    }

    fn info(&self, index: u32) -> GpuInfo {
        let memory = number(&self.device.join("mem_info_vram_total"));
        GpuInfo {
            index,
            uuid: self.slot.clone(),
            pci_slot: self.slot.clone(),
            name: Some(self.name()),
            memory_bytes: memory.and_then(|bytes| u64::try_from(bytes).ok()),
            driver: Some(self.driver.clone()),
        }
    }
}

fn number(path: &Path) -> Option<i64> {
    decimal(fs::read(path).ok()?.trim_ascii())
}

impl Sensor for Drm {
    fn name(&self) -> &'static str {
        "drm"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        self.files.iter_mut().for_each(|file| file.read(sink));
    }

    fn read_energy(&mut self, sink: &mut Sink<'_>) {
        let is_energy = |file: &&mut DrmFile| file.file.path().ends_with("energy1_input");
        self.files.iter_mut().filter(is_energy).for_each(|file| file.read(sink));
    }
}

impl DrmFile {
    fn read(&mut self, sink: &mut Sink<'_>) {
        let (t_ns, value) = match self.file.read() {
            Ok(snapshot) => (snapshot.t_ns, decimal(snapshot.bytes.trim_ascii())),
            // A GPU that sleeps answers that it does not exist now.
            Err(error) => {
                let trouble = FileTrouble { path: self.file.path(), error };
                return sink.absent(self.signal, monotonic_ns(), &trouble);
            }
        };
        match value.filter(|value| *value >= 0) {
            Some(value) => sink.value(self.signal, t_ns, self.scale.apply(value)),
            None => sink.absent(self.signal, t_ns, &"the driver returned no usable number"),
        }
    }
}

impl Scale {
    fn apply(self, value: i64) -> i64 {
        match self {
            Self::Times(factor) => value.saturating_mul(factor),
            Self::Over(divisor) => value / divisor,
        }
    }
}
