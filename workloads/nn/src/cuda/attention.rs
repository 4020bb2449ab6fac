//! A graph attention layer around its products on a device: scores of the nodes, then one pass over the edges into the
//! targets. Nothing is stored for an edge.

use bytemuck::NoUninit;
use candle_core::{Device, Result, Tensor};

use super::edges::{Edges, Walk};
use super::elements::MaskArguments;
use super::kernel::{Address, Grid, Module, wide};
use super::machine::{Memory, View, launch};
use super::work::{HubListArguments, WorkArguments, grid_of, hub_list, pack_for, work};
use gnntop_data::graph::{Columns, DropMask};

/// The parts of a layer besides its edges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attending<'a> {
    pub(crate) columns: Columns,
    /// Of the leaky rectifier of the scores.
    pub(crate) negative_slope: f64,
    /// `[heads width]`, as the next two.
    pub(crate) bias: View<'a>,
    pub(crate) source_vector: View<'a>,
    pub(crate) target_vector: View<'a>,
    /// Dropout of the edges' weights.
    pub(crate) attention: Option<DropMask>,
    /// Dropout of the result, after ELU.
    pub(crate) output: Option<DropMask>,
    pub(crate) elu: bool,
}

/// What the forward pass leaves for the backward one. The last three are of the targets, in the wide type.
#[derive(Debug)]
pub(crate) struct Attended {
    pub(super) source_score: Tensor,
    pub(super) target_score: Tensor,
    /// `[targets, heads width]`, before the bias; and the same with each edge's slope of the rectifier as a factor.
    pub(super) sums: Tensor,
    pub(super) sloped_sums: Tensor,
    /// `[targets, 3 heads]`
    pub(super) known: Tensor,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct ScoreArguments {
    rows: Address,
    source_vector: Address,
    target_vector: Address,
    source_score: Address,
    target_score: Address,
    sources: u64,
    targets: u64,
    heads: u32,
    width: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct AttendArguments {
    work: WorkArguments,
    hubs: HubListArguments,
    other: Address,
    rows: Address,
    source_score: Address,
    target_score: Address,
    bias: Address,
    out: Address,
    sums: Address,
    sloped_sums: Address,
    known: Address,
    partial: Address,
    partial_known: Address,
    heads: u32,
    width: u32,
    slope: f64,
    attention: MaskArguments,
    output: MaskArguments,
    elu: u32,
    unused: u32,
}

/// A row of threads for each head of `nodes` nodes.
///
/// # Safety
/// As for [`launch`].
pub(super) unsafe fn launch_by_head<A: NoUninit>(
    device: &Device,
    module: Module,
    name: &str,
    (rows, columns): (View<'_>, Columns),
    nodes: usize,
    arguments: &A,
) -> Result<()> {
    let grid = Grid::for_rows((nodes * columns.heads) as u64, Grid::lanes_for(columns.width))?;
    // SAFETY: the caller vouches for the arguments.
    unsafe { launch(device, &module.kernel(name, rows.dtype())?, grid, arguments) }
}

/// The kernel over all nodes of a walk and the parts of its hubs.
///
/// # Safety
/// As for [`launch`].
pub(super) unsafe fn launch_rows<A: NoUninit>(
    edges: &Edges,
    walk: &Walk,
    (module, name): (Module, &str),
    (rows, columns): (View<'_>, Columns),
    addresses: &[Address],
    arguments: &A,
) -> Result<()> {
    let pack = pack_for(&[1, 4], columns.width, rows.dtype(), addresses);
    let grid = grid_of(walk.nodes + walk.part_count(), columns.total() / pack)?;
    // SAFETY: the caller vouches for the arguments.
    unsafe { launch(&edges.device, &module.kernel(&format!("{name}_{pack}"), rows.dtype())?, grid, arguments) }
}

/// The result of a layer, `[targets, heads width]`, from its projected rows, `[sources, heads width]`, and what the
/// backward pass needs. The targets are the first of the sources.
pub(crate) fn attend(edges: &Edges, rows: View<'_>, layer: &Attending<'_>) -> Result<(Memory, Attended)> {
    let (walk, dtype, device) = (&edges.incoming, rows.dtype(), &edges.device);
    let (Columns { heads, width }, total) = (layer.columns, layer.columns.total());
    let [source_score, target_score] = scores(edges, rows, layer)?;
    let new = |dtype, rows: usize, columns: usize| Memory::new(device, dtype, rows * columns);
    let (targets, parts) = (walk.nodes, walk.part_count());
    let out = new(dtype, targets, total)?;
    let [sums, sloped_sums] = [new(wide(dtype), targets, total)?, new(wide(dtype), targets, total)?];
    let known = new(wide(dtype), targets, 3 * heads)?;
    let (partial, partial_known) = (new(wide(dtype), parts, 2 * total)?, new(wide(dtype), parts, 3 * heads)?);
    let arguments = AttendArguments {
        work: work(edges.memory(), walk)?,
        hubs: hub_list(edges.memory(), walk)?,
        other: edges.list(&walk.other)?,
        rows: rows.address(dtype, walk.others * total)?,
        source_score: source_score.address(),
        target_score: target_score.address(),
        bias: layer.bias.address(dtype, total)?,
        out: out.address(),
        sums: sums.address(),
        sloped_sums: sloped_sums.address(),
        known: known.address(),
        partial: partial.address(),
        partial_known: partial_known.address(),
        heads: heads as u32,
        width: width as u32,
        slope: layer.negative_slope,
        attention: MaskArguments::new(layer.attention)?,
        output: MaskArguments::new(layer.output)?,
        elu: layer.elu.into(),
        unused: 0,
    };
    let addresses = [arguments.rows, arguments.bias, arguments.out];
    // SAFETY: rows and bias were checked to have these columns and a row for each source; the others were made for the nodes
    // and parts of this walk.
    unsafe {
        launch_rows(edges, walk, (Module::Attention, "attend"), (rows, layer.columns), &addresses, &arguments)?;
    }
    let join = Module::Attention.kernel("join_attended", dtype)?;
    // SAFETY: as above; the hubs are among the nodes, and their parts are what `partial` has room for.
    unsafe { launch(device, &join, Grid::over((walk.hub_count() * total) as u64), &arguments) }?;
    let attended = Attended {
        source_score: source_score.into_tensor((walk.others, heads)),
        target_score: target_score.into_tensor((targets, heads)),
        sums: sums.into_tensor((targets, total)),
        sloped_sums: sloped_sums.into_tensor((targets, total)),
        known: known.into_tensor((targets, 3 * heads)),
    };
    Ok((out, attended))
}

/// Scores of the sources and of the targets.
fn scores(edges: &Edges, rows: View<'_>, layer: &Attending<'_>) -> Result<[Memory; 2]> {
    let (walk, dtype) = (&edges.incoming, rows.dtype());
    let (Columns { heads, width }, total) = (layer.columns, layer.columns.total());
    let source_score = Memory::new(&edges.device, dtype, walk.others * heads)?;
    let target_score = Memory::new(&edges.device, dtype, walk.nodes * heads)?;
    let arguments = ScoreArguments {
        rows: rows.address(dtype, walk.others.max(walk.nodes) * total)?,
        source_vector: layer.source_vector.address(dtype, total)?,
        target_vector: layer.target_vector.address(dtype, total)?,
        source_score: source_score.address(),
        target_score: target_score.address(),
        sources: walk.others as u64,
        targets: walk.nodes as u64,
        heads: heads as u32,
        width: width as u32,
    };
    let of = (rows, layer.columns);
    // SAFETY: rows and both vectors were checked to have these columns, and there is a row for each node on either side.
    unsafe { launch_by_head(&edges.device, Module::Attention, "scores", of, walk.others, &arguments)? };
    Ok([source_score, target_score])
}
