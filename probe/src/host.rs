//! Identifies this machine.

/// The machine's name.
pub(crate) fn name() -> String {
    read("/proc/sys/kernel/hostname")
}

/// Identifies this boot of the machine, and so its monotonic clock.
pub(crate) fn boot_id() -> String {
    read("/proc/sys/kernel/random/boot_id")
}

/// Identifies this boot of this machine. Two programs with the same identity have the same monotonic clock and share their
/// processors.
pub fn host_identity() -> String {
    format!("{} {}", name(), boot_id())
}

/// Empty if the system does not provide it.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
