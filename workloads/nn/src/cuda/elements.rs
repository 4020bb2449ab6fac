//! Operations on one element at a time on a device, and sums of columns.

use bytemuck::NoUninit;
use candle_core::{CpuStorage, CudaStorage, CustomOp2, DType, Device, Layout, Result, Shape, Tensor, bail};

use super::kernel::{Address, Grid, Kernel, Module, wide};
use super::machine::{Memory, View, device_of, launch};
use super::progress::seed_shift;
use super::work::pack_for;
use gnntop_data::graph::DropMask;

/// Least number of rows whose columns one thread sums.
const MIN_ROWS_OF_PART: usize = 32;
/// Largest number of parts of the rows.
const MAX_PARTS: usize = 512;

#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
pub(super) struct MaskArguments {
    seed: u64,
    factor: f64,
    threshold: u32,
    is_any: u32,
}

impl MaskArguments {
    /// # Errors
    /// The mask is shifted, which the kernels that take these do not support.
    pub(super) fn new(mask: Option<DropMask>) -> Result<Self> {
        if mask.is_some() && seed_shift() != Address::NONE {
            bail!("the dropout of this layer cannot be repeated: its seed is an argument");
        }
        Ok(Self::unshifted(mask))
    }

    fn unshifted(mask: Option<DropMask>) -> Self {
        match mask {
            Some(mask) => {
                let (seed, threshold) = mask.seed_and_threshold();
                Self { seed, factor: mask.factor(), threshold, is_any: 1 }
            }
            None => Self { seed: 0, factor: 1.0, threshold: 0, is_any: 0 },
        }
    }
}

#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
struct ShiftedMaskArguments {
    mask: MaskArguments,
    shift: Address,
}

impl ShiftedMaskArguments {
    fn new(mask: Option<DropMask>) -> Self {
        Self { mask: MaskArguments::unshifted(mask), shift: seed_shift() }
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DropoutArguments {
    x: Address,
    out: Address,
    count: u64,
    mask: ShiftedMaskArguments,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DroppedValuesArguments {
    value: Address,
    number: Address,
    out: Address,
    count: u64,
    mask: ShiftedMaskArguments,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct FinishArguments {
    x: Address,
    bias: Address,
    gradient: Address,
    out: Address,
    count: u64,
    width: u32,
    relu: u32,
    mask: ShiftedMaskArguments,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct ActivationArguments {
    x: Address,
    gradient: Address,
    out: Address,
    count: u64,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct ColumnSumsArguments {
    x: Address,
    partial: Address,
    out: Address,
    rows: u64,
    columns: u64,
    rows_of_part: u64,
    parts: u64,
}

/// Drops values by their position.
pub(crate) fn dropout(device: &Device, x: View<'_>, mask: DropMask) -> Result<Memory> {
    let (dtype, length) = (x.dtype(), x.length());
    let out = Memory::new(device, dtype, length)?;
    let from = x.address(dtype, length)?;
    let pack = pack_for(&[1, 4], length, dtype, &[from, out.address()]);
    let arguments = DropoutArguments {
        x: from,
        out: out.address(),
        count: length as u64,
        mask: ShiftedMaskArguments::new(Some(mask)),
    };
    let kernel = Module::Elements.kernel(&format!("dropout_{pack}"), dtype)?;
    // SAFETY: both sides have `length` elements, a multiple of the pack.
    unsafe { launch(device, &kernel, Grid::over((length / pack) as u64), &arguments) }?;
    Ok(out)
}

/// Values of a sparse matrix, f32, of which some are dropped by `number`.
pub(super) fn dropped_values(device: &Device, value: View<'_>, number: Address, mask: DropMask) -> Result<Memory> {
    let count = value.length();
    let out = Memory::new(device, DType::F32, count)?;
    let arguments = DroppedValuesArguments {
        value: value.address(DType::F32, count)?,
        number,
        out: out.address(),
        count: count as u64,
        mask: ShiftedMaskArguments::new(Some(mask)),
    };
    let kernel = Kernel { module: Module::Elements, name: "dropped_values".to_owned() };
    // SAFETY: both sides and the numbers have `count` elements.
    unsafe { launch(device, &kernel, Grid::over(count as u64), &arguments) }?;
    Ok(out)
}

/// What follows a layer's sums: bias, ReLU, dropout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    pub(crate) relu: bool,
    pub(crate) mask: Option<DropMask>,
}

impl Finished {
    /// `x`, `[rows, width]`, plus `bias`, `[width]`, finished; or its gradient by `x`, where there is one.
    pub(crate) fn apply(
        self,
        device: &Device,
        x: View<'_>,
        bias: View<'_>,
        gradient: Option<View<'_>>,
    ) -> Result<Memory> {
        let (dtype, length) = (x.dtype(), x.length());
        let out = Memory::new(device, dtype, length)?;
        let arguments = FinishArguments {
            x: x.address(dtype, length)?,
            bias: bias.address(dtype, bias.length())?,
            gradient: gradient.map_or(Ok(Address::NONE), |gradient| gradient.address(dtype, length))?,
            out: out.address(),
            count: length as u64,
            width: bias.length() as u32,
            relu: self.relu.into(),
            mask: ShiftedMaskArguments::new(self.mask),
        };
        let addresses = [arguments.x, arguments.bias, arguments.gradient, arguments.out];
        let pack = pack_for(&[1, 4], bias.length(), dtype, &addresses);
        let kernel = Module::Elements.kernel(&format!("finish_{pack}"), dtype)?;
        // SAFETY: `x`, gradient and result have `length` elements, and the bias is repeated over them.
        unsafe { launch(device, &kernel, Grid::over((length / pack) as u64), &arguments) }?;
        Ok(out)
    }
}

impl CustomOp2 for Finished {
    fn name(&self) -> &'static str {
        "gcn-finish"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let shape = fitting(x_layout, bias_layout)?;
        let views = (View::of_host(x, x_layout)?, View::of_host(bias, bias_layout)?);
        self.apply(&Device::Cpu, views.0, views.1, None)?.into_host(shape)
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let shape = fitting(x_layout, bias_layout)?;
        let views = (View::of_storage(x, x_layout)?, View::of_storage(bias, bias_layout)?);
        self.apply(&device_of(x), views.0, views.1, None)?.into_storage(shape)
    }

    fn bwd(
        &self,
        x: &Tensor,
        bias: &Tensor,
        _: &Tensor,
        upstream: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        self.gradients(x, bias, &upstream.contiguous()?).map(|(of_x, of_bias)| (Some(of_x), Some(of_bias)))
    }
}

/// The shape of rows that the bias fits.
fn fitting(x: &Layout, bias: &Layout) -> Result<Shape> {
    let (_, width) = x.shape().dims2()?;
    if bias.dims() != [width] {
        bail!("a bias of {:?} for rows of {width}", bias.dims());
    }
    Ok(x.shape().clone())
}

impl Finished {
    /// Gradients of `x` and of `bias`.
    pub(super) fn gradients(&self, x: &Tensor, bias: &Tensor, upstream: &Tensor) -> Result<(Tensor, Tensor)> {
        let device = x.device();
        let of_x = self.apply(device, View::new(x)?, View::new(bias)?, Some(View::new(upstream)?))?;
        let of_x = of_x.into_tensor(x.shape());
        let of_bias = column_sums(device, View::new(&of_x)?, bias.elem_count())?.into_tensor(bias.shape());
        Ok((of_x, of_bias))
    }
}

/// `x Phi(x)`; or `gradient` times its derivative, where there is one.
pub(crate) fn gelu(device: &Device, x: View<'_>, gradient: Option<View<'_>>) -> Result<Memory> {
    let (dtype, length) = (x.dtype(), x.length());
    let out = Memory::new(device, dtype, length)?;
    let arguments = ActivationArguments {
        x: x.address(dtype, length)?,
        gradient: gradient.map_or(Ok(Address::NONE), |gradient| gradient.address(dtype, length))?,
        out: out.address(),
        count: length as u64,
    };
    // SAFETY: `x`, gradient and result have `length` elements.
    unsafe { launch(device, &Module::Elements.kernel("gelu", dtype)?, Grid::over(length as u64), &arguments) }?;
    Ok(out)
}

/// Rows that are summed together, and how many such parts there are.
pub(super) fn parts_of_rows(rows: usize) -> (usize, usize) {
    let rows_of_part = rows.div_ceil(MAX_PARTS).max(MIN_ROWS_OF_PART);
    (rows_of_part, rows.div_ceil(rows_of_part))
}

/// The sum of every column of `[rows, columns]`, always in the same order.
pub(crate) fn column_sums(device: &Device, x: View<'_>, columns: usize) -> Result<Memory> {
    let (dtype, rows) = (x.dtype(), x.length() / columns.max(1));
    let (rows_of_part, parts) = parts_of_rows(rows);
    let partial = Memory::new(device, wide(dtype), parts * columns)?;
    let arguments = ColumnSumsArguments {
        x: x.address(dtype, rows * columns)?,
        partial: partial.address(),
        out: Address::NONE,
        rows: rows as u64,
        columns: columns as u64,
        rows_of_part: rows_of_part as u64,
        parts: parts as u64,
    };
    let kernel = Module::Elements.kernel("partial_column_sums", dtype)?;
    // SAFETY: `x` has `rows * columns` elements, and `partial` a row for each part.
    unsafe { launch(device, &kernel, Grid::over((parts * columns) as u64), &arguments) }?;
    join_column_sums(device, dtype, &partial, parts, columns)
}

/// Joins the sums of parts, `[parts, columns]` in the wide type, in their order.
pub(super) fn join_column_sums(
    device: &Device,
    dtype: DType,
    partial: &Memory,
    parts: usize,
    columns: usize,
) -> Result<Memory> {
    let out = Memory::new(device, dtype, columns)?;
    let arguments = ColumnSumsArguments {
        x: Address::NONE,
        partial: partial.view().address(wide(dtype), parts * columns)?,
        out: out.address(),
        rows: 0,
        columns: columns as u64,
        rows_of_part: 0,
        parts: parts as u64,
    };
    // SAFETY: `partial` was checked to have a row for each part; the result is one row.
    unsafe { launch(device, &Module::Elements.kernel("column_sums", dtype)?, Grid::over(columns as u64), &arguments) }?;
    Ok(out)
}
