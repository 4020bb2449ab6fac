//! The graph of an image: each node joined to those whose features point most nearly the same way.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor, bail};

use crate::kernels::{Matrix, MatrixMut, Workspaces, host_slice, multiply};
use crate::models::vig::Vectorised;
use gnntop_data::tasks::run_tasks;

/// Norms below this count as this, as in PyTorch's `normalize`.
const MIN_NORM: f64 = 1e-12;

/// For every node the nodes it is joined to, all of one image. Clones share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// Nodes of an image.
    pub(super) nodes: usize,
    /// Neighbours of a node.
    pub(super) count: usize,
    /// `[images * nodes, count]`, numbered in the image, nearest first.
    pub(super) indices: Arc<[u32]>,
    /// The same on a GPU, where `indices` has none.
    pub(super) on_device: OnDevice,
}

/// Neighbours that a GPU has found.
#[derive(Debug, Clone, Default)]
pub(super) struct OnDevice(pub(super) Option<Tensor>);

/// The numbers themselves are compared.
impl PartialEq for OnDevice {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for OnDevice {}

impl Neighbours {
    /// The neighbours of all nodes, `[images * nodes, count]`, each numbered within its image. None if a GPU has them.
    #[must_use]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
}

/// The `count` nearest nodes of every node of `x` `[images * nodes, channels]` among those of its image, itself
/// included, by the distance of L2-normalised features. With a dilation d, every d-th of the `count d` nearest. Equal
/// distances are ordered by number.
///
/// # Errors
/// An image has fewer than `count * dilation` nodes, a size is 0, or `x` is neither f32 nor f64.
pub fn nearest(x: &Tensor, nodes: usize, count: usize, dilation: usize, workspaces: &Workspaces) -> Result<Neighbours> {
    let (rows, channels) = x.dims2()?;
    if nodes == 0 || !rows.is_multiple_of(nodes) || channels == 0 {
        bail!("nearest: {:?} is not whole images of {nodes} nodes", x.dims());
    }
    if count == 0 || dilation == 0 || count.saturating_mul(dilation) > nodes {
        bail!("nearest: {count} neighbours at dilation {dilation} of {nodes} nodes");
    }
    if x.device().is_cuda() {
        return Neighbours::found_on_device(&x.detach().contiguous()?, nodes, count, dilation);
    }
    let search = Search { nodes, channels, count, dilation, workspaces };
    let x = x.detach().contiguous()?;
    let indices = match x.dtype() {
        DType::F32 => search.all::<f32>(&x)?,
        DType::F64 => search.all::<f64>(&x)?,
        other => bail!("nearest: only f32 and f64 are supported, not {other:?}"),
    };
    Ok(Neighbours { nodes, count, indices: indices.into(), on_device: OnDevice::default() })
}

impl Neighbours {
    pub(super) fn found_on_device(x: &Tensor, nodes: usize, count: usize, dilation: usize) -> Result<Self> {
        let found = crate::cuda::nearest(x, nodes, count, dilation)?;
        Ok(Self { nodes, count, indices: Arc::default(), on_device: OnDevice(Some(found)) })
    }
}

struct Search<'a> {
    nodes: usize,
    channels: usize,
    count: usize,
    dilation: usize,
    workspaces: &'a Workspaces,
}

impl Search<'_> {
    fn all<T: Vectorised>(&self, x: &Tensor) -> Result<Vec<u32>> {
        let (storage, layout) = x.storage_and_layout();
        let rows: &[T] = host_slice(&storage, layout)?;
        let mut indices = vec![0; rows.len() / self.channels * self.count];
        let images = rows.chunks_exact(self.nodes * self.channels);
        run_tasks(images.zip(indices.chunks_exact_mut(self.nodes * self.count)), |(rows, out)| self.image(rows, out));
        Ok(indices)
    }

    /// One image: the larger the product of two normalised nodes, the smaller their distance.
    fn image<T: Vectorised>(&self, rows: &[T], out: &mut [u32]) {
        let (nodes, channels) = (self.nodes, self.channels);
        let mut normal = T::workspace(self.workspaces).take(rows.len());
        for (out, row) in normal.chunks_exact_mut(channels).zip(rows.chunks_exact(channels)) {
            let norm = row.iter().map(|value| value.to_f64().powi(2)).sum::<f64>().sqrt().max(MIN_NORM);
            out.iter_mut().zip(row).for_each(|(out, value)| *out = T::from_f64(value.to_f64() / norm));
        }
        let mut products = T::workspace(self.workspaces).take(nodes * nodes);
        let normal = Matrix::new(&normal, nodes, channels, channels);
        multiply(MatrixMut::new(&mut products, nodes, nodes, nodes), false, normal, normal.transposed());
        let (wanted, mut order) = (self.count * self.dilation, Vec::with_capacity(nodes));
        for (out, products) in out.chunks_exact_mut(self.count).zip(products.chunks_exact(nodes)) {
            order.clear();
            order.extend((0u32..).zip(products.iter().map(|product| product.to_f64())));
            let by_distance = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
            order.select_nth_unstable_by(wanted - 1, by_distance);
            order[..wanted].sort_unstable_by(by_distance);
            let chosen = order[..wanted].iter().step_by(self.dilation);
            out.iter_mut().zip(chosen).for_each(|(out, &(node, _))| *out = node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    /// The definition, with whole sorts.
    fn naive(rows: &[Vec<f64>], count: usize, dilation: usize) -> Vec<u32> {
        let norm = |row: &[f64]| row.iter().map(|value| value * value).sum::<f64>().sqrt();
        let distance =
            |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(x, y)| (x / norm(a) - y / norm(b)).powi(2)).sum() };
        let mut out = Vec::new();
        for row in rows {
            let mut order: Vec<u32> = (0..rows.len() as u32).collect();
            let to = |node: u32| distance(row, &rows[node as usize]);
            order.sort_by(|&a, &b| to(a).total_cmp(&to(b)));
            out.extend(order.into_iter().step_by(dilation).take(count));
        }
        out
    }

    #[test]
    fn neighbours_are_the_nearest_of_the_same_image() {
        let (images, nodes, channels) = (3, 12, 5);
        let value = |index: usize| f64::from((index * 7919 % 1009) as u32) / 500.0 - 1.0;
        let values: Vec<f64> = (0..images * nodes * channels).map(value).collect();
        let x = Tensor::from_slice(&values, (images * nodes, channels), &Device::Cpu).unwrap();
        for (count, dilation) in [(1, 1), (4, 1), (4, 3), (12, 1)] {
            let found = nearest(&x, nodes, count, dilation, &Workspaces::default()).unwrap();
            for image in 0..images {
                let rows: Vec<Vec<f64>> =
                    (0..nodes).map(|node| values[(image * nodes + node) * channels..][..channels].to_vec()).collect();
                let span = image * nodes * count..(image + 1) * nodes * count;
                assert_eq!(found.indices()[span], naive(&rows, count, dilation), "{count} {dilation}");
            }
        }
    }

    #[test]
    fn bad_sizes_are_refused_and_odd_values_give_valid_numbers() {
        let workspaces = Workspaces::default();
        let mut values = vec![0.0f32; 8];
        (values[2], values[5]) = (f32::NAN, f32::INFINITY);
        let x = Tensor::from_vec(values, (4, 2), &Device::Cpu).unwrap();
        let found = nearest(&x, 4, 3, 1, &workspaces).unwrap();
        assert!(found.indices().iter().all(|&node| node < 4));
        for (nodes, count, dilation) in [(0, 1, 1), (3, 1, 1), (4, 0, 1), (4, 1, 0), (4, 3, 2), (4, 5, 1)] {
            assert!(nearest(&x, nodes, count, dilation, &workspaces).is_err());
        }
    }
}
