//! Where a device's memory comes from, and what is told of it.

/// Where a device's memory comes from.
pub trait Pool: Send {
    /// What is in use and at its peak; `None` where the driver does not say.
    fn read(&mut self) -> Option<PoolUse>;

    /// Forgets the peaks: they are what is in use now.
    fn reset_peaks(&mut self);
}

/// Memory of a device that this program uses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUse {
    /// In tensors now.
    pub used: u64,
    /// In tensors, the most since the peaks were reset.
    pub used_peak: u64,
    /// Taken from the device, in tensors or kept for the next ones.
    pub reserved: u64,
    /// Taken from the device, the most since the peaks were reset.
    pub reserved_peak: u64,
    /// What no program has taken.
    pub free: u64,
    /// Of the device.
    pub total: u64,
    /// Allocations since the start, where the pool counts them.
    pub allocations: Option<u64>,
}

/// What a training holds on its device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Trainable tensors.
    pub parameters: u64,
    /// Their gradients, from the end of backward to the end of the step.
    pub gradients: u64,
    /// What the optimizer keeps from step to step.
    pub optimizer: u64,
}

/// A device's memory as far as it is known when it has run out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// Now.
    pub now: PoolUse,
    /// In tensors, the most in this step where it is measured, else since the measured step before.
    pub peak: u64,
    /// The phase that began or ended last.
    pub phase: Option<String>,
    /// The step, 0 before the first.
    pub step: u64,
    /// What memory was for in the last measured step, as in [`gnntop_wire::device_memory::KINDS`], the largest first.
    pub holders: Vec<(&'static str, u64)>,
}
