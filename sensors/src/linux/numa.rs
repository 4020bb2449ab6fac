//! NUMA nodes: cores with memory of their own, usually a socket. On which node the process's main thread runs, and to which each
//! GPU is attached. Nothing of it is registered on machines with one node.

use std::fs;
use std::path::Path;

use gnntop_wire::Quantity;

use super::parse::{decimal, number_list};
use crate::clock::monotonic_ns;
use crate::gpu_info::GpuInfo;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::{SignalIndex, SignalInfo};

/// The largest numbers of nodes and of cores that are looked at.
const NODE_LIMIT: u32 = 256;
const CORE_LIMIT: usize = 8192;
/// Where the kernel says which cores a node has.
const CORES_SOURCE: &str = "/sys/devices/system/node";

/// The cores of each node that has any; `None` with fewer than two of these.
fn nodes(sys_root: &Path) -> Option<Vec<(u32, Vec<u32>)>> {
    let folder = sys_root.join("devices/system/node");
    let cores = |node: u32| {
        let list = fs::read(folder.join(format!("node{node}/cpulist"))).ok()?;
        Some((node, number_list(list.trim_ascii(), CORE_LIMIT))).filter(|(_, cores)| !cores.is_empty())
    };
    let nodes: Vec<_> = (0..NODE_LIMIT).filter_map(cores).collect();
    (nodes.len() > 1).then_some(nodes)
}

/// The node on which the process's main thread last ran. Part of [`super::process`], which knows its core.
#[derive(Debug)]
pub(super) struct MainThreadNode {
    nodes: Vec<(u32, Vec<u32>)>,
    signal: SignalIndex,
}

impl MainThreadNode {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Option<Self> {
        let nodes = nodes(&options.sys_root)?;
        Some(Self { nodes, signal: registry.plain(Quantity::MainThreadNumaNode, CORES_SOURCE) })
    }

    /// The signal that it gives.
    pub(super) fn signal(&self) -> SignalIndex {
        self.signal
    }

    /// Gives the node of this core.
    pub(super) fn read(&self, core: Option<i64>, sink: &mut Sink<'_>) {
        let t_ns = monotonic_ns();
        let core = core.and_then(|core| u32::try_from(core).ok());
        match core.and_then(|core| self.nodes.iter().find(|(_, cores)| cores.contains(&core))) {
            Some((node, _)) => sink.value(self.signal, t_ns, i64::from(*node)),
            None => sink.absent(self.signal, t_ns, &"the core is on no known node"),
        }
    }
}

/// The nodes to which GPUs are attached, which do not change.
#[derive(Debug)]
pub(crate) struct GpuNodes {
    nodes: Vec<(SignalIndex, i64)>,
}

impl GpuNodes {
    /// `None` where no GPU's node is known.
    pub(crate) fn open(options: &SensorOptions, gpus: &[GpuInfo], registry: &mut Registry) -> Option<Self> {
        nodes(&options.sys_root)?;
        let register = |gpu: &GpuInfo| {
            let path = options.sys_root.join("bus/pci/devices").join(gpu.pci_slot.as_ref()?).join("numa_node");
            let node = decimal(fs::read(path).ok()?.trim_ascii()).filter(|node| *node >= 0)?;
            let metric = Quantity::GpuNumaNode.with_instance(gpu.index);
            let signal = registry.add(SignalInfo { metric, source: "/sys/bus/pci/devices", device: gpu.name.clone() });
            Some((signal, node))
        };
        let nodes: Vec<_> = gpus.iter().filter_map(register).collect();
        (!nodes.is_empty()).then_some(Self { nodes })
    }
}

impl Sensor for GpuNodes {
    fn name(&self) -> &'static str {
        "numa"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let t_ns = monotonic_ns();
        self.nodes.iter().for_each(|(signal, node)| sink.value(*signal, t_ns, *node));
    }
}
