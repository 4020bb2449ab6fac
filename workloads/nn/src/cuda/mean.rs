//! GraphSAGE's layer around its products on a device: the mean over in-neighbours beside the node's own row, or after
//! the product with all that follows it; and the backward passes.

use bytemuck::NoUninit;
use candle_core::{DType, Device, Result, Tensor, bail};

use super::edges::{Edges, Walk};
use super::elements::{Finished, MaskArguments, join_column_sums, parts_of_rows};
use super::kernel::{Address, Grid, Module, wide};
use super::machine::{Memory, View, launch};
use super::work::{HubListArguments, WorkArguments, grid_of, hub_list, pack_for, work};

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct MeanArguments {
    work: WorkArguments,
    hubs: HubListArguments,
    other: Address,
    target_start: Address,
    x: Address,
    own: Address,
    bias: Address,
    out: Address,
    partial: Address,
    width: u64,
    stride: u64,
    targets: u64,
    mask: MaskArguments,
    relu: u32,
    unused: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct BehindArguments {
    result: Address,
    gradient: Address,
    out: Address,
    partial: Address,
    rows: u64,
    columns: u64,
    rows_of_part: u64,
    parts: u64,
    factor: f64,
}

/// Arguments over the edges of a walk that adds up rows of `width` columns of `x`; the rest is still to be filled in.
fn arguments(edges: &Edges, walk: &Walk, x: Address, width: usize) -> Result<MeanArguments> {
    Ok(MeanArguments {
        work: work(edges.memory(), walk)?,
        hubs: hub_list(edges.memory(), walk)?,
        other: edges.list(&walk.other)?,
        target_start: edges.list(&edges.incoming.start)?,
        x,
        own: Address::NONE,
        bias: Address::NONE,
        out: Address::NONE,
        partial: Address::NONE,
        width: width as u64,
        stride: width as u64,
        targets: edges.incoming.nodes as u64,
        mask: MaskArguments::new(None)?,
        relu: 0,
        unused: 0,
    })
}

/// Launches over all nodes of the walk, then over its hubs.
fn run(edges: &Edges, walk: &Walk, name: &str, dtype: DType, mut arguments: MeanArguments) -> Result<()> {
    let (width, parts) = (arguments.width as usize, walk.part_count());
    let partial = Memory::new(&edges.device, wide(dtype), parts * width)?;
    arguments.partial = partial.address();
    let addresses = [arguments.x, arguments.own, arguments.bias, arguments.out];
    let pack = pack_for(&[1, 2, 4], width, dtype, &addresses);
    if width > 0 {
        let kernel = Module::Sage.kernel(&format!("{name}_{pack}"), dtype)?;
        // SAFETY: the callers, in this file, checked that `x`, own rows and bias have the rows and columns of this walk, and made the result for it.
        unsafe { launch(&edges.device, &kernel, grid_of(walk.nodes + parts, width / pack)?, &arguments) }?;
    }
    let join = Module::Sage.kernel(&format!("join_{name}"), dtype)?;
    // SAFETY: as above; the hubs are among the nodes, and `partial` has a row for each part.
    unsafe { launch(&edges.device, &join, Grid::over((walk.hub_count() * width) as u64), &arguments) }
}

/// The targets must be the first of the sources.
fn check_own(edges: &Edges) -> Result<()> {
    if edges.incoming.nodes > edges.incoming.others {
        bail!("{} targets are not among {} sources", edges.incoming.nodes, edges.incoming.others);
    }
    Ok(())
}

/// `mean over the in-neighbours | own row` of every target, `[targets, 2 width]`, from `x`, `[sources, width]`.
pub(crate) fn mean_beside(edges: &Edges, x: View<'_>, width: usize) -> Result<Memory> {
    check_own(edges)?;
    let (walk, dtype) = (&edges.incoming, x.dtype());
    let out = Memory::new(&edges.device, dtype, walk.nodes * 2 * width)?;
    let x = x.address(dtype, walk.others * width)?;
    let arguments = MeanArguments { out: out.address(), ..arguments(edges, walk, x, width)? };
    run(edges, walk, "mean_beside", dtype, arguments)?;
    Ok(out)
}

/// The mean over the in-neighbours of `x`, `[sources, width]`, plus `own`, `[targets, width]`, and `bias`, `[width]`,
/// finished.
pub(crate) fn mean_finish(
    edges: &Edges,
    x: View<'_>,
    own: View<'_>,
    bias: View<'_>,
    finished: Finished,
) -> Result<Memory> {
    let (walk, dtype, width) = (&edges.incoming, x.dtype(), bias.length());
    let out = Memory::new(&edges.device, dtype, walk.nodes * width)?;
    let x = x.address(dtype, walk.others * width)?;
    let arguments = MeanArguments {
        own: own.address(dtype, walk.nodes * width)?,
        bias: bias.address(dtype, width)?,
        out: out.address(),
        mask: MaskArguments::new(finished.mask)?,
        relu: finished.relu.into(),
        ..arguments(edges, walk, x, width)?
    };
    run(edges, walk, "mean_finish", dtype, arguments)?;
    Ok(out)
}

/// The gradient of the sources, `[sources, width]`, from that of their means, `[targets, width]`; or of the result of
/// [`mean_beside`], `[targets, 2 width]`, if `beside`.
pub(crate) fn gradient_of_mean_rows(edges: &Edges, gradient: View<'_>, width: usize, beside: bool) -> Result<Memory> {
    let (walk, dtype) = (&edges.outgoing, gradient.dtype());
    let out = Memory::new(&edges.device, dtype, walk.nodes * width)?;
    let stride = if beside { 2 * width } else { width };
    let from = gradient.address(dtype, edges.incoming.nodes * stride)?;
    let own = match edges.incoming.nodes {
        0 => Address::NONE,
        _ if beside => gradient.part(width, gradient.length() - width)?.address(dtype, 0)?,
        _ => Address::NONE,
    };
    let base = arguments(edges, walk, from, width)?;
    let arguments = MeanArguments { own, stride: stride as u64, out: out.address(), ..base };
    run(edges, walk, "mean_return", dtype, arguments)?;
    Ok(out)
}

/// The gradient before ReLU and dropout, `[rows, columns]`, from their result and the gradient after them; and the sums
/// of its columns. `factor` is that of the dropout.
pub(crate) fn behind_relu(
    device: &Device,
    result: View<'_>,
    gradient: View<'_>,
    columns: usize,
    factor: f64,
) -> Result<(Memory, Memory)> {
    let (dtype, length) = (result.dtype(), result.length());
    let rows = length / columns.max(1);
    let (rows_of_part, parts) = parts_of_rows(rows);
    let out = Memory::new(device, dtype, length)?;
    let partial = Memory::new(device, wide(dtype), parts * columns)?;
    let arguments = BehindArguments {
        result: result.address(dtype, length)?,
        gradient: gradient.address(dtype, length)?,
        out: out.address(),
        partial: partial.address(),
        rows: rows as u64,
        columns: columns as u64,
        rows_of_part: rows_of_part as u64,
        parts: parts as u64,
        factor,
    };
    let kernel = Module::Sage.kernel("behind_relu", dtype)?;
    // SAFETY: result, gradient and `out` have `rows * columns` elements, and `partial` a row for each part.
    unsafe { launch(device, &kernel, Grid::over((parts * columns) as u64), &arguments) }?;
    Ok((out, join_column_sums(device, dtype, &partial, parts, columns)?))
}

/// Adds `rows` to the first rows of `onto`, in place.
pub(crate) fn add_first(onto: &Tensor, rows: &Tensor) -> Result<()> {
    let ((_, columns), (count, other)) = (onto.dims2()?, rows.dims2()?);
    let (dtype, length) = (rows.dtype(), count * columns);
    if columns != other {
        bail!("rows of {other} columns cannot be added to rows of {columns}");
    }
    let arguments = BehindArguments {
        result: Address::NONE,
        gradient: View::new(rows)?.address(dtype, length)?,
        out: View::new(onto)?.address(dtype, length)?,
        partial: Address::NONE,
        rows: count as u64,
        columns: columns as u64,
        rows_of_part: 0,
        parts: 0,
        factor: 1.0,
    };
    // SAFETY: both tensors have at least `count * columns` elements.
    unsafe { launch(rows.device(), &Module::Sage.kernel("add_first", dtype)?, Grid::over(length as u64), &arguments) }
}
