//! Freed memory: whether the process keeps it for the next step.

/// Asks the C library to keep freed memory instead of returning it to the system. Training frees and takes the same
/// large blocks in every step; if they are returned, each costs its page faults again, which on a small machine is a
/// good part of the step. Meant for a process that only trains: its memory stays at its peak. Returns whether this
/// platform has the switch (Linux with glibc has).
pub fn keep_freed_memory() -> bool {
    keep()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep() -> bool {
    /// Blocks up to this size come from the heap, not from their own mappings: glibc's largest value.
    const LARGEST_HEAP_BLOCK: libc::c_int = 32 << 20;
    /// Free memory at the heap's end is kept up to this size.
    const KEPT: libc::c_int = libc::c_int::MAX;
    // SAFETY: mallopt sets two numbers of the allocator under its own lock and touches no memory of ours; glibc's
    // documentation allows it at any time and from any thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_HEAP_BLOCK) == 1
            && libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT) == 1
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep() -> bool {
    false
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn glibc_takes_the_settings() {
        assert!(keep_freed_memory());
    }
}
