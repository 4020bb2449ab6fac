//! Names of the counters that report a device's memory, in bytes except for [`ALLOCATIONS`]. Each name is one quantity;
//! names for a phase or a kind of memory end with that phase or kind.
//!
//! The publisher reads them at the start and end of phases, in some steps only: reading takes the driver's time.

/// Held by tensors when a measured step ended.
pub const USED: &str = "device memory used";
/// Peak held by tensors since the last measured step, including the steps between.
pub const PEAK: &str = "device memory peak";
/// Taken from the device, whether held by tensors or cached, when a measured step ended.
pub const RESERVED: &str = "device memory reserved";
/// Peak taken from the device since the last measured step.
pub const RESERVED_PEAK: &str = "device memory reserved peak";
/// Not taken by any program.
pub const FREE: &str = "device memory free";
/// The device's total.
pub const TOTAL: &str = "device memory total";
/// Number of allocations in a measured step, if the pool counts them.
pub const ALLOCATIONS: &str = "device memory allocations";

/// Prefix of a phase's name: peak held by tensors while the phase ran in a measured step.
pub const PEAK_IN: &str = "device memory peak in ";
/// Prefix of a phase's name: peak reserved while the phase ran.
pub const RESERVED_PEAK_IN: &str = "device memory reserved peak in ";
/// Prefix of the name of a [`KINDS`] entry: memory used for this.
pub const KIND: &str = "device memory of ";

/// What memory is for, in display order, with how each figure is derived.
pub const KINDS: [(&str, &str); 6] = [
    ("parameters", "the sizes of all trainable tensors"),
    ("gradients", "as many bytes as the parameters they belong to, from the end of backward on"),
    ("optimizer state", "the sizes of Adam's two moments"),
    ("batch", "in use when forward begins, beyond parameters, gradients and optimizer state"),
    ("activations", "in use when forward ends, beyond what was when it began"),
    ("workspace", "the step's peak beyond all of these"),
];

/// Whether a counter of this name reports a device's memory.
pub fn is_one(counter: &str) -> bool {
    counter.starts_with("device memory ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_as_one() {
        let names = [USED, PEAK, RESERVED, RESERVED_PEAK, FREE, TOTAL, ALLOCATIONS, PEAK_IN, RESERVED_PEAK_IN, KIND];
        assert!(names.into_iter().all(is_one));
        assert!(!is_one("queue depth"));
    }
}
