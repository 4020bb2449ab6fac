//! What can be measured. Other crates name a measured value by its [`Quantity`]; its text exists only here, in imports and
//! on screens.

mod metric;
mod table;

pub use metric::{AnyMetric, Metric, UnknownMetric};
pub use table::Quantity;

/// What a quantity is measured of. Some have several instances, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The observed process.
    Process,
    /// The whole machine.
    Machine,
    /// A thread of a CPU, by the kernel's number.
    Core,
    /// A processor package.
    Package,
    /// The memory of a processor package.
    Dram,
    /// A GPU, by NVML's number, which need not be CUDA's.
    Gpu,
    /// The share of the machine that the process may use.
    Allotted,
    /// The publisher itself.
    Publisher,
}

impl Scope {
    /// Whether there may be several instances.
    pub const fn is_numbered(self) -> bool {
        matches!(self, Self::Core | Self::Package | Self::Dram | Self::Gpu)
    }
}

impl Quantity {
    /// This quantity of an instance, such as GPU 0.
    pub const fn with_instance(self, instance: u32) -> Metric {
        Metric { quantity: self, instance: if self.scope().is_numbered() { instance } else { 0 } }
    }
}
