//! The backward pass of a graph attention layer on a device: over its targets, in one pass over the edges out of its
//! sources, and over those.

use bytemuck::NoUninit;
use candle_core::{Device, Result, Tensor};

use super::attention::{Attended, Attending, launch_by_head, launch_rows};
use super::edges::Edges;
use super::elements::{MaskArguments, column_sums, join_column_sums, parts_of_rows};
use super::kernel::{Address, Grid, Module, wide};
use super::machine::{Memory, View, launch};
use super::work::{HubListArguments, WorkArguments, hub_list, work};
use gnntop_data::graph::Columns;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct ActivatedArguments {
    gradient: Address,
    bias: Address,
    sums: Address,
    sloped_sums: Address,
    known: Address,
    out: Address,
    products: Address,
    of_scores: Address,
    targets: u64,
    heads: u32,
    width: u32,
    output: MaskArguments,
    elu: u32,
    unused: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct AttendBackArguments {
    work: WorkArguments,
    hubs: HubListArguments,
    other: Address,
    number: Address,
    rows: Address,
    source_score: Address,
    target_score: Address,
    known: Address,
    target_products: Address,
    sums: Address,
    products: Address,
    partial: Address,
    partial_products: Address,
    heads: u32,
    width: u32,
    slope: f64,
    attention: MaskArguments,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct ProjectedArguments {
    rows: Address,
    source_vector: Address,
    target_vector: Address,
    sums: Address,
    products: Address,
    of_target_scores: Address,
    out: Address,
    of_source_scores: Address,
    sources: u64,
    targets: u64,
    heads: u32,
    width: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct WeightedSumsArguments {
    rows: Address,
    weights: Address,
    partial: Address,
    count: u64,
    rows_of_part: u64,
    parts: u64,
    heads: u32,
    width: u32,
}

/// Gradients of a layer besides those of its products.
#[derive(Debug)]
pub(crate) struct AttendedBack {
    /// Of the projected rows, `[sources, heads width]`.
    pub(crate) rows: Tensor,
    /// Of bias and of the vectors of sources and targets, `[heads width]` each.
    pub(crate) bias: Tensor,
    pub(crate) source_vector: Tensor,
    pub(crate) target_vector: Tensor,
}

impl Attended {
    /// All gradients, from that of the result.
    pub(crate) fn back(
        &self,
        edges: &Edges,
        rows: View<'_>,
        layer: &Attending<'_>,
        gradient: View<'_>,
    ) -> Result<AttendedBack> {
        let (device, total, dtype) = (&edges.device, layer.columns.total(), rows.dtype());
        let before = self.before_activation(edges, layer, gradient)?;
        let before_view = View::new(&before.gradient)?;
        let bias = column_sums(device, before_view, total)?.into_tensor(total);
        let [sums, products] = self.along_edges(edges, layer, &before)?;
        let out = Memory::new(device, dtype, edges.outgoing.nodes * total)?;
        let of_source_scores = Memory::new(device, wide(dtype), edges.outgoing.nodes * layer.columns.heads)?;
        let arguments = ProjectedArguments {
            rows: rows.address(dtype, edges.outgoing.nodes * total)?,
            source_vector: layer.source_vector.address(dtype, total)?,
            target_vector: layer.target_vector.address(dtype, total)?,
            sums: sums.address(),
            products: products.address(),
            of_target_scores: before.of_scores.address(),
            out: out.address(),
            of_source_scores: of_source_scores.address(),
            sources: edges.outgoing.nodes as u64,
            targets: edges.incoming.nodes as u64,
            heads: layer.columns.heads as u32,
            width: layer.columns.width as u32,
        };
        let of = (rows, layer.columns);
        // SAFETY: rows and vectors were checked, and the sums, products and results made, for these nodes and columns.
        unsafe {
            launch_by_head(device, Module::AttentionBack, "projected_gradient", of, edges.outgoing.nodes, &arguments)?;
        }
        let sources = weighted_sums(device, of, &of_source_scores, edges.outgoing.nodes)?;
        let targets = weighted_sums(device, of, &before.of_scores, edges.incoming.nodes)?;
        Ok(AttendedBack {
            rows: out.into_tensor((edges.outgoing.nodes, total)),
            bias,
            source_vector: sources.into_tensor(total),
            target_vector: targets.into_tensor(total),
        })
    }

    fn before_activation(&self, edges: &Edges, layer: &Attending<'_>, gradient: View<'_>) -> Result<BeforeActivation> {
        let (dtype, targets, device) = (gradient.dtype(), edges.incoming.nodes, &edges.device);
        let (Columns { heads, width }, total) = (layer.columns, layer.columns.total());
        let out = Memory::new(device, dtype, targets * total)?;
        let products = Memory::new(device, wide(dtype), targets * heads)?;
        let of_scores = Memory::new(device, wide(dtype), targets * heads)?;
        let arguments = ActivatedArguments {
            gradient: gradient.address(dtype, targets * total)?,
            bias: layer.bias.address(dtype, total)?,
            sums: View::new(&self.sums)?.address(wide(dtype), targets * total)?,
            sloped_sums: View::new(&self.sloped_sums)?.address(wide(dtype), targets * total)?,
            known: View::new(&self.known)?.address(wide(dtype), targets * 3 * heads)?,
            out: out.address(),
            products: products.address(),
            of_scores: of_scores.address(),
            targets: targets as u64,
            heads: heads as u32,
            width: width as u32,
            output: MaskArguments::new(layer.output)?,
            elu: layer.elu.into(),
            unused: 0,
        };
        let of = (gradient, layer.columns);
        // SAFETY: all that is read was checked, and all that is written made, for these targets and columns.
        unsafe { launch_by_head(device, Module::AttentionBack, "activated_gradient", of, targets, &arguments)? };
        Ok(BeforeActivation { gradient: out.into_tensor((targets, total)), products, of_scores })
    }

    /// Gradients of the sources: both sums of rows, and of products.
    fn along_edges(&self, edges: &Edges, layer: &Attending<'_>, before: &BeforeActivation) -> Result<[Memory; 2]> {
        let (walk, device) = (&edges.outgoing, &edges.device);
        let rows = View::new(&before.gradient)?;
        let (dtype, Columns { heads, width }, total) = (rows.dtype(), layer.columns, layer.columns.total());
        let new = |rows: usize, columns: usize| Memory::new(device, wide(dtype), rows * columns);
        let [sums, products] = [new(walk.nodes, 2 * total)?, new(walk.nodes, heads)?];
        let [partial, partial_products] = [new(walk.part_count(), 2 * total)?, new(walk.part_count(), heads)?];
        let arguments = AttendBackArguments {
            work: work(edges.memory(), walk)?,
            hubs: hub_list(edges.memory(), walk)?,
            other: edges.list(&walk.other)?,
            number: edges.list(walk.number.as_ref().unwrap_or(&(0..0)))?,
            rows: rows.address(dtype, walk.others * total)?,
            source_score: View::new(&self.source_score)?.address(dtype, walk.nodes * heads)?,
            target_score: View::new(&self.target_score)?.address(dtype, walk.others * heads)?,
            known: View::new(&self.known)?.address(wide(dtype), walk.others * 3 * heads)?,
            target_products: before.products.address(),
            sums: sums.address(),
            products: products.address(),
            partial: partial.address(),
            partial_products: partial_products.address(),
            heads: heads as u32,
            width: width as u32,
            slope: layer.negative_slope,
            attention: MaskArguments::new(layer.attention)?,
        };
        let of = (rows, layer.columns);
        // SAFETY: rows, scores and what is known of the targets were checked, the products made for the targets, and the
        // results for the nodes and parts of this walk.
        unsafe {
            launch_rows(edges, walk, (Module::AttentionBack, "attend_back"), of, &[arguments.rows], &arguments)?;
        }
        let join = Module::AttentionBack.kernel("join_attended_back", dtype)?;
        // SAFETY: as above; the hubs are among the nodes, and their parts are what `partial` has room for.
        unsafe { launch(device, &join, Grid::over((walk.hub_count() * (2 * total + heads)) as u64), &arguments) }?;
        Ok([sums, products])
    }
}

/// Gradients of the targets before ELU and dropout.
struct BeforeActivation {
    gradient: Tensor,
    /// Of each head: the gradient times the sums, and the gradient of the target's score.
    products: Memory,
    of_scores: Memory,
}

/// The sum over the first `count` rows of each head times the row's number for it.
fn weighted_sums(
    device: &Device,
    (rows, columns): (View<'_>, Columns),
    weights: &Memory,
    count: usize,
) -> Result<Memory> {
    let (dtype, total) = (rows.dtype(), columns.total());
    let (rows_of_part, parts) = parts_of_rows(count);
    let partial = Memory::new(device, wide(dtype), parts * total)?;
    let arguments = WeightedSumsArguments {
        rows: rows.address(dtype, count * total)?,
        weights: weights.view().address(wide(dtype), count * columns.heads)?,
        partial: partial.address(),
        count: count as u64,
        rows_of_part: rows_of_part as u64,
        parts: parts as u64,
        heads: columns.heads as u32,
        width: columns.width as u32,
    };
    let kernel = Module::AttentionBack.kernel("weighted_sums", dtype)?;
    // SAFETY: `count` rows and weights were checked to be there, and `partial` has a row for each part.
    unsafe { launch(device, &kernel, Grid::over((parts * total) as u64), &arguments) }?;
    join_column_sums(device, dtype, &partial, parts, total)
}
