//! Constants of the running kernel.

/// Nanoseconds of one clock tick, the unit of times in `/proc` (10 ms on every common kernel).
pub(super) fn ns_per_tick() -> i64 {
    1_000_000_000 / i64::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100).max(1)
}

/// Bytes of one page of memory.
pub(super) fn page_bytes() -> i64 {
    i64::try_from(rustix::param::page_size()).unwrap_or(4096)
}
