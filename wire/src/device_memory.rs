//! Names of the counters that tell a device's memory, in bytes but for [`ALLOCATIONS`]. A name stands for one quantity;
//! those that a phase or a kind of memory goes with end with it.
//!
//! The publisher reads them at the edges of phases, in some steps only: reading costs the driver's time.

/// In tensors, when a measured step ended.
pub const USED: &str = "device memory used";
/// In tensors, the most since the measured step before, steps between included.
pub const PEAK: &str = "device memory peak";
/// Taken from the device, in tensors or kept for the next ones, when a measured step ended.
pub const RESERVED: &str = "device memory reserved";
/// Taken from the device, the most since the measured step before.
pub const RESERVED_PEAK: &str = "device memory reserved peak";
/// What no program has taken.
pub const FREE: &str = "device memory free";
/// Of the device.
pub const TOTAL: &str = "device memory total";
/// Allocations in a measured step, where the pool counts them. A number.
pub const ALLOCATIONS: &str = "device memory allocations";

/// Before a phase's name: in tensors, the most while the phase ran, in a measured step.
pub const PEAK_IN: &str = "device memory peak in ";
/// Before a phase's name: reserved, the most while the phase ran.
pub const RESERVED_PEAK_IN: &str = "device memory reserved peak in ";
/// Before the name of a [`KINDS`] entry: how much of the memory is for this.
pub const KIND: &str = "device memory of ";

/// What memory is for, in the order in which it is shown, with how each figure comes about.
pub const KINDS: [(&str, &str); 6] = [
    ("parameters", "the sizes of all trainable tensors"),
    ("gradients", "as many bytes as the parameters they belong to, from the end of backward on"),
    ("optimizer state", "the sizes of Adam's two moments"),
    ("batch", "in use when forward begins, beyond parameters, gradients and optimizer state"),
    ("activations", "in use when forward ends, beyond what was when it began"),
    ("workspace", "the step's peak beyond all of these"),
];

/// Whether a counter of this name tells a device's memory.
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
