//! A layer of the fused form on the CPU, see [`chain`](crate::models::chain): the features of the first layer and the
//! normalised adjacency are both sparse constants, so a layer is one or two sparse products and what finishes them.

use std::sync::Arc;

use candle_core::{Result, Tensor, bail};

use super::conv::GcnConv;
use super::finish::{Dropout, Finish, Fused};
use crate::kernels::{
    Buffer, Matrix, MatrixMut, Selected, Values, Workspaces, host_slice, multiply, times, times_into, transposed,
};
use crate::models::chain::{ChainLayer, LayerGradients};
use gnntop_data::graph::{DropMask, SparseMatrix};

/// One evaluation of a layer.
pub(super) struct Layer {
    features: Option<Features>,
    /// The normalised adjacency, `[nodes, nodes]`.
    neighbours: Arc<SparseMatrix>,
    finish: Fused,
    /// `[output, input]`
    weight: [Tensor; 1],
    bias: Tensor,
    input: usize,
    output: usize,
    workspaces: Workspaces,
}

/// The input of the first layer; the others have the result of the layer below.
struct Features {
    matrix: Arc<SparseMatrix>,
    mask: Option<DropMask>,
}

impl Layer {
    /// `conv` over `neighbours`, with the features and their dropout where it is the first layer.
    pub(super) fn new(
        conv: &GcnConv,
        features: Option<(&Arc<SparseMatrix>, Option<Dropout>)>,
        neighbours: Arc<SparseMatrix>,
        finish: Finish,
        workspaces: &Workspaces,
    ) -> Result<Self> {
        let (output, input) = conv.weight.dims2()?;
        let features = features.map(|(matrix, drop)| {
            let mask = drop.map(|drop| DropMask::new(drop.p, drop.seed)).transpose()?;
            Ok::<_, candle_core::Error>(Features { matrix: Arc::clone(matrix), mask })
        });
        Ok(Self {
            features: features.transpose()?,
            neighbours,
            finish: Fused::new(finish)?,
            weight: [conv.weight.contiguous()?],
            bias: conv.bias.clone(),
            input,
            output,
            workspaces: workspaces.clone(),
        })
    }

    fn take(&self, width: usize) -> Buffer<f32> {
        self.workspaces.single.take(self.neighbours.rows() * width)
    }

    fn with_weight<R>(&self, work: impl FnOnce(&[f32]) -> R) -> Result<R> {
        let (storage, layout) = self.weight[0].storage_and_layout();
        Ok(work(host_slice(&storage, layout)?))
    }

    /// The product of the input with the transpose of the weight, `[nodes, output]`.
    fn projected(&self, x: &[f32], weight: &[f32]) -> Buffer<f32> {
        let (nodes, input, output) = (self.neighbours.rows(), self.input, self.output);
        let mut out = self.take(output);
        match &self.features {
            Some(Features { matrix, mask }) => {
                times_into(matrix.by_row(), *mask, &transposed(weight, output, input), output, &mut out);
            }
            None => {
                let weight = Matrix::new(weight, output, input, input).transposed();
                let target = MatrixMut::new(&mut out, nodes, output, output);
                multiply(target, false, Matrix::new(x, nodes, input, input), weight);
            }
        }
        out
    }

    /// The gradient of the weight from that of the product.
    fn weight_gradient(&self, x: &[f32], of_projected: &[f32]) -> Vec<f32> {
        let (nodes, input, output) = (self.neighbours.rows(), self.input, self.output);
        if let Some(Features { matrix, mask }) = &self.features {
            return transposed(&times(matrix.by_column(), *mask, of_projected, output), input, output);
        }
        let mut out = vec![0.0; output * input];
        let left = Matrix::new(of_projected, nodes, output, output).transposed();
        multiply(MatrixMut::new(&mut out, output, input, input), false, left, Matrix::new(x, nodes, input, input));
        out
    }

    /// The gradient of the input from that of the product.
    fn input_gradient(&self, of_projected: &[f32], weight: &[f32]) -> Buffer<f32> {
        let (nodes, input, output) = (self.neighbours.rows(), self.input, self.output);
        let mut out = self.take(input);
        let target = MatrixMut::new(&mut out, nodes, input, input);
        multiply(
            target,
            false,
            Matrix::new(of_projected, nodes, output, output),
            Matrix::new(weight, output, input, input),
        );
        out
    }
}

impl ChainLayer<f32> for Layer {
    fn weights(&self) -> &[Tensor] {
        &self.weight
    }

    fn bias(&self) -> &Tensor {
        &self.bias
    }

    fn shape(&self) -> (usize, usize) {
        (self.neighbours.rows(), self.output)
    }

    fn input(&self) -> usize {
        self.input
    }

    fn forward(&self, x: Selected<'_, f32>, bias: &[f32]) -> Result<Buffer<f32>> {
        let x = exact(x)?;
        let projected = self.with_weight(|weight| self.projected(x, weight))?;
        let mut out = self.take(self.output);
        times_into(self.neighbours.by_row(), None, &projected, self.output, &mut out);
        self.finish.finish(&mut out, bias);
        Ok(out)
    }

    fn backward(
        &self,
        x: Selected<'_, f32>,
        result: Option<&[f32]>,
        mut gradient: Buffer<f32>,
        with_input: bool,
    ) -> Result<LayerGradients<f32>> {
        let bias = self.finish.gradient(result.unwrap_or_default(), &mut gradient, self.output);
        let mut of_projected = self.take(self.output);
        times_into(self.neighbours.by_column(), None, &gradient, self.output, &mut of_projected);
        let weights = vec![self.weight_gradient(exact(x)?, &of_projected)];
        let input = with_input.then(|| self.with_weight(|weight| self.input_gradient(&of_projected, weight)));
        Ok(LayerGradients { input: input.transpose()?, weights, bias })
    }
}

/// The numbers of a layer's input, which is the result of another.
fn exact(x: Selected<'_, f32>) -> Result<&[f32]> {
    match x.values() {
        Values::Exact(values) => Ok(values),
        Values::Rounded(_) => bail!("the layers of a GCN take numbers of f32"),
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Tensor};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::kernels::KernelFamily;
    use crate::models::Parameters;
    use crate::models::gcn::{Computation, Gcn, GcnConfig, LoopedGraph, NodeFeatures, Normalised};
    use gnntop_data::graph::Adjacency;

    const NODES: usize = 40;

    /// A directed graph in which some edges occur twice.
    fn graph(rng: &mut StdRng) -> Normalised {
        let degrees: Vec<u32> = (0..NODES).map(|_| rng.random_range(0..6)).collect();
        let ends = degrees.iter().scan(0, |sum, degree| {
            *sum += degree;
            Some(*sum)
        });
        let start: Vec<u32> = std::iter::once(0).chain(ends).collect();
        let sources = (0..start[NODES]).map(|_| rng.random_range(0..NODES as u32)).collect();
        let adjacency = Adjacency::new(start, sources).unwrap();
        LoopedGraph::new(&adjacency).unwrap().normalised(None, DType::F32, &Device::Cpu).unwrap()
    }

    /// Scores, and the gradient of each parameter of their weighted sum.
    fn results(config: &GcnConfig, scores: impl Fn(&Gcn) -> Result<Tensor>) -> Vec<Vec<f32>> {
        let parameters = Parameters::new(5);
        let model = Gcn::new(config, parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
        for parameter in parameters.list().iter().filter(|parameter| parameter.name.ends_with("bias")) {
            let values: Vec<f32> = (0..parameter.var.elem_count()).map(|i| 0.1 - 0.07 * i as f32).collect();
            parameter.var.set(&Tensor::new(values, &Device::Cpu).unwrap()).unwrap();
        }
        let scores = scores(&model).unwrap();
        let upstream: Vec<f32> = (0..scores.elem_count()).map(|i| ((i * 7) % 11) as f32 - 5.0).collect();
        let upstream = Tensor::from_vec(upstream, scores.shape(), &Device::Cpu).unwrap();
        let gradients = (&scores * upstream).unwrap().sum_all().unwrap().backward().unwrap();
        let flat = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let of_parameters = parameters.list();
        let of_parameters = of_parameters.iter().map(|parameter| flat(gradients.get(&parameter.var).unwrap()));
        std::iter::once(flat(&scores)).chain(of_parameters).collect()
    }

    #[test]
    fn the_fused_form_gives_what_the_operations_one_by_one_give() {
        let mut rng = StdRng::seed_from_u64(4);
        let graph = graph(&mut rng);
        let dense: Vec<f32> = (0..NODES * 30).map(|_| if rng.random_bool(0.2) { 1.5 } else { 0.0 }).collect();
        let dense = Tensor::from_vec(dense, (NODES, 30), &Device::Cpu).unwrap();
        let x = NodeFeatures::Sparse(Arc::new(SparseMatrix::from_dense(&dense).unwrap()));
        for (layers, dropout) in [(1, 0.0), (2, 0.0), (2, 0.5), (3, 0.3)] {
            let config = GcnConfig { hidden: 9, layers, dropout, ..GcnConfig::study(30, 5) };
            let pass = Computation { dropout_seed: Some(8), ..Computation::evaluation(KernelFamily::Spmm) };
            let fused = results(&config, |model| model.forward(&x, &graph, pass));
            let plain = results(&config, |model| model.forward_plain(&x, &graph, pass, |_| ()));
            assert_eq!(fused.len(), 1 + 2 * layers);
            for (fused, plain) in fused.iter().zip(&plain) {
                let scale = plain.iter().fold(1.0f32, |scale, value| scale.max(value.abs()));
                assert!(fused.iter().zip(plain).all(|(a, b)| (a - b).abs() < 1e-5 * scale), "{layers} {dropout}");
            }
        }
    }
}
