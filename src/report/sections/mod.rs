//! The sections of a report, one a file: what each holds, how it is gathered from the store, and how it reads.

pub(in crate::report) mod breakdown;
pub(in crate::report) mod classes;
pub(in crate::report) mod counters;
pub(in crate::report) mod curves;
pub(in crate::report) mod device;
pub(in crate::report) mod device_memory;
pub(in crate::report) mod durations;
pub mod energy;
pub(in crate::report) mod hardware;
pub(in crate::report) mod losses;
pub(in crate::report) mod marks;
pub(in crate::report) mod memory;
pub(in crate::report) mod noted;
pub(in crate::report) mod percentile_curve;
pub(in crate::report) mod ranks;
pub(in crate::report) mod restarts;
pub(in crate::report) mod sampled;
pub(in crate::report) mod session;
pub(in crate::report) mod stacks;
pub(in crate::report) mod steps;
pub(in crate::report) mod trace;
