//! One block: `y = x + BN(W2 GELU(GraphConv(BN(W1 x))))`, then `z = y + BN(V2 GELU(BN(V1 y)))`.
//!
//! Two forms compute the same. The plain one makes every layer's result, 256 or 512 numbers a node, as PyTorch
//! Geometric does. In the fused one everything before a GELU is one linear map of a few columns per node: with the
//! normalisation's slope A and offset a, `BN(W1 x) = A x + a`, and so
//! `GraphConv = [W_root A | W_rel A | W_rel a] [x_i | sum_j x_j | degree] + W_root a + b`. The statistics inside A and
//! a follow from mean and covariance of x. Gradients reach every parameter through these products, exactly.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::{Init, VarBuilder};

use super::fused::fused_mlp;
use super::gelu::gelu;
use super::moments::mean_and_covariance;
use super::norm::{BatchNorm, Behind, Mode, numbers};
use super::normalise::EPSILON;
use super::{CHANNELS, Grid, VigConfig, grid::neighbour_sum, groups};
use crate::kernels::Workspaces;

/// Which of two equal computations to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// Linear maps are merged, hidden layers are never stored.
    #[default]
    Fused,
    /// Layer by layer: the control.
    Plain,
}

/// Weight `[output, input]` and bias `[output]` of a linear map.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    pub(super) fn new(input: usize, output: usize, vb: VarBuilder<'_>) -> Result<Self> {
        let init = uniform(input);
        let weight = vb.get_with_hints((output, input), "weight", init)?;
        Ok(Self { weight, bias: vb.get_with_hints(output, "bias", init)? })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight.t()?)?.broadcast_add(&self.bias)
    }
}

/// PyTorch's initial distribution of a linear map's weight and bias.
pub(super) fn uniform(input: usize) -> Init {
    let bound = 1.0 / (input as f64).sqrt();
    Init::Uniform { lo: -bound, up: bound }
}

/// A block of study 3's ViG, `[nodes, 3]` to `[nodes, 3]`.
#[derive(Debug, Clone)]
pub struct Block {
    w1: Linear,
    bn1: BatchNorm,
    lin_rel: Linear,
    lin_root: Tensor,
    w2: Linear,
    bn2: BatchNorm,
    v1: Linear,
    bn3: BatchNorm,
    v2: Linear,
    bn4: BatchNorm,
}

/// A normalised linear map `A (x - centre) + a`.
struct Normalised {
    /// `[3]`.
    centre: Tensor,
    /// A, `[hidden, 3]`.
    slope: Tensor,
    /// a, `[hidden]`.
    offset: Tensor,
}

impl Block {
    /// Reads `w1`, `bn1`, `conv.lin_rel`, `conv.lin_root`, `w2`, `bn2`, `v1`, `bn3`, `v2` and `bn4`.
    ///
    /// # Errors
    /// A parameter is missing or has another shape.
    pub fn new(config: &VigConfig, vb: VarBuilder<'_>) -> Result<Self> {
        let (hidden, ffn) = (config.hidden, config.ffn);
        let conv = vb.pp("conv");
        Ok(Self {
            w1: Linear::new(CHANNELS, hidden, vb.pp("w1"))?,
            bn1: BatchNorm::new(hidden, vb.pp("bn1"))?,
            lin_rel: Linear::new(hidden, hidden, conv.pp("lin_rel"))?,
            lin_root: conv.pp("lin_root").get_with_hints((hidden, hidden), "weight", uniform(hidden))?,
            w2: Linear::new(hidden, CHANNELS, vb.pp("w2"))?,
            bn2: BatchNorm::new(CHANNELS, vb.pp("bn2"))?,
            v1: Linear::new(CHANNELS, ffn, vb.pp("v1"))?,
            bn3: BatchNorm::new(ffn, vb.pp("bn3"))?,
            v2: Linear::new(ffn, CHANNELS, vb.pp("v2"))?,
            bn4: BatchNorm::new(CHANNELS, vb.pp("bn4"))?,
        })
    }

    /// `[images * height * width, 3]` to the same. In training the fused form gives no gradient to the biases of w1,
    /// w2, v1 and v2: a normalisation follows each of them, so it is exactly 0.
    ///
    /// # Errors
    /// The nodes are not whole images, there is only one node to train on, or `x` is neither f32 nor f64.
    pub fn forward(&self, x: &Tensor, grid: Grid, form: Form, mode: Mode, workspaces: &Workspaces) -> Result<Tensor> {
        match form {
            Form::Fused => self.fused_ffn(&self.fused_graph_layer(x, grid, mode, workspaces)?, mode, workspaces),
            Form::Plain => self.plain(x, grid, mode, workspaces),
        }
    }

    /// The four normalisations `bn1` to `bn4`, whose running statistics belong to the state of a model.
    #[must_use]
    pub fn norms(&self) -> [&BatchNorm; 4] {
        [&self.bn1, &self.bn2, &self.bn3, &self.bn4]
    }

    fn plain(&self, x: &Tensor, grid: Grid, mode: Mode, workspaces: &Workspaces) -> Result<Tensor> {
        let hidden = self.bn1.forward(&self.w1.forward(x)?, mode)?;
        let neighbours = self.lin_rel.forward(&neighbour_sum(&hidden, grid, workspaces)?)?;
        let convolved = (neighbours + hidden.matmul(&self.lin_root.t()?)?)?;
        let y = self.bn2.forward_behind(&self.w2.forward(&gelu(&convolved)?)?, Behind::onto(x), mode)?;
        let hidden = self.bn3.forward_behind(&self.v1.forward(&y)?, Behind::GELU, mode)?;
        self.bn4.forward_behind(&self.v2.forward(&hidden)?, Behind::onto(&y), mode)
    }

    fn fused_graph_layer(&self, x: &Tensor, grid: Grid, mode: Mode, workspaces: &Workspaces) -> Result<Tensor> {
        let Normalised { centre, slope, offset } = normalised(x, &self.w1, &self.bn1, mode)?;
        let both = Tensor::cat(&[&slope, &offset.unsqueeze(1)?], 1)?;
        let root = self.lin_root.matmul(&both)?;
        let neighbours = self.lin_rel.weight.matmul(&both)?;
        let constant = (root.narrow(1, CHANNELS, 1)? + self.lin_rel.bias.unsqueeze(1)?)?;
        let weights = [&root.narrow(1, 0, CHANNELS)?, &neighbours, &constant, &self.w2.weight.t()?];
        let columns = groups::columns(x, &centre, Some(grid), workspaces)?;
        let z = fused_mlp(&columns, &Tensor::cat(&weights, 1)?, x.dim(0)?, workspaces)?;
        x + self.bn2.forward_after(&z, Some(&self.w2.bias), mode)?
    }

    fn fused_ffn(&self, y: &Tensor, mode: Mode, workspaces: &Workspaces) -> Result<Tensor> {
        let Normalised { centre, slope, offset } = normalised(y, &self.v1, &self.bn3, mode)?;
        let weights = Tensor::cat(&[&slope, &offset.unsqueeze(1)?, &self.v2.weight.t()?], 1)?;
        let columns = groups::columns(y, &centre, None, workspaces)?;
        let z = fused_mlp(&columns, &weights, y.dim(0)?, workspaces)?;
        y + self.bn4.forward_after(&z, Some(&self.v2.bias), mode)?
    }
}

/// `norm(linear(x))` as one linear map; in training its statistics come from those of x, and move the running ones.
fn normalised(x: &Tensor, linear: &Linear, norm: &BatchNorm, mode: Mode) -> Result<Normalised> {
    let dtype = x.dtype();
    match mode {
        Mode::Train => {
            let moments = mean_and_covariance(x)?;
            let (mean, covariance) = (moments.narrow(0, 0, 1)?, moments.narrow(0, 1, CHANNELS)?);
            let weight = linear.weight.to_dtype(DType::F64)?;
            let variance = (weight.matmul(&covariance.contiguous()?)? * &weight)?.sum(D::Minus1)?;
            let batch_mean = weight.matmul(&mean.t()?)?.flatten_all()?;
            let batch_mean = (batch_mean + linear.bias.to_dtype(DType::F64)?)?;
            norm.update(&numbers(&batch_mean)?, &numbers(&variance)?, x.dim(0)?)?;
            let scale = (norm.weight.to_dtype(DType::F64)? / (variance + EPSILON)?.sqrt()?)?;
            let slope = weight.broadcast_mul(&scale.unsqueeze(1)?)?.to_dtype(dtype)?;
            let centre = mean.flatten_all()?.to_dtype(dtype)?;
            Ok(Normalised { centre, slope, offset: norm.bias.clone() })
        }
        Mode::Eval => {
            let (mean, variance) = norm.running_tensors(dtype)?;
            let scale = (&norm.weight / (variance + EPSILON)?.sqrt()?)?;
            let slope = linear.weight.broadcast_mul(&scale.unsqueeze(1)?)?;
            let offset = (&norm.bias + (&linear.bias - mean)?.mul(&scale)?)?;
            Ok(Normalised { centre: Tensor::zeros(CHANNELS, dtype, x.device())?, slope, offset })
        }
    }
}
