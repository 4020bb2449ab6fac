//! Batch normalisation of a training batch on a device, followed by GELU and a residual. Mean and variance stay on the
//! device, where they also move the running statistics, so that the host does not wait.

use bytemuck::NoUninit;
use candle_core::{CpuStorage, CudaStorage, CustomOp2, CustomOp3, DType, Device, Layout, Result, Shape, Tensor, bail};

use super::elements::parts_of_rows;
use super::kernel::{Address, Grid, Module};
use super::machine::{Memory, View, device_of, launch};
use super::saved::SavedTensor;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct NormArguments {
    x: Address,
    gradient: Address,
    affine: Address,
    residual: Address,
    shift: Address,
    out: Address,
    of_affine: Address,
    partial: Address,
    moments: Address,
    sums: Address,
    running: Address,
    rows: u64,
    features: u64,
    rows_of_part: u64,
    parts: u64,
    epsilon: f64,
    momentum: f64,
    gelu: u32,
    unused: u32,
}

/// A normalisation by the moments of the batch, as a candle operation of `x`, `[rows, features]`, and weights above
/// biases, `[2, features]`; and, as a third argument, a residual of the shape of `x`.
pub(crate) struct BatchMoments {
    /// Running mean and variance, `[2, features]` f64 on the device, which one forward pass moves.
    pub(crate) running: Tensor,
    /// Added to the variance.
    pub(crate) epsilon: f64,
    /// How far the batch moves the running statistics.
    pub(crate) momentum: f64,
    /// The bias that was left out of x because the mean removes it, `[features]`: it moves the running mean.
    pub(crate) shift: Option<Tensor>,
    /// Whether GELU follows.
    pub(crate) gelu: bool,
    moments: SavedTensor,
}

impl BatchMoments {
    pub(crate) fn new(running: Tensor, epsilon: f64, momentum: f64, shift: Option<Tensor>, gelu: bool) -> Self {
        Self { running, epsilon, momentum, shift, gelu, moments: SavedTensor::default() }
    }

    /// Arguments that both passes share.
    fn arguments(&self, (rows, features): (usize, usize), x: View<'_>, affine: View<'_>) -> Result<NormArguments> {
        let dtype = x.dtype();
        if rows < 2 || features == 0 || affine.length() != 2 * features || self.running.dims() != [2, features] {
            bail!("batch norm: {rows} rows of {features} features do not fit {} parameters", affine.length());
        }
        let (rows_of_part, parts) = parts_of_rows(rows);
        let shift = self.shift.as_ref().map(|shift| View::new(shift)?.address(dtype, features)).transpose()?;
        let none = Address::NONE;
        Ok(NormArguments {
            x: x.address(dtype, rows * features)?,
            gradient: none,
            affine: affine.address(dtype, 2 * features)?,
            residual: none,
            shift: shift.unwrap_or(none),
            out: none,
            of_affine: none,
            partial: none,
            moments: none,
            sums: none,
            running: View::new(&self.running)?.address(DType::F64, 2 * features)?,
            rows: rows as u64,
            features: features as u64,
            rows_of_part: rows_of_part as u64,
            parts: parts as u64,
            epsilon: self.epsilon,
            momentum: self.momentum,
            gelu: self.gelu.into(),
            unused: 0,
        })
    }

    fn forward(
        &self,
        device: &Device,
        layout: &Layout,
        views: [View<'_>; 2],
        residual: Option<View<'_>>,
    ) -> Result<Memory> {
        let (rows, features) = layout.shape().dims2()?;
        let (x, dtype) = (views[0], views[0].dtype());
        let mut arguments = self.arguments((rows, features), x, views[1])?;
        let out = Memory::new(device, dtype, rows * features)?;
        let moments = Memory::new(device, DType::F64, 2 * features)?;
        let partial = Memory::new(device, DType::F64, 2 * features * arguments.parts as usize)?;
        arguments.out = out.address();
        arguments.moments = moments.address();
        arguments.partial = partial.address();
        arguments.residual = residual.map_or(Ok(Address::NONE), |rest| rest.address(dtype, rows * features))?;
        run(device, dtype, "partial_moments", arguments.parts * arguments.features, &arguments)?;
        run(device, dtype, "join_moments", arguments.features, &arguments)?;
        run(device, dtype, "normalised", arguments.rows * arguments.features, &arguments)?;
        self.moments.set(moments.into_tensor((2, features)));
        Ok(out)
    }

    /// Gradients of x and of weights and biases.
    fn backward(&self, x: &Tensor, affine: &Tensor, gradient: &Tensor) -> Result<(Tensor, Tensor)> {
        let (device, dtype, (rows, features)) = (x.device(), x.dtype(), x.dims2()?);
        let (gradient, moments) = (gradient.contiguous()?, self.moments.get()?);
        let mut arguments = self.arguments((rows, features), View::new(x)?, View::new(affine)?)?;
        let (of_x, of_affine) =
            (Memory::new(device, dtype, rows * features)?, Memory::new(device, dtype, 2 * features)?);
        let sums = Memory::new(device, DType::F64, 2 * features)?;
        let partial = Memory::new(device, DType::F64, 2 * features * arguments.parts as usize)?;
        arguments.gradient = View::new(&gradient)?.address(dtype, rows * features)?;
        arguments.moments = View::new(&moments)?.address(DType::F64, 2 * features)?;
        arguments.out = of_x.address();
        arguments.of_affine = of_affine.address();
        arguments.sums = sums.address();
        arguments.partial = partial.address();
        run(device, dtype, "partial_norm_sums", arguments.parts * arguments.features, &arguments)?;
        run(device, dtype, "join_norm_sums", arguments.features, &arguments)?;
        run(device, dtype, "norm_gradient", arguments.rows * arguments.features, &arguments)?;
        Ok((of_x.into_tensor(x.shape()), of_affine.into_tensor(affine.shape())))
    }
}

fn run(device: &Device, dtype: DType, name: &str, count: u64, arguments: &NormArguments) -> Result<()> {
    // SAFETY: the callers, in this file, checked or made all that they pass for these rows, features and parts.
    unsafe { launch(device, &Module::Norm.kernel(name, dtype)?, Grid::over(count), arguments) }
}

impl CustomOp2 for BatchMoments {
    fn name(&self) -> &'static str {
        "batch-norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, at: &Layout, affine: &CpuStorage, of: &Layout) -> Result<(CpuStorage, Shape)> {
        let views = [View::of_host(x, at)?, View::of_host(affine, of)?];
        self.forward(&Device::Cpu, at, views, None)?.into_host(at.shape().clone())
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        at: &Layout,
        affine: &CudaStorage,
        of: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let views = [View::of_storage(x, at)?, View::of_storage(affine, of)?];
        self.forward(&device_of(x), at, views, None)?.into_storage(at.shape().clone())
    }

    fn bwd(
        &self,
        x: &Tensor,
        affine: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        self.backward(x, affine, gradient).map(|(of_x, of_affine)| (Some(of_x), Some(of_affine)))
    }
}

impl CustomOp3 for BatchMoments {
    fn name(&self) -> &'static str {
        "batch-norm-residual"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        at: &Layout,
        affine: &CpuStorage,
        of: &Layout,
        residual: &CpuStorage,
        rest: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let views = [View::of_host(x, at)?, View::of_host(affine, of)?];
        let residual = View::of_host(residual, rest)?;
        self.forward(&Device::Cpu, at, views, Some(residual))?.into_host(at.shape().clone())
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        at: &Layout,
        affine: &CudaStorage,
        of: &Layout,
        residual: &CudaStorage,
        rest: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let views = [View::of_storage(x, at)?, View::of_storage(affine, of)?];
        let residual = View::of_storage(residual, rest)?;
        self.forward(&device_of(x), at, views, Some(residual))?.into_storage(at.shape().clone())
    }

    fn bwd(
        &self,
        x: &Tensor,
        affine: &Tensor,
        _: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (of_x, of_affine) = self.backward(x, affine, gradient)?;
        Ok((Some(of_x), Some(of_affine), Some(gradient.clone())))
    }
}
