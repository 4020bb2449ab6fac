//! Facts about a GPU.

/// One GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// Its NVML number, which its signals' names contain. Not the CUDA number: join by `uuid`.
    pub index: u32,
    /// The name that stays the same across restarts, or `None` if the GPU could not be opened.
    pub uuid: Option<String>,
    /// Its place on the PCI bus, as Linux writes it: `0000:3b:00.0`.
    pub pci_slot: Option<String>,
    /// The product's name, such as `NVIDIA H200`.
    pub name: Option<String>,
    /// Installed memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The driver's version, such as `580.82.07`.
    pub driver: Option<String>,
}
