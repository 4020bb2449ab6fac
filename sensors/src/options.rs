//! What to open, and where to look for it.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// What to open, and where to look for it.
///
/// The default is this process on this machine with its GPUs.
#[derive(Clone, Debug)]
pub struct SensorOptions {
    /// The process whose CPU time, memory and faults are read.
    pub pid: u32,
    /// Whether the CPU time, memory, faults and threads of processes that it has started count as its own. Reads all
    /// processes once a second.
    pub descendants: bool,
    /// Where the process file system is mounted, `/proc` by default.
    pub proc_root: PathBuf,
    /// Where the kernel's device tree is mounted, `/sys` by default.
    pub sys_root: PathBuf,
    /// Where the processor's energy counters are, instead of `class/powercap` under `sys_root`: for a container that
    /// has them mounted elsewhere. The default is that of [`set_powercap_root`] or [`POWERCAP_ROOT`].
    pub powercap_root: Option<PathBuf>,
    /// Whether every core gets its own signals. On machines with hundreds of cores these are most of the volume.
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
    /// Where the processor's energy counters are.
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

/// The environment variable with the folder of the processor's energy counters.
pub const POWERCAP_ROOT: &str = "GNNTOP_POWERCAP_ROOT";

/// The folder given by a command's flag.
static POWERCAP_ROOT_OVERRIDE: OnceLock<PathBuf> = OnceLock::new();

/// Makes all default [`SensorOptions`] from now on in this process look for the processor's energy counters in `dir`,
/// whatever [`POWERCAP_ROOT`] says. The first call counts.
pub fn set_powercap_root(dir: PathBuf) {
    // The first call was the command line's.
    let _ = POWERCAP_ROOT_OVERRIDE.set(dir);
}

fn powercap_root() -> Option<PathBuf> {
    let of_variable = || std::env::var_os(POWERCAP_ROOT).filter(|path| !path.is_empty()).map(PathBuf::from);
    POWERCAP_ROOT_OVERRIDE.get().cloned().or_else(of_variable)
}
