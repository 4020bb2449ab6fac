//! Softmax over the edges into each target, and its gradient, on a device.

use bytemuck::NoUninit;
use candle_core::{DType, Result};

use super::edges::Edges;
use super::kernel::{Address, Grid, Module, THREADS};
use super::machine::{Memory, View, launch};

/// Where the logits of the edges come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Logits<'a> {
    /// `[edges, heads]`
    Given(View<'a>),
    /// The leaky rectified sum of the scores at both ends, `[sources, heads]` and `[targets, heads]`.
    OfScores { source: View<'a>, target: View<'a>, negative_slope: f64 },
}

#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
struct TargetsArguments {
    start: Address,
    source: Address,
    hub_node: Address,
    nodes: u32,
    hubs: u32,
    hub_edges: u32,
    heads: u32,
}

#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
struct LogitsArguments {
    given: Address,
    source: Address,
    target: Address,
    slope: f64,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct SoftmaxArguments {
    targets: TargetsArguments,
    logits: LogitsArguments,
    out: Address,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct SoftmaxGradientArguments {
    targets: TargetsArguments,
    logits: LogitsArguments,
    result: Address,
    gradient: Address,
    out: Address,
    of_targets: Address,
}

fn targets(edges: &Edges, heads: usize) -> Result<TargetsArguments> {
    let walk = &edges.incoming;
    Ok(TargetsArguments {
        start: edges.list(&walk.start)?,
        source: edges.list(&walk.other)?,
        hub_node: edges.list(&walk.hubs.nodes)?,
        nodes: walk.nodes as u32,
        hubs: walk.hub_count() as u32,
        hub_edges: walk.hubs.hub_edges,
        heads: heads as u32,
    })
}

impl Logits<'_> {
    fn dtype(self) -> DType {
        match self {
            Self::Given(logits) => logits.dtype(),
            Self::OfScores { source, .. } => source.dtype(),
        }
    }

    fn arguments(self, edges: &Edges, heads: usize) -> Result<LogitsArguments> {
        let (walk, dtype, none) = (&edges.incoming, self.dtype(), Address::NONE);
        Ok(match self {
            Self::Given(logits) => {
                let given = logits.address(dtype, walk.edges * heads)?;
                LogitsArguments { given, source: none, target: none, slope: 0.0 }
            }
            Self::OfScores { source, target, negative_slope } => LogitsArguments {
                given: none,
                source: source.address(dtype, walk.others * heads)?,
                target: target.address(dtype, walk.nodes * heads)?,
                slope: negative_slope,
            },
        })
    }
}

/// Launches over all targets, then over the hubs, each of which gets a block.
fn launch_both<A: NoUninit>(edges: &Edges, name: &str, dtype: DType, heads: usize, arguments: &A) -> Result<()> {
    let walk = &edges.incoming;
    let lanes = Grid::lanes_for(walk.edges / walk.nodes.max(1));
    let grid = Grid::for_rows((walk.nodes * heads) as u64, lanes)?;
    // SAFETY: the callers, in this file, checked that logits and results have a row for each edge, and scores one for each node.
    unsafe { launch(&edges.device, &Module::Softmax.kernel(name, dtype)?, grid, arguments) }?;
    let hubs = Grid { blocks: [(walk.hub_count() * heads) as u32, 1], threads: [THREADS, 1] };
    // SAFETY: as above; the hubs are among the nodes.
    unsafe { launch(&edges.device, &Module::Softmax.kernel(&format!("{name}_hubs"), dtype)?, hubs, arguments) }
}

/// Softmax over the edges into each target, `[edges, heads]`.
pub(crate) fn softmax_rows(edges: &Edges, heads: usize, logits: Logits<'_>) -> Result<Memory> {
    let out = Memory::new(&edges.device, logits.dtype(), edges.incoming.edges * heads)?;
    let (targets, logit) = (targets(edges, heads)?, logits.arguments(edges, heads)?);
    let arguments = SoftmaxArguments { targets, logits: logit, out: out.address() };
    launch_both(edges, "softmax", logits.dtype(), heads, &arguments)?;
    Ok(out)
}

/// Gradients from a softmax and its gradient: that of the logits, or of the sums of scores before the rectifier,
/// `[edges, heads]`; and, for scores, its sum over the edges into each target, `[targets, heads]`.
pub(crate) fn gradient_of_logits(
    edges: &Edges,
    heads: usize,
    logits: Logits<'_>,
    result: View<'_>,
    gradient: View<'_>,
) -> Result<(Memory, Memory)> {
    let (dtype, count) = (logits.dtype(), edges.incoming.edges * heads);
    let with_targets = matches!(logits, Logits::OfScores { .. });
    let out = Memory::new(&edges.device, dtype, count)?;
    let of_targets = Memory::new(&edges.device, dtype, if with_targets { edges.incoming.nodes * heads } else { 0 })?;
    let arguments = SoftmaxGradientArguments {
        targets: targets(edges, heads)?,
        logits: logits.arguments(edges, heads)?,
        result: result.address(dtype, count)?,
        gradient: gradient.address(dtype, count)?,
        out: out.address(),
        of_targets: if with_targets { of_targets.address() } else { Address::NONE },
    };
    launch_both(edges, "softmax_gradient", dtype, heads, &arguments)?;
    Ok((out, of_targets))
}
