//! Nodes that are computed over their edges on a device: which, in what parts, and by how many threads.

use bytemuck::NoUninit;
use candle_core::{DType, Result, Tensor};

use super::edges::{Walk, list};
use super::kernel::{Address, Grid};

/// `Work` of work.cuh.
#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
pub(super) struct WorkArguments {
    start: Address,
    part_node: Address,
    part_begin: Address,
    part_end: Address,
    nodes: u32,
    parts: u32,
    hub_edges: u32,
    unused: u32,
}

/// `HubList` of work.cuh.
#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
pub(super) struct HubListArguments {
    node: Address,
    part: Address,
    count: u64,
}

/// The nodes of a walk, whose lists are in `memory`.
pub(super) fn work(memory: &Tensor, walk: &Walk) -> Result<WorkArguments> {
    let hubs = &walk.hubs;
    Ok(WorkArguments {
        start: list(memory, &walk.start)?,
        part_node: list(memory, &hubs.part_node)?,
        part_begin: list(memory, &hubs.part_begin)?,
        part_end: list(memory, &hubs.part_end)?,
        nodes: walk.nodes as u32,
        parts: walk.part_count() as u32,
        hub_edges: hubs.hub_edges,
        unused: 0,
    })
}

/// Its hubs.
pub(super) fn hub_list(memory: &Tensor, walk: &Walk) -> Result<HubListArguments> {
    let hubs = &walk.hubs;
    Ok(HubListArguments {
        node: list(memory, &hubs.nodes)?,
        part: list(memory, &hubs.parts)?,
        count: walk.hub_count() as u64,
    })
}

/// A row of threads for each node or part, further blocks for more columns.
pub(super) fn grid_of(rows: usize, packs: usize) -> Result<Grid> {
    let mut grid = Grid::for_rows(rows as u64, Grid::lanes_for(packs))?;
    grid.blocks[1] = packs.div_ceil(grid.threads[0] as usize).clamp(1, 65_535) as u32;
    Ok(grid)
}

/// How many columns a thread takes at once: the most of `packs` that divides a width and finds everything aligned.
pub(super) fn pack_for(packs: &[usize], width: usize, dtype: DType, addresses: &[Address]) -> usize {
    let fits = |pack: usize| {
        let bytes = (pack * dtype.size_in_bytes()) as u64;
        width.is_multiple_of(pack) && addresses.iter().all(|address| address.0.is_multiple_of(bytes))
    };
    packs.iter().copied().filter(|&pack| fits(pack)).max().unwrap_or(1)
}
