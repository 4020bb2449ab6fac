//! Layers in a chain on a device. candle's gradient store allocates, clears and adds up every gradient again, which for
//! activations is more traffic than the layers themselves. So between layers only one-element tokens pass through it:
//! the activations and their gradients go from layer to layer directly, and only the parameters' gradients are
//! candle's.
//!
//! A layer is two candle operations, because candle's take three tensors: [`Weights`] stands for all parameters but the
//! bias, [`Output`] for the bias and the layers below. In the backward pass, candle reaches the output first.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CudaStorage, CustomOp2, CustomOp3, DType, Device, Layout, Result, Shape, Tensor, bail};

use super::machine::{Memory, device_of};

/// Gradients that a layer returns.
pub struct Gradients {
    /// Of its input, where it was asked for.
    pub input: Option<Tensor>,
    /// Of [`weights`](ChainLayer::weights).
    pub weights: Vec<Tensor>,
    pub bias: Tensor,
}

/// One evaluation of a layer.
pub trait ChainLayer: Send + Sync + 'static {
    /// Its two or three parameters besides the bias, as the model has them.
    fn weights(&self) -> &[Tensor];

    /// Its bias, as the model has it.
    fn bias(&self) -> &Tensor;

    /// Rows and columns of the result.
    fn shape(&self) -> (usize, usize);

    /// Computes the result, and keeps what [`backward`](Self::backward) needs.
    fn forward(&self, x: &Tensor) -> Result<Memory>;

    /// Gradients, from that of the result. The result itself is given for all layers but the last.
    fn backward(&self, x: &Tensor, result: Option<&Tensor>, gradient: &Tensor, with_input: bool) -> Result<Gradients>;
}

/// The layers so far.
pub(crate) struct Chain {
    /// Features, a token, or after the last layer its result.
    x: Tensor,
    features: Tensor,
    below: Option<Arc<Link>>,
}

impl Chain {
    /// # Errors
    /// The device has too little memory.
    pub(crate) fn start(features: &Tensor) -> Result<Self> {
        let x = features.contiguous()?;
        Ok(Self { features: x.detach(), x, below: None })
    }

    /// One more layer.
    ///
    /// # Errors
    /// The layer refuses.
    pub(crate) fn push(self, layer: Box<dyn ChainLayer>, is_last: bool) -> Result<Self> {
        let with_input = self.gives_gradient();
        let input = match &self.below {
            Some(below) => below.result()?,
            None => self.features.clone(),
        };
        let made = layer.forward(&input)?;
        let slots = if is_last {
            Slots { output: Some(made), ..Slots::default() }
        } else {
            Slots { result: Some(made.into_tensor(layer.shape())), ..Slots::default() }
        };
        let link = Arc::new(Link { layer, input, below: self.below, with_input, is_last, slots: Mutex::new(slots) });
        let weights = Weights(Arc::clone(&link));
        let token = match link.layer.weights() {
            [first, second] => first.contiguous()?.apply_op2(&second.contiguous()?, weights)?,
            [first, second, third] => {
                first.contiguous()?.apply_op3(&second.contiguous()?, &third.contiguous()?, weights)?
            }
            other => bail!("a layer in a chain has two or three weights, not {}", other.len()),
        };
        let x = self.x.apply_op3(&token, &link.layer.bias().contiguous()?, Output(Arc::clone(&link)))?;
        Ok(Self { x, features: self.features, below: Some(link) })
    }

    /// Whether the next layer's input needs a gradient.
    pub(crate) fn gives_gradient(&self) -> bool {
        self.below.is_some() || self.x.track_op()
    }

    /// The result of the last layer.
    pub(crate) fn finish(self) -> Tensor {
        self.x
    }
}

/// A layer and what bypasses candle.
struct Link {
    layer: Box<dyn ChainLayer>,
    input: Tensor,
    below: Option<Arc<Link>>,
    with_input: bool,
    is_last: bool,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// The last layer's result, on its way into candle.
    output: Option<Memory>,
    /// Another layer's.
    result: Option<Tensor>,
    /// Its gradient, left by the layer above.
    result_gradient: Option<Tensor>,
    /// Left for [`Weights`].
    weight_gradients: Option<Vec<Tensor>>,
}

fn out_of_order<T>() -> Result<T> {
    bail!("the operations of a chain of layers ran out of order")
}

impl Link {
    /// Locks even after a panic: missing values are reported.
    fn slots(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn result(&self) -> Result<Tensor> {
        self.slots().result.clone().map_or_else(out_of_order, Ok)
    }

    /// The result that candle sees.
    fn output(&self, device: &Device, dtype: DType) -> Result<(Memory, Shape)> {
        if !self.is_last {
            return token(device, dtype);
        }
        match self.slots().output.take() {
            Some(output) => Ok((output, Shape::from(self.layer.shape()))),
            None => out_of_order(),
        }
    }

    /// Computes all gradients; returns those of the input, if this is the first layer, and of the bias.
    fn backward(&self, gradient: &Tensor) -> Result<(Option<Tensor>, Tensor)> {
        let (result, gradient) = if self.is_last {
            (None, gradient.contiguous()?)
        } else {
            let mut slots = self.slots();
            (slots.result.take(), slots.result_gradient.take().map_or_else(out_of_order, Ok)?)
        };
        let found = self.layer.backward(&self.input, result.as_ref(), &gradient, self.with_input)?;
        self.slots().weight_gradients = Some(found.weights);
        match &self.below {
            Some(below) => {
                below.slots().result_gradient = found.input;
                Ok((None, found.bias))
            }
            None => Ok((found.input, found.bias)),
        }
    }
}

/// A placeholder for candle where the real result bypasses it. Its value is never read.
fn token(device: &Device, dtype: DType) -> Result<(Memory, Shape)> {
    Ok((Memory::new(device, dtype, 1)?, Shape::from(1)))
}

fn on_host((memory, shape): (Memory, Shape)) -> Result<(CpuStorage, Shape)> {
    memory.into_host(shape)
}

fn on_cuda((memory, shape): (Memory, Shape)) -> Result<(CudaStorage, Shape)> {
    memory.into_storage(shape)
}

fn type_of<S: candle_core::backend::BackendStorage>(storage: &S) -> DType {
    storage.dtype()
}

struct Weights(Arc<Link>);

impl Weights {
    fn gradients(&self) -> Result<Vec<Tensor>> {
        self.0.slots().weight_gradients.take().map_or_else(out_of_order, Ok)
    }
}

impl CustomOp2 for Weights {
    fn name(&self) -> &'static str {
        "chain-weights"
    }

    fn cpu_fwd(&self, first: &CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        on_host(token(&Device::Cpu, type_of(first))?)
    }

    fn cuda_fwd(&self, first: &CudaStorage, _: &Layout, _: &CudaStorage, _: &Layout) -> Result<(CudaStorage, Shape)> {
        on_cuda(token(&device_of(first), type_of(first))?)
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, _: &Tensor, _: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let mut gradients = self.gradients()?.into_iter();
        Ok((gradients.next(), gradients.next()))
    }
}

impl CustomOp3 for Weights {
    fn name(&self) -> &'static str {
        "chain-weights"
    }

    fn cpu_fwd(
        &self,
        first: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        on_host(token(&Device::Cpu, type_of(first))?)
    }

    fn cuda_fwd(
        &self,
        first: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        on_cuda(token(&device_of(first), type_of(first))?)
    }

    fn bwd(
        &self,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let mut gradients = self.gradients()?.into_iter();
        Ok((gradients.next(), gradients.next(), gradients.next()))
    }
}

struct Output(Arc<Link>);

impl CustomOp3 for Output {
    fn name(&self) -> &'static str {
        "chain-output"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        on_host(self.0.output(&Device::Cpu, type_of(x))?)
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        on_cuda(self.0.output(&device_of(x), type_of(x))?)
    }

    fn bwd(
        &self,
        x: &Tensor,
        token: &Tensor,
        _: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (of_features, of_bias) = self.0.backward(gradient)?;
        let below = if self.0.below.is_some() { Some(x.detach()) } else { of_features };
        Ok((below, Some(token.detach()), Some(of_bias)))
    }
}
