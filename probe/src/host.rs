//! Which machine this is.

/// The machine's name.
pub(crate) fn name() -> String {
    read("/proc/sys/kernel/hostname")
}

/// Identifies this boot of the machine: its monotonic clock.
pub(crate) fn boot_id() -> String {
    read("/proc/sys/kernel/random/boot_id")
}

/// Tells this machine, since it was started, from any other: two programs with the same identity have the same monotonic
/// clock and share their processors.
pub fn host_identity() -> String {
    format!("{} {}", name(), boot_id())
}

/// Empty where the system does not tell.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
