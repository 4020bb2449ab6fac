//! Graphs of images on a device: sums over the neighbours on a grid of pixels, the nearest nodes of each, and the largest
//! difference to them.

use bytemuck::NoUninit;
use candle_core::{D, DType, Device, Result, Tensor, bail};

use super::kernel::{Address, Grid, Module};
use super::machine::{Memory, View, launch};

/// Norms below this count as this, as in PyTorch's `normalize`.
const MIN_NORM: f64 = 1e-12;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct GridArguments {
    x: Address,
    out: Address,
    count: u64,
    columns: u64,
    height: u32,
    width: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct NearestArguments {
    likeness: Address,
    nearest: Address,
    rows: u64,
    nodes: u32,
    count: u32,
    dilation: u32,
    unused: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct MaxRelativeArguments {
    x: Address,
    nearest: Address,
    out: Address,
    holder: Address,
    count: u64,
    channels: u64,
    nodes: u32,
    neighbours: u32,
}

/// The sum of the up to eight pixels around each of `[images * height * width, columns]`.
///
/// # Errors
/// There are no whole images, or the device has too little memory.
pub(crate) fn neighbour_sum(
    device: &Device,
    x: View<'_>,
    (height, width): (usize, usize),
    columns: usize,
) -> Result<Memory> {
    let (dtype, length) = (x.dtype(), x.length());
    if !length.is_multiple_of((height * width * columns).max(1)) {
        bail!("{length} values are not whole images of {height} x {width} pixels with {columns} columns");
    }
    let out = Memory::new(device, dtype, length)?;
    let arguments = GridArguments {
        x: x.address(dtype, length)?,
        out: out.address(),
        count: length as u64,
        columns: columns as u64,
        height: height as u32,
        width: width as u32,
    };
    // SAFETY: both sides are the same whole images.
    unsafe { launch(device, &Module::Images.kernel("neighbour_sum", dtype)?, Grid::over(length as u64), &arguments) }?;
    Ok(out)
}

/// Every `dilation`-th of the `count * dilation` nodes of the same image most like each of `x`,
/// `[images * nodes, channels]`, by the angle between their features: `[images * nodes, count]`, numbered in the image.
/// Sizes are checked by the caller.
pub(crate) fn nearest(x: &Tensor, nodes: usize, count: usize, dilation: usize) -> Result<Tensor> {
    let (rows, channels) = x.dims2()?;
    let norm = x.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?.maximum(MIN_NORM)?;
    let normal = x.broadcast_div(&norm)?.reshape((rows / nodes, nodes, channels))?;
    let likeness = normal.matmul(&normal.transpose(1, 2)?)?;
    let out = Memory::new(x.device(), DType::U32, rows * count)?;
    let arguments = NearestArguments {
        likeness: View::new(&likeness)?.address(x.dtype(), rows * nodes)?,
        nearest: out.address(),
        rows: rows as u64,
        nodes: nodes as u32,
        count: count as u32,
        dilation: dilation as u32,
        unused: 0,
    };
    // SAFETY: the likeness has `nodes` numbers for each row, the result `count`; the caller checked that there are this
    // many.
    unsafe {
        launch(x.device(), &Module::Images.kernel("nearest", x.dtype())?, Grid::for_rows(rows as u64, 32)?, &arguments)
    }?;
    Ok(out.into_tensor((rows, count)))
}

/// Neighbours of the nodes of images, as [`nearest`] gives them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joined<'a> {
    pub(crate) nearest: &'a Tensor,
    pub(crate) nodes: usize,
}

impl Joined<'_> {
    /// The largest difference between the neighbours and each node of `x` in each channel, and which node of the image
    /// holds it.
    pub(crate) fn max_relative(self, device: &Device, x: View<'_>, channels: usize) -> Result<(Memory, Memory)> {
        let out = Memory::new(device, x.dtype(), x.length())?;
        let holder = Memory::new(device, DType::U32, x.length())?;
        self.run("max_relative", device, x, (out.address(), holder.address()), channels)?;
        Ok((out, holder))
    }

    /// The gradient of `x` from that of the differences.
    pub(crate) fn gradient(
        self,
        device: &Device,
        gradient: View<'_>,
        holder: View<'_>,
        channels: usize,
    ) -> Result<Memory> {
        let out = Memory::new(device, gradient.dtype(), gradient.length())?;
        let holder = holder.address(DType::U32, gradient.length())?;
        self.run("max_relative_gradient", device, gradient, (out.address(), holder), channels)?;
        Ok(out)
    }

    fn run(
        self,
        name: &str,
        device: &Device,
        x: View<'_>,
        (out, holder): (Address, Address),
        channels: usize,
    ) -> Result<()> {
        let (rows, neighbours) = self.nearest.dims2()?;
        let arguments = MaxRelativeArguments {
            x: x.address(x.dtype(), rows * channels)?,
            nearest: View::new(self.nearest)?.address(DType::U32, rows * neighbours)?,
            out,
            holder,
            count: (rows * channels) as u64,
            channels: channels as u64,
            nodes: self.nodes as u32,
            neighbours: neighbours as u32,
        };
        // SAFETY: `x`, result and holder have `rows * channels` elements, as checked here and by the callers, and the neighbours are numbers of nodes of the image, as `nearest` gives them.
        unsafe { launch(device, &Module::Images.kernel(name, x.dtype())?, Grid::over(arguments.count), &arguments) }
    }
}
