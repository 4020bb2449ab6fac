//! Bytes that the kernels move per second, compared with a copy on the same device.
//!
//! Bytes of a kernel: every row that it reads for an edge, counted each time, the numbers of the edges, and every row
//! that it reads or writes otherwise. If rows are read again while they are in a cache, a kernel may be faster than the
//! copy.

use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Device, Result, Tensor};

use super::kernel::wide;
use super::messages::{Messages, Operand};
use super::{
    Attending, Edges, Finished, Logits, Rates as AdamRates, Slot, View, add_scaled, aggregate, attend, behind_relu,
    column_sums, dropout, gather_rows, gelu, gradient_of_mean_rows, mean_beside, mean_finish, neighbour_sum,
    softmax_rows, sum_rows, update,
};
use gnntop_data::graph::{Adjacency, Columns, Direction, DropMask, Endpoint};

/// The bytes that one kernel, or a few related ones, moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// Its name, with number type and width.
    pub name: String,
    /// Bytes of one run.
    pub bytes: u64,
    /// Seconds of one run.
    pub seconds: f64,
}

impl Rate {
    /// Bytes a second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

/// Measures a copy of `copy_bytes` first, then every kernel on `graph`, whose sources are its targets, `repeats` runs of
/// each after a first one. `each` is called with every result.
///
/// # Errors
/// The device has too little memory, or kernels do not run on it.
pub fn measure(
    device: &Device,
    graph: &Arc<Adjacency>,
    copy_bytes: usize,
    repeats: usize,
    each: &mut dyn FnMut(Rate),
) -> Result<()> {
    let mut meter = Meter { device: device.clone(), repeats: repeats.max(1), each };
    let from = Tensor::zeros(copy_bytes / 4, DType::F32, device)?;
    meter.run("copy", 2 * (copy_bytes / 4 * 4), || from.copy().map(drop))?;
    drop(from);
    let edges = Edges::new(graph, device)?;
    for dtype in [DType::F32, DType::BF16] {
        let bench = Bench { graph, edges: &edges, dtype };
        for width in [602, 256, 64] {
            bench.means(&mut meter, width)?;
        }
        bench.gradients_of_rows(&mut meter, 256)?;
        for (heads, head) in [(1, 16), (8, 8), (1, 64)] {
            bench.attention(&mut meter, Columns { heads, width: head })?;
        }
        bench.aggregates(&mut meter, 64)?;
        bench.elements(&mut meter, 256)?;
    }
    adam(&mut meter, copy_bytes / 64)
}

/// Times runs by the host, with the device idle before the first and after the last.
struct Meter<'a> {
    device: Device,
    repeats: usize,
    each: &'a mut dyn FnMut(Rate),
}

impl Meter<'_> {
    fn run(&mut self, name: impl Into<String>, bytes: usize, mut run: impl FnMut() -> Result<()>) -> Result<()> {
        run()?;
        self.device.synchronize()?;
        let begin = Instant::now();
        for _ in 0..self.repeats {
            run()?;
        }
        self.device.synchronize()?;
        let seconds = begin.elapsed().as_secs_f64() / self.repeats as f64;
        (self.each)(Rate { name: name.into(), bytes: bytes as u64, seconds });
        Ok(())
    }
}

/// Kernels of one number type on one graph.
struct Bench<'a> {
    graph: &'a Arc<Adjacency>,
    edges: &'a Edges,
    dtype: DType,
}

impl Bench<'_> {
    fn name(&self, what: &str, columns: impl std::fmt::Display) -> String {
        format!("{what} {columns} {}", self.dtype.as_str())
    }

    fn nodes(&self) -> usize {
        self.graph.nodes()
    }

    /// Bytes of this many rows, as stored.
    fn rows(&self, rows: usize, width: usize) -> usize {
        rows * width * self.dtype.size_in_bytes()
    }

    /// The same in the type of the sums.
    fn wide_rows(&self, rows: usize, width: usize) -> usize {
        rows * width * wide(self.dtype).size_in_bytes()
    }

    /// Bytes of one row and one number of a node for each edge.
    fn along(&self, width: usize) -> usize {
        self.rows(self.graph.edges(), width) + 4 * self.graph.edges()
    }

    /// Values that are neither 0 nor all the same.
    fn tensor(&self, rows: usize, width: usize) -> Result<Tensor> {
        let row = Tensor::arange(0u32, width as u32, &self.edges.device)?.to_dtype(DType::F32)?;
        let row = (row.affine(1.0 / width as f64, -0.4))?.to_dtype(self.dtype)?;
        row.reshape((1, width))?.broadcast_as((rows, width))?.contiguous()
    }

    fn vector(&self, width: usize) -> Result<Tensor> {
        self.tensor(1, width)?.flatten_all()
    }

    /// What GraphSAGE, GCN and the loader do forward.
    fn means(&self, meter: &mut Meter<'_>, width: usize) -> Result<()> {
        let nodes = self.nodes();
        let (x, bias) = (self.tensor(nodes, width)?, self.vector(width)?);
        let view = View::new(&x)?;
        let order: Vec<u32> = (0..nodes as u64).map(|node| (node * 7919 % nodes as u64) as u32).collect();
        let order = Tensor::from_vec(order, nodes, &self.edges.device)?;
        let bytes = 2 * self.rows(nodes, width) + 4 * nodes;
        meter.run(self.name("gather rows", width), bytes, || gather_rows(&x, &order).map(drop))?;
        let messages = Messages::copies(width, Operand { rows: view, at: Endpoint::Source });
        meter.run(self.name("SpMM, sum", width), self.along(width) + self.rows(nodes, width), || {
            sum_rows(self.edges, Direction::Incoming, &messages, false).map(drop)
        })?;
        let bytes = self.along(width) + 3 * self.rows(nodes, width);
        meter.run(self.name("mean beside own", width), bytes, || mean_beside(self.edges, view, width).map(drop))?;
        let finished = Finished { relu: true, mask: Some(DropMask::new(0.5, 1)?) };
        let bytes = self.along(width) + 2 * self.rows(nodes, width);
        meter.run(self.name("mean, finished", width), bytes, || {
            mean_finish(self.edges, view, view, View::new(&bias)?, finished).map(drop)
        })
    }

    /// What GraphSAGE does backward.
    fn gradients_of_rows(&self, meter: &mut Meter<'_>, width: usize) -> Result<()> {
        let nodes = self.nodes();
        let both = self.tensor(nodes, 2 * width)?;
        let bytes = self.along(width) + 4 * self.graph.edges() + 2 * self.rows(nodes, width);
        meter.run(self.name("gradient of mean beside own", width), bytes, || {
            gradient_of_mean_rows(self.edges, View::new(&both)?, width, true).map(drop)
        })?;
        let x = self.tensor(nodes, width)?;
        let view = View::new(&x)?;
        meter.run(self.name("gradient behind ReLU, and its sums", width), 3 * self.rows(nodes, width), || {
            behind_relu(&self.edges.device, view, view, width, 2.0).map(drop)
        })
    }

    /// What GAT does, forward with the scores and all of the backward pass.
    fn attention(&self, meter: &mut Meter<'_>, columns: Columns) -> Result<()> {
        let (nodes, edges, total, heads) = (self.nodes(), self.graph.edges(), columns.total(), columns.heads);
        let (x, vector) = (self.tensor(nodes, total)?, self.vector(total)?);
        let (rows, vector) = (View::new(&x)?, View::new(&vector)?);
        let layer = Attending {
            columns,
            negative_slope: 0.2,
            bias: vector,
            source_vector: vector,
            target_vector: vector,
            attention: None,
            output: None,
            elu: true,
        };
        let name = format!("{heads} x {}", columns.width);
        let known = self.wide_rows(nodes, 2 * total + 3 * heads);
        let forward = self.rows(nodes, 2 * total + 2 * heads) + self.along(total) + self.rows(edges, heads) + known;
        meter.run(self.name("attention", &name), forward, || attend(self.edges, rows, &layer).map(drop))?;
        let (_, attended) = attend(self.edges, rows, &layer)?;
        let targets = self.rows(nodes, 3 * total) + known;
        let along = self.along(total) + 4 * edges + self.rows(edges, heads) + self.wide_rows(edges, 4 * heads);
        let sources = self.rows(nodes, 4 * total) + self.wide_rows(nodes, 4 * total + 5 * heads);
        meter.run(self.name("attention's gradients", &name), targets + along + sources, || {
            attended.back(self.edges, rows, &layer, rows).map(drop)
        })?;
        let scores = self.tensor(nodes, heads)?;
        let logits = Logits::OfScores { source: View::new(&scores)?, target: View::new(&scores)?, negative_slope: 0.2 };
        meter.run(self.name("edge softmax", &name), self.along(heads) + self.rows(edges, heads), || {
            softmax_rows(self.edges, heads, logits).map(drop)
        })
    }

    /// What PNA does.
    fn aggregates(&self, meter: &mut Meter<'_>, width: usize) -> Result<()> {
        let nodes = self.nodes();
        let (x, wide_rows) = (self.tensor(nodes, width)?, self.tensor(nodes, 4 * width)?);
        let (own, gradient) = (View::new(&x)?, View::new(&wide_rows)?);
        let kept = self.wide_rows(nodes, width) + 4 * nodes * 2 * width;
        let bytes = self.along(width) + self.rows(nodes, 5 * width) + kept;
        meter.run(self.name("PNA aggregates", width), bytes, || {
            aggregate::aggregate(self.edges, width, own, own).map(drop)
        })?;
        let (out, kept_rows) = aggregate::aggregate(self.edges, width, own, own)?;
        let out = out.into_tensor((nodes, 4 * width));
        let back = aggregate::Returned { messages: own, aggregates: View::new(&out)?, gradient };
        let of_edge = self.rows(1, 5 * width) + self.wide_rows(1, width) + 4 * 2 * width + 12;
        let bytes = self.graph.edges() * of_edge + self.rows(nodes, 6 * width);
        meter.run(self.name("PNA aggregates' gradients", width), bytes, || {
            aggregate::gradients(self.edges, width, &kept_rows, &back).map(drop)
        })?;
        let (parts, bias) = (self.tensor(nodes, 3 * width)?, self.vector(width)?);
        meter.run(self.name("PNA scalers", width), self.rows(nodes, 5 * width), || {
            add_scaled(self.graph, 1.3, &x, &parts, &bias).map(drop)
        })
    }

    /// One element at a time.
    fn elements(&self, meter: &mut Meter<'_>, width: usize) -> Result<()> {
        let (nodes, device) = (self.nodes(), &self.edges.device);
        let (x, bias) = (self.tensor(nodes, width)?, self.vector(width)?);
        let view = View::new(&x)?;
        let mask = DropMask::new(0.5, 1)?;
        let finished = Finished { relu: true, mask: Some(mask) };
        let bytes = 2 * self.rows(nodes, width);
        meter.run(self.name("bias, ReLU, dropout", width), bytes, || {
            finished.apply(device, view, View::new(&bias)?, None).map(drop)
        })?;
        meter.run(self.name("dropout", width), bytes, || dropout(device, view, mask).map(drop))?;
        meter.run(self.name("GELU", width), bytes, || gelu(device, view, None).map(drop))?;
        meter.run(self.name("column sums", width), bytes / 2, || column_sums(device, view, width).map(drop))?;
        // Whole rows of pixels; an incomplete one is left out.
        let rows = nodes / 8 * 8;
        let pixels = View::new(&x)?.part(0, rows * width)?;
        meter.run(self.name("neighbours on a grid", width), 2 * self.rows(rows, width), || {
            neighbour_sum(device, pixels, (rows / 8, 8), width).map(drop)
        })
    }
}

/// One step over all parameters, with seven numbers per element to read or write.
fn adam(meter: &mut Meter<'_>, count: usize) -> Result<()> {
    let new = || Tensor::zeros(count, DType::F32, &meter.device);
    let (value, gradient, moments) = (new()?, new()?, [new()?, new()?]);
    let slots = [Slot { value: &value, gradient: &gradient, moments: &moments, weight_decay: 0.1 }];
    let rates = AdamRates {
        beta1: 0.9,
        beta2: 0.999,
        one_minus_beta1: 0.1,
        one_minus_beta2: 0.001,
        epsilon: 1e-8,
        gradient_scale: 1.0,
        step_size: 1e-3,
        root_correction: 1.0,
    };
    meter.run(format!("Adam {count}"), 7 * 4 * count, || update(&slots, rates))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::emulation::is_possible;
    use crate::cuda::tests::multigraph::{generator, random_graph};

    #[test]
    fn every_kernel_runs_and_has_bytes() {
        if !is_possible() {
            return;
        }
        let graph = random_graph(&mut generator(91), 16, 16, 0);
        let mut rates = Vec::new();
        measure(&Device::Cpu, &graph, 4096, 1, &mut |rate| rates.push(rate)).unwrap();
        assert_eq!((rates[0].name.as_str(), rates[0].bytes), ("copy", 8192));
        assert!(rates.iter().all(|rate| rate.bytes > 0 && rate.bytes_per_second() > 0.0));
        let mut names: Vec<&str> = rates.iter().map(|rate| rate.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rates.len());
        let sum = rates.iter().find(|rate| rate.name == "SpMM, sum 64 f32").unwrap();
        assert_eq!(sum.bytes as usize, graph.edges() * (64 * 4 + 4) + 16 * 64 * 4);
    }
}
