//! PNA's degree scalers on a device, applied after the linear map instead of before: the three products of the
//! aggregates (plain, amplified and attenuated) are scaled by each node's degree and added up.

use std::sync::Arc;

use bytemuck::NoUninit;
use candle_core::{CpuStorage, CudaStorage, CustomOp3, Device, Layout, Result, Shape, Tensor, bail};

use super::edges::Edges;
use super::elements::column_sums;
use super::kernel::{Address, Grid, Module};
use super::machine::{Memory, View, launch};
use gnntop_data::graph::Adjacency;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DegreeArguments {
    start: Address,
    x: Address,
    parts: Address,
    bias: Address,
    sum: Address,
    count: u64,
    width: u64,
    average_log_degree: f64,
}

/// `x + bias + p_0 + amp p_1 + att p_2` for every node, `[nodes, width]`, from `x` of that shape, `bias`, `[width]`, and
/// `parts`, `[nodes, 3 width]`, whose thirds are the p. The scalers are
/// `ln(d + 1)` over its mean in training, `average_log_degree`, and the inverse of that.
///
/// # Errors
/// The shapes do not fit the graph, or number types differ.
pub(crate) fn add_scaled(
    adjacency: &Arc<Adjacency>,
    average_log_degree: f64,
    x: &Tensor,
    parts: &Tensor,
    bias: &Tensor,
) -> Result<Tensor> {
    let (nodes, width) = x.dims2()?;
    if nodes != adjacency.nodes() || parts.dims() != [nodes, 3 * width] || bias.dims() != [width] {
        bail!("scaled sums: {:?}, {:?} and {:?} do not fit", x.dims(), parts.dims(), bias.dims());
    }
    let operation = AddScaled { adjacency: Arc::clone(adjacency), average_log_degree };
    x.contiguous()?.apply_op3(&parts.contiguous()?, &bias.contiguous()?, operation)
}

struct AddScaled {
    adjacency: Arc<Adjacency>,
    average_log_degree: f64,
}

impl AddScaled {
    fn forward(&self, edges: &Edges, shape: &Shape, [x, parts, bias]: [View<'_>; 3]) -> Result<Memory> {
        let ((nodes, width), dtype) = (shape.dims2()?, x.dtype());
        let out = Memory::new(&edges.device, dtype, nodes * width)?;
        let arguments = DegreeArguments {
            x: x.address(dtype, nodes * width)?,
            parts: parts.address(dtype, 3 * nodes * width)?,
            bias: bias.address(dtype, width)?,
            sum: out.address(),
            ..self.arguments(edges, nodes, width)?
        };
        let grid = Grid::over(arguments.count);
        // SAFETY: `x`, `bias`, result and the three parts were checked to have these rows and columns; the starts are one more than the nodes.
        unsafe { launch(&edges.device, &Module::Aggregate.kernel("add_scaled", dtype)?, grid, &arguments) }?;
        Ok(out)
    }

    /// The gradient of the parts; that of `x` is the gradient itself.
    fn gradient_of_parts(&self, edges: &Edges, gradient: &Tensor) -> Result<Tensor> {
        let ((nodes, width), dtype) = (gradient.dims2()?, gradient.dtype());
        let out = Memory::new(&edges.device, dtype, 3 * nodes * width)?;
        let arguments = DegreeArguments {
            parts: out.address(),
            sum: View::new(gradient)?.address(dtype, nodes * width)?,
            ..self.arguments(edges, nodes, width)?
        };
        let grid = Grid::over(arguments.count);
        // SAFETY: as in `forward`, with the gradient in place of the result.
        unsafe { launch(&edges.device, &Module::Aggregate.kernel("scaled_gradient", dtype)?, grid, &arguments) }?;
        Ok(out.into_tensor((nodes, 3 * width)))
    }

    fn arguments(&self, edges: &Edges, nodes: usize, width: usize) -> Result<DegreeArguments> {
        Ok(DegreeArguments {
            start: edges.list(&edges.incoming.start)?,
            x: Address::NONE,
            parts: Address::NONE,
            bias: Address::NONE,
            sum: Address::NONE,
            count: (nodes * width) as u64,
            width: width as u64,
            average_log_degree: self.average_log_degree,
        })
    }
}

impl CustomOp3 for AddScaled {
    fn name(&self) -> &'static str {
        "pna-scaled"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        parts: &CpuStorage,
        parts_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let edges = Edges::new(&self.adjacency, &Device::Cpu)?;
        let (x, parts) = (View::of_host(x, x_layout)?, View::of_host(parts, parts_layout)?);
        let out = self.forward(&edges, x_layout.shape(), [x, parts, View::of_host(bias, bias_layout)?])?;
        out.into_host(x_layout.shape().clone())
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_layout: &Layout,
        parts: &CudaStorage,
        parts_layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, x)?;
        let (x, parts) = (View::of_storage(x, x_layout)?, View::of_storage(parts, parts_layout)?);
        let out = self.forward(&edges, x_layout.shape(), [x, parts, View::of_storage(bias, bias_layout)?])?;
        out.into_storage(x_layout.shape().clone())
    }

    fn bwd(
        &self,
        x: &Tensor,
        _: &Tensor,
        bias: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::new(&self.adjacency, x.device())?;
        let gradient = gradient.contiguous()?;
        let of_bias = column_sums(x.device(), View::new(&gradient)?, bias.elem_count())?.into_tensor(bias.shape());
        Ok((Some(gradient.clone()), Some(self.gradient_of_parts(&edges, &gradient)?), Some(of_bias)))
    }
}
