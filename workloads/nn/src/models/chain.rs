//! Layers as candle operations whose activations stay in buffers from a workspace: the fused form of GCN, GraphSAGE and
//! GAT on the CPU. As tensors the activations would go through candle's gradient store, which allocates and adds each of
//! them again, so between layers only one-element tokens pass.
//!
//! candle's custom operations take three tensors, a layer has more: features, up to three weights and a bias. So a
//! layer is two operations. [`Weights`] takes the weights and gives a token; [`Output`] takes the features or token
//! from below, the weights' token and the bias, and computes. In the backward pass, candle reaches the output first: it
//! computes everything and leaves the weights' gradients for the other operation to return.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, Device, Layout, Result, Shape, Tensor, bail};

use super::features::{FeatureRows, FeatureTable};
use crate::kernels::{Buffer, Lanes, Selected, Workspaces, cpu_slice, host_slice};

/// One evaluation of a layer, in number type `T`.
pub trait ChainLayer<T: Lanes>: Send + Sync + 'static {
    /// Its one to three parameters besides the bias, contiguous.
    fn weights(&self) -> &[Tensor];

    /// Its bias.
    fn bias(&self) -> &Tensor;

    /// Rows and columns of the result.
    fn shape(&self) -> (usize, usize);

    /// Elements of a row of its input.
    fn input(&self) -> usize;

    /// Computes the result, and keeps what [`backward`](Self::backward) needs.
    fn forward(&self, x: Selected<'_, T>, bias: &[T]) -> Result<Buffer<T>>;

    /// Gradients, from that of the result. The result itself is given for all layers but the last.
    fn backward(
        &self,
        x: Selected<'_, T>,
        result: Option<&[T]>,
        gradient: Buffer<T>,
        with_input: bool,
    ) -> Result<LayerGradients<T>>;
}

/// Gradients that a layer returns.
pub struct LayerGradients<T> {
    /// Of its input, where it was asked for.
    pub input: Option<Buffer<T>>,
    /// Of [`weights`](ChainLayer::weights).
    pub weights: Vec<Vec<T>>,
    pub bias: Vec<T>,
}

/// The layers so far.
pub(super) struct Chain<T: Lanes> {
    /// Features, a token, or after the last layer its result.
    x: Tensor,
    input: Input<T>,
    workspaces: Workspaces,
}

/// Where a layer's input is.
enum Input<T: Lanes> {
    /// In the tensor of features.
    Features,
    /// In the features of all nodes of the graph, in the rows with these numbers.
    InPlace { table: FeatureTable, nodes: Buffer<u32> },
    /// In the result of the layer below.
    Below(Arc<Link<T>>),
}

impl<T: Lanes> Chain<T> {
    pub(super) fn start(features: FeatureRows<'_>, workspaces: &Workspaces) -> Result<Self> {
        let workspaces = workspaces.clone();
        match features {
            FeatureRows::Gathered(features) => {
                Ok(Self { x: features.contiguous()?, input: Input::Features, workspaces })
            }
            FeatureRows::InPlace { table, nodes: numbers } => {
                let mut nodes = workspaces.indices.take(numbers.len());
                nodes.copy_from_slice(numbers);
                let input = Input::InPlace { table: table.clone(), nodes };
                Ok(Self { x: Tensor::zeros(1, T::DTYPE, &Device::Cpu)?, input, workspaces })
            }
        }
    }

    /// Whether the next layer's input needs a gradient.
    pub(super) fn gives_gradient(&self) -> bool {
        matches!(self.input, Input::Below(_)) || self.x.track_op()
    }

    /// One more layer.
    pub(super) fn push(self, layer: Box<dyn ChainLayer<T>>, is_last: bool) -> Result<Self> {
        let Self { x, input, workspaces } = self;
        let link = Arc::new(Link { layer, input, is_last, workspaces: workspaces.clone(), slots: Mutex::default() });
        let weights = Weights(Arc::clone(&link));
        let token = match link.layer.weights() {
            [only] => only.apply_op1(weights)?,
            [first, second] => first.apply_op2(second, weights)?,
            [first, second, third] => first.apply_op3(second, third, weights)?,
            other => bail!("a layer in a chain has one to three weights, not {}", other.len()),
        };
        let x = x.apply_op3(&token, &link.layer.bias().contiguous()?, Output(Arc::clone(&link)))?;
        Ok(Self { x, input: Input::Below(link), workspaces })
    }

    /// The result of the last layer.
    pub(super) fn finish(self) -> Tensor {
        self.x
    }
}

/// A layer, and what it shares with the one above.
struct Link<T: Lanes> {
    layer: Box<dyn ChainLayer<T>>,
    input: Input<T>,
    is_last: bool,
    workspaces: Workspaces,
    slots: Mutex<Slots<T>>,
}

struct Slots<T> {
    /// The result of a layer that is not the last.
    result: Option<Buffer<T>>,
    /// Its gradient, left by the layer above.
    result_gradient: Option<Buffer<T>>,
    /// Left for [`Weights`].
    weight_gradients: Option<Vec<Vec<T>>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { result: None, result_gradient: None, weight_gradients: None }
    }
}

impl<T: Lanes> Link<T> {
    /// Locks even after a panic: the content is then merely incomplete, which [`left`] reports.
    fn slots(&self) -> MutexGuard<'_, Slots<T>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gradient of the result: left by the layer above, or from candle for the last layer.
    fn upstream(&self, gradient: &Tensor) -> Result<Buffer<T>> {
        if !self.is_last {
            return left(self.slots().result_gradient.take());
        }
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let values = host_slice(&storage, layout)?;
        let mut buffer = T::workspace(&self.workspaces).take(values.len());
        buffer.copy_from_slice(values);
        Ok(buffer)
    }

    /// From the gradient of the result, leaves those of the weights and returns those of `x` and of the bias.
    fn backward(
        &self,
        x: Selected<'_, T>,
        gradient: Buffer<T>,
        with_input: bool,
    ) -> Result<(Option<Buffer<T>>, Vec<T>)> {
        let mut slots = self.slots();
        let LayerGradients { input, weights, bias } =
            self.layer.backward(x, slots.result.as_deref(), gradient, with_input)?;
        slots.weight_gradients = Some(weights);
        Ok((input, bias))
    }
}

/// Something that an earlier operation must have left.
pub(super) fn left<B>(slot: Option<B>) -> Result<B> {
    match slot {
        Some(value) => Ok(value),
        None => bail!("the operations of a chain of layers ran out of order"),
    }
}

/// The one-element result of an operation whose real result stays in the [`Link`].
fn token<T: Lanes>() -> (CpuStorage, Shape) {
    (T::to_cpu_storage_owned(vec![T::zero()]), Shape::from(1))
}

/// Stands for the weights of a layer in the order of the autograd graph.
struct Weights<T: Lanes>(Arc<Link<T>>);

impl<T: Lanes> Weights<T> {
    /// A gradient for each, in their shapes.
    fn gradients(&self, weights: &[&Tensor]) -> Result<Vec<Tensor>> {
        let gradients = left(self.0.slots().weight_gradients.take())?;
        let tensor = |(values, like): (Vec<T>, &&Tensor)| Tensor::from_vec(values, like.shape(), &Device::Cpu);
        gradients.into_iter().zip(weights).map(tensor).collect()
    }
}

impl<T: Lanes> CustomOp1 for Weights<T> {
    fn name(&self) -> &'static str {
        "chain-weights"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok(token::<T>())
    }

    fn bwd(&self, only: &Tensor, _: &Tensor, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(self.gradients(&[only])?.pop())
    }
}

impl<T: Lanes> CustomOp2 for Weights<T> {
    fn name(&self) -> &'static str {
        "chain-weights"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok(token::<T>())
    }

    fn bwd(&self, a: &Tensor, b: &Tensor, _: &Tensor, _: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let mut gradients = self.gradients(&[a, b])?.into_iter();
        Ok((gradients.next(), gradients.next()))
    }
}

impl<T: Lanes> CustomOp3 for Weights<T> {
    fn name(&self) -> &'static str {
        "chain-weights"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        Ok(token::<T>())
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        c: &Tensor,
        _: &Tensor,
        _: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let mut gradients = self.gradients(&[a, b, c])?.into_iter();
        Ok((gradients.next(), gradients.next(), gradients.next()))
    }
}

/// Computes a layer. Its first argument is the features, or the token of the layer below.
struct Output<T: Lanes>(Arc<Link<T>>);

impl<T: Lanes> CustomOp3 for Output<T> {
    fn name(&self) -> &'static str {
        "chain-output"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (link, bias) = (&*self.0, cpu_slice(bias, bias_layout)?);
        let width = link.layer.input();
        let result = match &link.input {
            Input::Features => link.layer.forward(Selected::all(cpu_slice(x, x_layout)?, width), bias)?,
            Input::InPlace { table, nodes } => link.layer.forward(table.selected(nodes)?, bias)?,
            Input::Below(below) => {
                link.layer.forward(Selected::all(left(below.slots().result.as_deref())?, width), bias)?
            }
        };
        if !link.is_last {
            link.slots().result = Some(result);
            return Ok(token::<T>());
        }
        Ok((T::to_cpu_storage_owned(result.to_vec()), Shape::from(link.layer.shape())))
    }

    fn bwd(
        &self,
        x: &Tensor,
        token: &Tensor,
        bias: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let link = &*self.0;
        let (gradient, width) = (link.upstream(gradient)?, link.layer.input());
        let (of_x, of_bias) = match &link.input {
            Input::Features => {
                let (storage, layout) = x.storage_and_layout();
                let features = Selected::all(host_slice(&storage, layout)?, width);
                let (of_x, of_bias) = link.backward(features, gradient, x.track_op())?;
                let of_x = of_x.map(|of_x| Tensor::from_vec(of_x.to_vec(), x.shape(), x.device()));
                (of_x.transpose()?, of_bias)
            }
            Input::InPlace { table, nodes } => (None, link.backward(table.selected(nodes)?, gradient, false)?.1),
            Input::Below(below) => {
                let mut slots = below.slots();
                let result = Selected::all(left(slots.result.as_deref())?, width);
                let (of_below, of_bias) = link.backward(result, gradient, true)?;
                slots.result_gradient = of_below;
                (Some(x.zeros_like()?), of_bias)
            }
        };
        Ok((of_x, Some(token.zeros_like()?), Some(Tensor::from_vec(of_bias, bias.shape(), &Device::Cpu)?)))
    }
}
