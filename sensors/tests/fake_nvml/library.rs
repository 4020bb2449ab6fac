//! A stand-in for `libnvidia-ml.so.1`, built as a dynamic library by `mod.rs` beside this file.
//!
//! It exports the NVML functions that the sensors call, and does what the text file `<path of the library>.control`
//! says, which is read again at every call. Each line is
//! ```text
//! [DEVICE.]FUNCTION VALUE...      what the function gives, for one device or for all
//! [DEVICE.]FUNCTION error CODE    the nvmlReturn_t it fails with
//! [DEVICE.]* error CODE           every function of the device fails so
//! ```
//! and the last matching line holds. Without one, a function gives the default written in it below.
//! The library counts its initialisations less its shutdowns, which it writes to `<path of the library>.count`; at 0 every
//! other function fails with `UNINITIALIZED`.
//! Built with `--cfg old_driver`, the functions that old drivers lack are left out.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

type Device = *mut c_void;
type Status = c_uint;

const SUCCESS: Status = 0;
const UNINITIALIZED: Status = 1;
const NOT_FOUND: Status = 6;
const INSUFFICIENT_SIZE: Status = 7;

/// How often PCIe throughput was asked, which is also what it answers.
static PCIE_CALLS: AtomicU64 = AtomicU64::new(0);

/// How often the library was initialised and not shut down.
static INITIALISED: AtomicU64 = AtomicU64::new(0);

#[repr(C)]
struct DlInfo {
    file_name: *const c_char,
    base: *mut c_void,
    symbol_name: *const c_char,
    symbol: *mut c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
}

/// The path of this library with something added to it.
fn beside(suffix: &str) -> Option<PathBuf> {
    let mut info = DlInfo {
        file_name: std::ptr::null(),
        base: std::ptr::null_mut(),
        symbol_name: std::ptr::null(),
        symbol: std::ptr::null_mut(),
    };
    // SAFETY: the address is of this very library and `info` is writable.
    let found = unsafe { dladdr((&raw const PCIE_CALLS).cast(), &mut info) };
    if found == 0 || info.file_name.is_null() {
        return None;
    }
    // SAFETY: dladdr set it to the path this library was loaded from, which lives as long as the library.
    let path = unsafe { CStr::from_ptr(info.file_name) };
    let mut path = OsStr::from_bytes(path.to_bytes()).to_owned();
    path.push(suffix);
    Some(path.into())
}

/// What the control file says of a function: its values or its error, or `None` where it says nothing.
fn control_value(device: Option<u64>, function: &str) -> Option<Result<Vec<u64>, Status>> {
    let text = std::fs::read_to_string(beside(".control")?).ok()?;
    let mut control_value = None;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(subject) = words.next() else { continue };
        let (of, name) = match subject.split_once('.') {
            Some((of, name)) => (of.parse().ok(), name),
            None => (None, subject),
        };
        let of_this_device = of.is_none() || of == device;
        let named = name == function || (name == "*" && device.is_some());
        if !of_this_device || !named {
            continue;
        }
        let values: Vec<&str> = words.collect();
        control_value = Some(match values.as_slice() {
            ["error", code] => Err(code.parse().unwrap_or(999)),
            values => Ok(values.iter().filter_map(|value| value.parse().ok()).collect()),
        });
    }
    control_value
}

/// The values of a function: those given, or the default.
fn values(device: Option<u64>, function: &str, default: &[u64]) -> Result<Vec<u64>, Status> {
    if INITIALISED.load(Ordering::Relaxed) == 0 {
        return Err(UNINITIALIZED);
    }
    control_value(device, function).unwrap_or_else(|| Ok(default.to_vec()))
}

fn index(device: Device) -> Option<u64> {
    (device as u64).checked_sub(1)
}

fn uuid(index: u64) -> CString {
    CString::new(format!("GPU-fa4e0000-0000-0000-0000-00000000000{index}")).unwrap_or_default()
}

/// Puts one value where the caller wants it.
unsafe fn put<T: TryFrom<u64>>(result: Result<Vec<u64>, Status>, out: *mut T) -> Status {
    match result {
        Err(status) => status,
        Ok(values) => {
            let value = values.first().and_then(|value| T::try_from(*value).ok());
            // SAFETY: NVML's callers hand in a pointer to a value of the function's type.
            value.map_or(999, |value| unsafe {
                out.write(value);
                SUCCESS
            })
        }
    }
}

unsafe fn put_text(text: &CStr, out: *mut c_char, length: c_uint) -> Status {
    let bytes = text.to_bytes_with_nul();
    if bytes.len() > length as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: the caller hands in `length` writable bytes, and the text was found to fit.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    SUCCESS
}

fn device_count() -> Result<u64, Status> {
    Ok(values(None, "nvmlDeviceGetCount_v2", &[1])?.first().copied().unwrap_or(0))
}

/// Opens a device, which may be told to fail.
unsafe fn open(index: u64, function: &str, out: *mut Device) -> Status {
    match (device_count(), values(Some(index), function, &[])) {
        (Err(status), _) | (_, Err(status)) => status,
        (Ok(count), _) if index >= count => NOT_FOUND,
        // SAFETY: the caller hands in a pointer to a handle.
        _ => unsafe {
            out.write((index + 1) as Device);
            SUCCESS
        },
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> Status {
    match control_value(None, "nvmlInit_v2") {
        Some(Err(status)) => status,
        _ => count(INITIALISED.fetch_add(1, Ordering::Relaxed) + 1),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> Status {
    match INITIALISED.load(Ordering::Relaxed) {
        0 => UNINITIALIZED,
        now => {
            INITIALISED.store(now - 1, Ordering::Relaxed);
            count(now - 1)
        }
    }
}

/// Writes down how often the library is initialised.
fn count(initialised: u64) -> Status {
    let written = beside(".count").map(|path| std::fs::write(path, initialised.to_string()));
    if written.is_some_and(|written| written.is_ok()) { SUCCESS } else { 999 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) -> Status {
    unsafe { put_text(c"580.82.07", out, length) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut c_uint) -> Status {
    unsafe { put(device_count().map(|count| vec![count]), out) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut Device) -> Status {
    unsafe { open(index.into(), "nvmlDeviceGetHandleByIndex_v2", out) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(wanted: *const c_char, out: *mut Device) -> Status {
    let wanted = unsafe { CStr::from_ptr(wanted) };
    match (0..16).find(|index| uuid(*index).as_c_str() == wanted) {
        Some(index) => unsafe { open(index, "nvmlDeviceGetHandleByUUID", out) },
        None => NOT_FOUND,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: Device, out: *mut c_char, length: c_uint) -> Status {
    match values(index(device), "nvmlDeviceGetUUID", &[]) {
        Err(status) => status,
        Ok(_) => unsafe { put_text(&uuid(index(device).unwrap_or(0)), out, length) },
    }
}

/// `nvmlPciInfo_t`.
#[repr(C)]
pub struct PciInfo {
    legacy_bus_id: [u8; 16],
    numbers: [c_uint; 5],
    bus_id: [u8; 32],
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: Device, out: *mut PciInfo) -> Status {
    let mut info = PciInfo { legacy_bus_id: [0; 16], numbers: [0; 5], bus_id: [0; 32] };
    let text = format!("00000000:{:02X}:00.0", 0x3B + index(device).unwrap_or(0));
    info.bus_id[..text.len()].copy_from_slice(text.as_bytes());
    unsafe { *out = info };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: Device, out: *mut c_char, length: c_uint) -> Status {
    match values(index(device), "nvmlDeviceGetName", &[]) {
        Err(status) => status,
        Ok(_) => unsafe { put_text(c"NVIDIA Fake 100", out, length) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(device: Device, out: *mut [c_uint; 2]) -> Status {
    match values(index(device), "nvmlDeviceGetUtilizationRates", &[87, 42]) {
        Err(status) => status,
        Ok(rates) => {
            let rate = |slot: usize| rates.get(slot).map_or(0, |rate| *rate as c_uint);
            unsafe { out.write([rate(0), rate(1)]) };
            SUCCESS
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: Device, out: *mut c_uint) -> Status {
    unsafe { put(values(index(device), "nvmlDeviceGetPowerUsage", &[251_000]), out) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: Device, out: *mut c_uint) -> Status {
    unsafe { put(values(index(device), "nvmlDeviceGetEnforcedPowerLimit", &[700_000]), out) }
}

/// `clock` 1 is the SM's, 2 the memory's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(device: Device, clock: c_uint, out: *mut c_uint) -> Status {
    let megahertz = values(index(device), "nvmlDeviceGetClockInfo", &[1980, 3201]);
    let slot = usize::from(clock == 2);
    unsafe { put(megahertz.map(|both| both.get(slot).copied().into_iter().collect()), out) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(device: Device, _sensor: c_uint, out: *mut c_uint) -> Status {
    unsafe { put(values(index(device), "nvmlDeviceGetTemperature", &[64]), out) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(device: Device, out: *mut c_ulonglong) -> Status {
    unsafe { put(values(index(device), "nvmlDeviceGetCurrentClocksThrottleReasons", &[4]), out) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPcieThroughput(device: Device, _counter: c_uint, out: *mut c_uint) -> Status {
    let calls = PCIE_CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    unsafe { put(values(index(device), "nvmlDeviceGetPcieThroughput", &[calls]), out) }
}

#[cfg(not(old_driver))]
mod newer {
    use super::*;

    #[repr(C)]
    pub struct Memory {
        version: c_uint,
        total: c_ulonglong,
        reserved: c_ulonglong,
        free: c_ulonglong,
        used: c_ulonglong,
    }

    #[repr(C)]
    pub struct Process {
        pid: c_uint,
        used_bytes: c_ulonglong,
        gpu_instance: c_uint,
        compute_instance: c_uint,
    }

    #[repr(C)]
    pub struct FieldValue {
        field: c_uint,
        scope: c_uint,
        timestamp_us: i64,
        latency_us: i64,
        value_type: c_uint,
        status: Status,
        value: u64,
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(device: Device, out: *mut c_ulonglong) -> Status {
        unsafe { put(values(index(device), "nvmlDeviceGetTotalEnergyConsumption", &[123_456_789]), out) }
    }

    /// Control values: total and used bytes.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, out: *mut Memory) -> Status {
        match values(index(device), "nvmlDeviceGetMemoryInfo_v2", &[150_754_820_096, 1 << 30]) {
            Err(status) => status,
            Ok(values) => {
                let value = |slot: usize| values.get(slot).copied().unwrap_or(0);
                let (total, used) = (value(0), value(1));
                let free = total.saturating_sub(used);
                unsafe { out.write(Memory { version: 2 << 24 | 40, total, reserved: 0, free, used }) };
                SUCCESS
            }
        }
    }

    /// Control values: PID and bytes of each process in turn.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
        device: Device,
        count: *mut c_uint,
        out: *mut Process,
    ) -> Status {
        let values = match values(index(device), "nvmlDeviceGetComputeRunningProcesses_v3", &[]) {
            Err(status) => return status,
            Ok(values) => values,
        };
        let room = unsafe { count.read() } as usize;
        unsafe { count.write((values.len() / 2) as c_uint) };
        if room < values.len() / 2 {
            return INSUFFICIENT_SIZE;
        }
        for (slot, process) in values.chunks_exact(2).enumerate() {
            let pid = process[0] as c_uint;
            let process = Process { pid, used_bytes: process[1], gpu_instance: u32::MAX, compute_instance: u32::MAX };
            unsafe { out.add(slot).write(process) };
        }
        SUCCESS
    }

    /// Control values of `field186`: one number, or its error, which is that of the field and not of the call.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nvmlDeviceGetFieldValues(device: Device, count: c_int, fields: *mut FieldValue) -> Status {
        if let Err(status) = values(index(device), "nvmlDeviceGetFieldValues", &[]) {
            return status;
        }
        for slot in 0..count as usize {
            let field = unsafe { &mut *fields.add(slot) };
            field.value_type = 1;
            match values(index(device), &format!("field{}", field.field), &[333_000]) {
                Ok(values) => (field.status, field.value) = (SUCCESS, values.first().copied().unwrap_or(0)),
                Err(status) => field.status = status,
            }
        }
        SUCCESS
    }
}
