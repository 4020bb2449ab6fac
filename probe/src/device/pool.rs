//! Where a device's memory comes from, and what it reports.

/// An allocator of a device's memory.
pub trait Pool: Send {
    /// Current and peak use; `None` if the driver does not report it.
    fn read(&mut self) -> Option<PoolUse>;

    /// Resets the peaks to the current use.
    fn reset_peaks(&mut self);
}

/// A device's memory as seen by this program, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUse {
    /// Held by tensors now.
    pub used: u64,
    /// Peak held by tensors since the peaks were reset.
    pub used_peak: u64,
    /// Taken from the device, whether held by tensors or cached.
    pub reserved: u64,
    /// Peak taken from the device since the peaks were reset.
    pub reserved_peak: u64,
    /// Not taken by any program.
    pub free: u64,
    /// The device's total.
    pub total: u64,
    /// Allocations since the start, if the pool counts them.
    pub allocations: Option<u64>,
}

/// What a training run holds on its device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Trainable tensors.
    pub parameters: u64,
    /// Their gradients, from the end of backward to the end of the step.
    pub gradients: u64,
    /// What the optimizer keeps between steps.
    pub optimizer: u64,
}

/// What is known of a device's memory when it has run out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// Use now.
    pub now: PoolUse,
    /// Peak held by tensors: in this step if it is measured, else since the last measured step.
    pub peak: u64,
    /// The phase that began or ended last.
    pub phase: Option<String>,
    /// The step; 0 before the first.
    pub step: u64,
    /// What memory was for in the last measured step, as in [`gnntop_wire::Purpose`], largest first.
    pub holders: Vec<(&'static str, u64)>,
}
