//! Models that are a stack of layers of one kind, GraphSAGE and GAT: the three ways in which such a stack is computed.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor, bail};

use super::chain::{Chain, ChainLayer};
use super::node_model::{Pass, check_nodes, edges_of};
use crate::cuda;
use crate::kernels::{Lanes, Workspaces};
use gnntop_data::graph::Adjacency;

/// Layers of one kind, one on the other.
#[derive(Clone, Copy)]
pub(super) struct Stack<'a> {
    /// Number of layers.
    pub(super) layers: usize,
    /// Features per node.
    pub(super) in_features: usize,
    /// Whether the fused form runs.
    pub(super) is_fused: bool,
    /// Memory for the fused form.
    pub(super) workspaces: &'a Workspaces,
}

/// A model that is such a stack.
pub(super) trait LayeredModel {
    /// Its name in errors.
    const NAME: &'static str;
    /// One evaluation of a layer of the fused form on the CPU.
    type Fused<T: Lanes>: ChainLayer<T>;
    /// The same on a GPU.
    type OnDevice: cuda::ChainLayer;

    /// Its settings.
    fn stack(&self) -> Stack<'_>;

    /// Layer `index` of the plain form.
    fn plain_layer(&self, index: usize, x: &Tensor, edges: &Arc<Adjacency>, pass: Pass) -> Result<Tensor>;

    /// Layer `index` of the fused form, whose input needs a gradient where `with_input`.
    fn fused_layer<T: Lanes>(
        &self,
        index: usize,
        edges: &Arc<Adjacency>,
        pass: Pass,
        with_input: bool,
    ) -> Result<Self::Fused<T>>;

    /// The same on a GPU.
    fn layer_on_device(
        &self,
        index: usize,
        edges: &Arc<Adjacency>,
        pass: Pass,
        with_input: bool,
    ) -> Result<Self::OnDevice>;
}

/// [`NodeModel::forward_with`](super::NodeModel::forward_with) of a stack, in the form that it asks for.
pub(super) fn forward<M: LayeredModel, G>(
    model: &M,
    features: &Tensor,
    layers: &[Arc<Adjacency>],
    pass: Pass,
    enter: impl FnMut(usize) -> G,
) -> Result<Tensor> {
    let Stack { layers: count, in_features, is_fused, .. } = model.stack();
    check_nodes(features, in_features, layers, count)?;
    let device = features.device();
    match (is_fused, features.dtype()) {
        (true, _) if device.is_cuda() => forward_on_device(model, features, layers, pass, enter),
        (true, DType::F32) if device.is_cpu() => fused::<f32, M, G>(model, features, layers, pass, enter),
        (true, DType::F64) if device.is_cpu() => fused::<f64, M, G>(model, features, layers, pass, enter),
        (true, other) if device.is_cpu() => {
            bail!("{}: the fused form takes f32 or f64 features, not {other:?}; take the plain form", M::NAME)
        }
        _ => plain(model, features, layers, pass, enter),
    }
}

fn plain<M: LayeredModel, G>(
    model: &M,
    features: &Tensor,
    layers: &[Arc<Adjacency>],
    pass: Pass,
    mut enter: impl FnMut(usize) -> G,
) -> Result<Tensor> {
    let mut x = features.clone();
    for index in 0..model.stack().layers {
        let _guard = enter(index);
        x = model.plain_layer(index, &x, edges_of(layers, index), pass)?;
    }
    Ok(x)
}

fn fused<T: Lanes, M: LayeredModel, G>(
    model: &M,
    features: &Tensor,
    layers: &[Arc<Adjacency>],
    pass: Pass,
    mut enter: impl FnMut(usize) -> G,
) -> Result<Tensor> {
    let mut chain = Chain::<T, M::Fused<T>>::start(features, model.stack().workspaces)?;
    for index in 0..model.stack().layers {
        let _guard = enter(index);
        let layer = model.fused_layer(index, edges_of(layers, index), pass, chain.gives_gradient())?;
        chain = chain.push(layer, index + 1 == model.stack().layers)?;
    }
    Ok(chain.finish())
}

/// The fused form with the kernels of a GPU, in any number type.
pub(super) fn forward_on_device<M: LayeredModel, G>(
    model: &M,
    features: &Tensor,
    layers: &[Arc<Adjacency>],
    pass: Pass,
    mut enter: impl FnMut(usize) -> G,
) -> Result<Tensor> {
    let mut chain = cuda::Chain::start(features)?;
    for index in 0..model.stack().layers {
        let _guard = enter(index);
        let layer = model.layer_on_device(index, edges_of(layers, index), pass, chain.gives_gradient())?;
        chain = chain.push(layer, index + 1 == model.stack().layers)?;
    }
    Ok(chain.finish())
}
