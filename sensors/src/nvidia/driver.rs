//! The NVML library, loaded at run time, and the GPUs opened through it.

use std::ffi::OsStr;
use std::fmt;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

/// Where to look for the library if the loader does not find it: WSL, NixOS, and GKE in turn.
#[cfg(target_os = "linux")]
const OTHER_PLACES: [&str; 3] = [
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
];
#[cfg(not(target_os = "linux"))]
const OTHER_PLACES: [&str; 0] = [];

/// An initialised NVML with the devices opened in it. It is shut down and unloaded when this is dropped, unless it is to stay.
pub(super) struct Driver {
    /// Handles into `nvml`, by NVML's number. Declared first, so that they are dropped first.
    devices: Vec<Option<Device<'static>>>,
    nvml: Arc<Nvml>,
    stays: bool,
}

impl Driver {
    /// Loads and initialises NVML: the given library, or the driver's own. With `stays`, one that works is never shut down:
    /// NVML would close its descriptors, whose numbers may be those of the program's files by then.
    pub(super) fn load(library: Option<&Path>, stays: bool) -> Result<Self, String> {
        let nvml = match library {
            Some(path) => Nvml::builder().lib_path(path.as_os_str()).init(),
            None => Nvml::init().or_else(|error| load_from_other_places().ok_or(error)),
        };
        let nvml = nvml.map_err(|error| NoDriver { library, error }.to_string())?;
        match nvml.device_count() {
            // It was initialised this moment, and so is shut down again.
            Err(error) if library_is_gone(&error) => Err(NvmlErrorText(&error).to_string()),
            _ => Ok(Self { devices: Vec::new(), nvml: Arc::new(nvml), stays }),
        }
    }

    pub(super) fn version(&self) -> Option<String> {
        self.nvml.sys_driver_version().ok()
    }

    /// How many GPUs the driver sees, including any that this user may not open.
    pub(super) fn device_count(&self) -> Result<u32, NvmlError> {
        self.nvml.device_count()
    }

    /// Opens a device, or reopens it: by UUID if known, since numbers may have changed.
    pub(super) fn open_device(&mut self, index: u32, uuid: Option<&str>) -> Result<&Device<'_>, NvmlError> {
        // SAFETY: the reference is good for as long as the `Nvml` is, which the `Arc` in `self.nvml` keeps at one
        // address. It is given only to the devices in `self.devices`, which are private, are lent out for no longer
        // than `self`, and are dropped before `self.nvml`, which nothing replaces.
        let nvml: &'static Nvml = unsafe { &*Arc::as_ptr(&self.nvml) };
        let device = match uuid {
            Some(uuid) => nvml.device_by_uuid(uuid)?,
            None => nvml.device_by_index(index)?,
        };
        let slot = index as usize;
        if self.devices.len() <= slot {
            self.devices.resize_with(slot + 1, || None);
        }
        Ok(self.devices[slot].insert(device))
    }

    /// The device, if it was opened.
    pub(super) fn device(&self, index: u32) -> Option<&Device<'_>> {
        self.devices.get(index as usize)?.as_ref()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.stays {
            mem::forget(Arc::clone(&self.nvml));
        }
    }
}

/// Whether NVML must be reloaded before anything works.
pub(super) fn library_is_gone(error: &NvmlError) -> bool {
    matches!(error, NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch)
}

fn load_from_other_places() -> Option<Nvml> {
    OTHER_PLACES
        .iter()
        .filter(|path| Path::new(path).exists())
        .find_map(|path| Nvml::builder().lib_path(OsStr::new(path)).init().ok())
}

/// Whether this program is linked statically, such as for musl: then it can load no library.
const IS_STATIC: bool = cfg!(target_feature = "crt-static");

/// Why NVML could not be started.
struct NoDriver<'a> {
    library: Option<&'a Path>,
    error: NvmlError,
}

impl fmt::Display for NoDriver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default_name = Path::new(if cfg!(windows) { "nvml.dll" } else { "libnvidia-ml.so.1" });
        let name = self.library.unwrap_or(default_name).display();
        match &self.error {
            NvmlError::LibloadingError(_) if IS_STATIC => write!(f, "a statically linked program cannot load {name}"),
            NvmlError::LibloadingError(error) => {
                let text = error.to_string();
                if text.contains("No such file") || text.contains("cannot find") {
                    write!(f, "no NVIDIA driver: {name} not found")
                } else {
                    write!(f, "no NVIDIA driver: {name} cannot be loaded ({text})")
                }
            }
            NvmlError::FailedToLoadSymbol(_) => write!(f, "{name} is not an NVML library"),
            error => write!(f, "{}", NvmlErrorText(error)),
        }
    }
}

/// Describes an NVML error for people.
pub(super) struct NvmlErrorText<'a>(pub(super) &'a NvmlError);

impl fmt::Display for NvmlErrorText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            NvmlError::NotSupported => "not supported by this GPU",
            NvmlError::NoPermission => "this user may not read it (root may)",
            NvmlError::GpuLost => "the GPU is lost: it fell off the bus",
            NvmlError::ResetRequired => "the GPU must be reset before it can be read",
            NvmlError::NotFound => "the GPU is gone",
            NvmlError::DriverNotLoaded => "the NVIDIA driver is not loaded",
            NvmlError::Uninitialized => "NVML was shut down",
            NvmlError::LibRmVersionMismatch => {
                "NVIDIA driver and library differ in version: reboot, or reload the driver"
            }
            NvmlError::OperatingSystem => "the system or the container blocks access to the GPU",
            other => return write!(f, "NVML: {other}"),
        })
    }
}
