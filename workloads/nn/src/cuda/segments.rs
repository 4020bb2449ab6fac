//! The maximum over the nodes of each graph, on a device.

use std::ops::Range;

use bytemuck::NoUninit;
use candle_core::{DType, Device, Result, Tensor};

use super::edges::{Lists, list};
use super::kernel::{Address, Grid, Module};
use super::machine::{Memory, View, launch};

/// Segments on a device: segment `g` is the rows `members[starts[g]..starts[g + 1]]`.
#[derive(Debug)]
pub(crate) struct SegmentsOnDevice {
    memory: Tensor,
    starts: Range<usize>,
    members: Range<usize>,
}

impl SegmentsOnDevice {
    /// Copies them. Every row must be in one segment.
    ///
    /// # Errors
    /// The device has too little memory.
    pub(crate) fn new(starts: &[u32], members: &[u32], device: &Device) -> Result<Self> {
        let mut lists = Lists::default();
        let starts = lists.push(starts.iter().copied());
        let members = lists.push(members.iter().copied());
        Ok(Self { memory: lists.copy_to(device)?, starts, members })
    }

    fn count(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct SegmentArguments {
    start: Address,
    member: Address,
    x: Address,
    out: Address,
    holder: Address,
    segments: u64,
    width: u64,
}

/// The maximum of each column over each segment, and the row that holds it, both `[segments, width]`.
pub(crate) fn segment_max(segments: &SegmentsOnDevice, x: View<'_>, width: usize) -> Result<(Memory, Memory)> {
    let (device, count) = (segments.memory.device(), segments.count() * width);
    let (out, holder) = (Memory::new(device, x.dtype(), count)?, Memory::new(device, DType::U32, count)?);
    let x_address = x.address(x.dtype(), segments.members.len() * width)?;
    run("segment_max", segments, (x.dtype(), x_address), out.address(), holder.address(), width)?;
    Ok((out, holder))
}

/// The gradient of the rows, `[rows, width]`.
pub(crate) fn gradient_of_segment_max(
    segments: &SegmentsOnDevice,
    gradient: View<'_>,
    holder: View<'_>,
    width: usize,
) -> Result<Memory> {
    let (dtype, count) = (gradient.dtype(), segments.count() * width);
    let out = Memory::new(segments.memory.device(), dtype, segments.members.len() * width)?;
    let (gradient, holder) = (gradient.address(dtype, count)?, holder.address(DType::U32, count)?);
    run("segment_max_gradient", segments, (dtype, gradient), out.address(), holder, width)?;
    Ok(out)
}

fn run(
    name: &str,
    segments: &SegmentsOnDevice,
    (dtype, x): (DType, Address),
    out: Address,
    holder: Address,
    width: usize,
) -> Result<()> {
    let arguments = SegmentArguments {
        start: list(&segments.memory, &segments.starts)?,
        member: list(&segments.memory, &segments.members)?,
        x,
        out,
        holder,
        segments: segments.count() as u64,
        width: width as u64,
    };
    let grid = Grid::over((segments.count() * width) as u64);
    // SAFETY: `x` and the results have a row for each member or segment, as the callers, in this file, checked; members were checked to be rows (`Segments::new`).
    unsafe { launch(segments.memory.device(), &Module::Segments.kernel(name, dtype)?, grid, &arguments) }
}
