//! Models that are a stack of layers of one kind, GraphSAGE, GAT and GIN, and the three ways in which such a stack is
//! computed: operation by operation, fused on the CPU, and with the kernels of a GPU.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::chain::{Chain, ChainLayer};
use super::features::FeatureRows;
use super::node_model::{NodeModel, Pass, check_nodes, edges_of};
use crate::cuda;
use crate::kernels::{Lanes, MatmulPrecision, Workspaces, dropout};
use gnntop_data::graph::Adjacency;

/// What a stack of layers needs to know of its settings.
#[derive(Clone, Copy)]
pub struct Stack {
    /// Number of layers.
    pub layers: usize,
    /// Features per node.
    pub in_features: usize,
    /// Whether the fused form runs, and what its products multiply on the CPU.
    pub fused: Option<MatmulPrecision>,
}

/// Where a layer is evaluated.
pub struct Evaluation<'a, C> {
    /// The model's settings.
    pub config: &'a C,
    /// The layer's number.
    pub index: usize,
    /// Whether another layer follows, and so an activation.
    pub is_inner: bool,
    /// What for.
    pub pass: Pass,
    /// The layer's edges.
    pub edges: &'a Arc<Adjacency>,
    /// Whether its input needs a gradient. Only the fused forms ask.
    pub with_input: bool,
    /// Memory for the fused form on the CPU.
    pub workspaces: &'a Workspaces,
}

/// A kind of layer, with the settings of the models made of it.
pub trait Convolution<C>: Sized {
    /// Its name in errors.
    const NAME: &'static str;

    /// The size and form of a model of these settings.
    ///
    /// # Errors
    /// The settings are impossible.
    fn stack(config: &C) -> Result<Stack>;

    /// Reads or makes the parameters of layer `index`.
    ///
    /// # Errors
    /// A parameter is missing or has another shape.
    fn make(config: &C, index: usize, vb: VarBuilder<'_>) -> Result<Self>;

    /// The layer of the plain form, with its activation and dropouts.
    ///
    /// # Errors
    /// Shapes or number types do not fit.
    fn plain(&self, at: &Evaluation<'_, C>, x: &Tensor) -> Result<Tensor>;

    /// The layer of the fused form on the CPU.
    ///
    /// # Errors
    /// There is no fused form, or a dropout is no probability.
    fn fused<T: Lanes>(&self, _: &Evaluation<'_, C>) -> Result<Box<dyn ChainLayer<T>>> {
        bail!("{}: there is no fused form", Self::NAME)
    }

    /// The same on a GPU.
    ///
    /// # Errors
    /// As [`fused`](Self::fused).
    fn on_device(&self, _: &Evaluation<'_, C>) -> Result<Box<dyn cuda::ChainLayer>> {
        bail!("{}: there is no fused form", Self::NAME)
    }
}

/// Layers of one kind, one on the other: a model of these settings.
#[derive(Debug, Clone)]
pub struct Layered<V, C> {
    config: C,
    convs: Vec<V>,
    workspaces: Workspaces,
}

impl<V, C> Layered<V, C> {
    /// The settings it was made with.
    #[must_use]
    pub fn config(&self) -> &C {
        &self.config
    }
}

/// Dropout where there is one, of this probability and seed.
pub(super) fn dropped(x: Tensor, drop: Option<(f64, u64)>) -> Result<Tensor> {
    match drop {
        Some((probability, seed)) => dropout(&x, probability, seed),
        None => Ok(x),
    }
}

impl<V: Convolution<C>, C: Clone> NodeModel for Layered<V, C> {
    type Config = C;

    fn new(config: &C, vb: VarBuilder<'_>) -> Result<Self> {
        let layers = 0..V::stack(config)?.layers;
        let convs = layers.map(|index| V::make(config, index, vb.pp("convs").pp(index))).collect::<Result<_>>()?;
        Ok(Self { config: config.clone(), convs, workspaces: Workspaces::default() })
    }

    fn layers(&self) -> usize {
        self.convs.len()
    }

    fn reads_in_place(&self) -> Option<MatmulPrecision> {
        V::stack(&self.config).ok()?.fused
    }

    fn forward_with<'a, G>(
        &self,
        features: impl Into<FeatureRows<'a>>,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let features = features.into();
        let Stack { layers: count, in_features, fused } = V::stack(&self.config)?;
        let is_fused = fused.is_some();
        check_nodes(features, in_features, layers, count)?;
        if let (true, FeatureRows::InPlace { .. }) = (is_fused, features) {
            return self.forward_fused::<f32, G>(features, layers, pass, enter);
        }
        let features = &features.gathered()?;
        let device = features.device();
        match (is_fused, features.dtype()) {
            (true, _) if device.is_cuda() => self.forward_on_device(features, layers, pass, enter),
            (true, DType::F32) if device.is_cpu() => self.forward_fused::<f32, G>(features.into(), layers, pass, enter),
            (true, DType::F64) if device.is_cpu() => self.forward_fused::<f64, G>(features.into(), layers, pass, enter),
            (true, other) if device.is_cpu() => {
                bail!("{}: the fused form takes f32 or f64 features, not {other:?}; take the plain form", V::NAME)
            }
            _ => self.forward_plain(features, layers, pass, enter),
        }
    }
}

impl<V: Convolution<C>, C> Layered<V, C> {
    fn at<'a>(&'a self, index: usize, layers: &'a [Arc<Adjacency>], pass: Pass, with_input: bool) -> Evaluation<'a, C> {
        Evaluation {
            config: &self.config,
            index,
            is_inner: index + 1 < self.convs.len(),
            pass,
            edges: edges_of(layers, index),
            with_input,
            workspaces: &self.workspaces,
        }
    }

    fn forward_plain<G>(
        &self,
        features: &Tensor,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        mut enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let mut x = features.clone();
        for (index, conv) in self.convs.iter().enumerate() {
            let _guard = enter(index);
            x = conv.plain(&self.at(index, layers, pass, true), &x)?;
        }
        Ok(x)
    }

    fn forward_fused<T: Lanes, G>(
        &self,
        features: FeatureRows<'_>,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        mut enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let mut chain = Chain::<T>::start(features, &self.workspaces)?;
        for (index, conv) in self.convs.iter().enumerate() {
            let _guard = enter(index);
            let at = self.at(index, layers, pass, chain.gives_gradient());
            chain = chain.push(conv.fused(&at)?, !at.is_inner)?;
        }
        Ok(chain.finish())
    }

    /// The fused form with the kernels of a GPU, in any number type.
    pub(super) fn forward_on_device<G>(
        &self,
        features: &Tensor,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        mut enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let mut chain = cuda::Chain::start(features)?;
        for (index, conv) in self.convs.iter().enumerate() {
            let _guard = enter(index);
            let at = self.at(index, layers, pass, chain.gives_gradient());
            chain = chain.push(conv.on_device(&at)?, !at.is_inner)?;
        }
        Ok(chain.finish())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::cuda::tests::all_gradients;
    use crate::cuda::tests::multigraph::{generator, random_tensor};
    use crate::models::Parameters;

    /// Result and gradients of features and parameters, on the device or with the plain form of the CPU.
    pub(in crate::models) fn run<V: Convolution<C>, C: Clone>(
        config: &C,
        columns: usize,
        graph: &Arc<Adjacency>,
        (dtype, pass, on_device): (DType, Pass, bool),
    ) -> Vec<Tensor> {
        let parameters = Parameters::new(3);
        let model = Layered::<V, C>::new(config, parameters.var_builder(dtype, &Device::Cpu)).unwrap();
        let mut rng = generator(81);
        for parameter in parameters.list().iter().filter(|parameter| parameter.name.ends_with("bias")) {
            // Initial biases may be 0, which would hide them.
            let bias = random_tensor(&mut rng, parameter.var.dims(), DType::F64);
            parameter.var.set(&bias.to_dtype(dtype).unwrap()).unwrap();
        }
        let width = V::stack(config).unwrap().in_features;
        let features = random_tensor(&mut rng, &[graph.source_nodes(), width], DType::F64);
        let features = Var::from_tensor(&features.to_dtype(dtype).unwrap()).unwrap();
        let upstream = random_tensor(&mut rng, &[graph.nodes(), columns], DType::F64);
        let layers = std::slice::from_ref(graph);
        let out = if on_device {
            model.forward_on_device(&features, layers, pass, |_| ()).unwrap()
        } else {
            model.forward(features.as_tensor(), layers, pass).unwrap()
        };
        let vars: Vec<Var> = parameters.list().into_iter().map(|parameter| parameter.var).chain([features]).collect();
        all_gradients(&out, &upstream, &vars)
    }
}
