//! Edges on a device: both layouts of an adjacency, and how nodes with many edges are divided.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use candle_core::{CudaStorage, DType, Device, Result, Tensor, bail};

use super::kernel::{Address, wide};
use super::machine::{View, device_of};
use gnntop_data::graph::Adjacency;

/// Number of edges from which a node is computed in parts, and edges per part.
const HUB_EDGES: usize = 1024;

/// Lists of numbers in one piece of memory, so that a single copy brings them to a device.
#[derive(Debug, Default)]
pub(super) struct Lists {
    numbers: Vec<u32>,
}

impl Lists {
    pub(super) fn push(&mut self, list: impl IntoIterator<Item = u32>) -> Range<usize> {
        let start = self.numbers.len();
        self.numbers.extend(list);
        start..self.numbers.len()
    }

    pub(super) fn copy_to(mut self, device: &Device) -> Result<Tensor> {
        self.numbers.extend(self.numbers.is_empty().then_some(0));
        let length = self.numbers.len();
        Tensor::from_vec(self.numbers, length, device)
    }
}

/// Edges by the nodes on one side of them.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(super) nodes: usize,
    /// Nodes on the other side.
    pub(super) others: usize,
    pub(super) edges: usize,
    pub(super) start: Range<usize>,
    /// The node on the other side of each edge.
    pub(super) other: Range<usize>,
    /// Number of each edge, where that is not its position.
    pub(super) number: Option<Range<usize>>,
    pub(super) hubs: Hubs,
}

/// Nodes with many edges, and their parts.
#[derive(Debug)]
pub(super) struct Hubs {
    pub(super) hub_edges: u32,
    pub(super) nodes: Range<usize>,
    /// Where the parts of each start, `[hubs + 1]`.
    pub(super) parts: Range<usize>,
    pub(super) part_node: Range<usize>,
    pub(super) part_begin: Range<usize>,
    pub(super) part_end: Range<usize>,
}

impl Hubs {
    fn find(lists: &mut Lists, start: &[u32], hub_edges: usize) -> Self {
        let hub_edges = hub_edges.max(1);
        let mut parts: Vec<(u32, u32, u32)> = Vec::new();
        let (mut nodes, mut first_part) = (Vec::new(), vec![0]);
        for (node, row) in start.windows(2).enumerate() {
            if ((row[1] - row[0]) as usize) < hub_edges {
                continue;
            }
            let begins = (row[0]..row[1]).step_by(hub_edges);
            parts.extend(begins.map(|begin| (node as u32, begin, row[1].min(begin + hub_edges as u32))));
            nodes.push(node as u32);
            first_part.push(parts.len() as u32);
        }
        Self {
            hub_edges: hub_edges as u32,
            nodes: lists.push(nodes),
            parts: lists.push(first_part),
            part_node: lists.push(parts.iter().map(|part| part.0)),
            part_begin: lists.push(parts.iter().map(|part| part.1)),
            part_end: lists.push(parts.iter().map(|part| part.2)),
        }
    }
}

impl Walk {
    /// Puts edges by the nodes on one side into `lists`. `start` is checked to ascend, and `other` to be in range.
    pub(super) fn new(
        lists: &mut Lists,
        start: &[u32],
        (others, other): (usize, impl IntoIterator<Item = u32>),
        number: Option<Vec<u32>>,
        hub_edges: usize,
    ) -> Self {
        let other = lists.push(other);
        Self {
            nodes: start.len() - 1,
            others,
            edges: other.len(),
            start: lists.push(start.iter().copied()),
            other,
            number: number.map(|number| lists.push(number)),
            hubs: Hubs::find(lists, start, hub_edges),
        }
    }

    pub(super) fn hub_count(&self) -> usize {
        self.hubs.nodes.len()
    }

    pub(super) fn part_count(&self) -> usize {
        self.hubs.part_node.len()
    }
}

/// Copies edges to a GPU before the first kernel needs them; does nothing for host memory.
///
/// # Errors
/// The device has too little memory.
pub fn copy_edges(adjacency: &Adjacency, device: &Device) -> Result<()> {
    if device.is_cuda() {
        Edges::new(adjacency, device)?;
    }
    Ok(())
}

/// Prepares in host memory what [`copy_edges`] copies: the longer part of its work, which another thread can do.
pub fn stage_edges(adjacency: &Adjacency) {
    adjacency.on_device().stage(Staged::new(adjacency));
}

/// An adjacency prepared for a device, in host memory: everything but the copy.
#[derive(Debug)]
pub(super) struct Staged {
    lists: Lists,
    incoming: Walk,
    outgoing: Walk,
    targets: Range<usize>,
    degrees: Vec<f64>,
}

impl Staged {
    /// Puts an adjacency together.
    fn new(adjacency: &Adjacency) -> Self {
        let (mut lists, hub_edges) = (Lists::default(), HUB_EDGES.min(adjacency.hub_edges()));
        let sources = (adjacency.source_nodes(), adjacency.sources().iter().copied());
        let incoming = Walk::new(&mut lists, adjacency.target_starts(), sources, None, hub_edges);
        let reverse = adjacency.reverse();
        let numbers = reverse.iter().map(|edge| edge.1).collect();
        let targets = (adjacency.nodes(), reverse.iter().map(|edge| edge.0));
        let outgoing = Walk::new(&mut lists, adjacency.source_starts(), targets, Some(numbers), hub_edges);
        let targets =
            (0..adjacency.nodes()).flat_map(|node| std::iter::repeat_n(node as u32, adjacency.in_degree(node)));
        let targets = lists.push(targets);
        let degrees = (0..adjacency.nodes()).map(|node| adjacency.in_degree(node) as f64).collect();
        Self { lists, incoming, outgoing, targets, degrees }
    }

    fn copy_to(self, device: &Device) -> Result<Edges> {
        let Self { lists, incoming, outgoing, targets, degrees } = self;
        let (device, memory) = (device.clone(), lists.copy_to(device)?);
        Ok(Edges { device, memory, incoming, outgoing, targets, degrees, inverse_degrees: OnceLock::new() })
    }
}

/// An adjacency on a device.
#[derive(Debug)]
pub(crate) struct Edges {
    pub(super) device: Device,
    memory: Tensor,
    /// By target.
    pub(super) incoming: Walk,
    /// By source.
    pub(super) outgoing: Walk,
    /// The target of each edge.
    targets: Range<usize>,
    degrees: Vec<f64>,
    inverse_degrees: OnceLock<Tensor>,
}

impl Edges {
    /// The adjacency's copy on this device.
    ///
    /// # Errors
    /// The device has too little memory.
    pub(crate) fn new(adjacency: &Adjacency, device: &Device) -> Result<Arc<Self>> {
        let slot = adjacency.on_device();
        slot.get(device, || slot.take_staged().unwrap_or_else(|| Staged::new(adjacency)).copy_to(device))
    }

    /// The adjacency's copy where a custom operation's argument is.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_storage(adjacency: &Adjacency, storage: &CudaStorage) -> Result<Arc<Self>> {
        Self::new(adjacency, &device_of(storage))
    }

    /// The shape of this many columns for every target.
    pub(crate) fn targets_times(&self, columns: usize) -> (usize, usize) {
        (self.incoming.nodes, columns)
    }

    /// Where a list is on the device.
    pub(super) fn list(&self, range: &Range<usize>) -> Result<Address> {
        list(&self.memory, range)
    }

    pub(super) fn memory(&self) -> &Tensor {
        &self.memory
    }

    pub(super) fn targets(&self) -> &Range<usize> {
        &self.targets
    }

    /// One over the number of edges into each target, in the type of the sums of `dtype`: the factor with which a mean
    /// passes its gradient on.
    pub(crate) fn inverse_degrees(&self, dtype: DType) -> Result<Tensor> {
        if let Some(made) = self.inverse_degrees.get()
            && made.dtype() == wide(dtype)
        {
            return Ok(made.clone());
        }
        let values: Vec<f64> = self.degrees.iter().map(|degree| 1.0 / degree.max(1.0)).collect();
        let length = values.len();
        let made = Tensor::from_vec(values, length, &Device::Cpu)?.to_dtype(wide(dtype))?.to_device(&self.device)?;
        // Another number type than the first one is rare: it is made each time.
        let _ = self.inverse_degrees.set(made.clone());
        Ok(made)
    }
}

/// Where a list is within the memory of all lists.
pub(super) fn list(memory: &Tensor, range: &Range<usize>) -> Result<Address> {
    if range.start > range.end {
        bail!("a list ends before it begins");
    }
    View::new(memory)?.part(range.start, range.len())?.address(DType::U32, range.len())
}
