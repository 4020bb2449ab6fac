//! The graph kernels against the memory of this machine: bytes that each has to move, time, and the ratio to a stream.
//!
//! ```sh
//! cd workloads
//! cargo bench -p gnntop-nn --bench kernels              # all, on a graph of Reddit's nodes, about a minute
//! cargo bench -p gnntop-nn --bench kernels -- spmm 602  # rows whose name has every word
//! ```
//!
//! Bytes of a kernel: every row it reads for an edge, counted each time, the numbers of the edges, and every row it
//! writes. Where rows are read again while they are in a cache, a kernel is faster than the stream.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{Device, Tensor, Var};
use gnntop_data::graph::SparseMatrix;
use gnntop_data::graph::{Adjacency, Columns, Direction, EdgeOp, Endpoint, Extreme, Reduce};
use gnntop_nn::kernels::{
    KernelFamily, Messages, Operand, Rows, Stored, dropout, edge_rows, edge_softmax, extreme_rows, sddmm,
    sparse_linear, sum_rows,
};
use half::bf16;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

/// Reddit's nodes.
const NODES: usize = 232_965;
/// Mean in-degree of the graph here, that of a sampled neighbourhood.
const DEGREE: usize = 10;
const WIDTHS: [usize; 5] = [602, 256, 64, 16, 7];

/// Prints one line per kernel, if its name was asked for.
struct Table {
    wanted: Vec<String>,
    stream: f64,
}

impl Table {
    fn wants(&self, name: &str) -> bool {
        self.wanted.iter().all(|word| name.contains(word))
    }

    /// Median time of `run`, which moves `bytes`.
    fn row(&self, name: &str, bytes: usize, mut run: impl FnMut()) {
        if self.wants(name) {
            let seconds = median(&mut run);
            let rate = bytes as f64 / seconds / 1e9;
            let (mega, milli) = (bytes as f64 / 1e6, seconds * 1e3);
            println!(
                "{name:<44} {mega:9.1} MB {milli:9.3} ms {rate:7.1} GB/s  stream / this {:5.2}",
                self.stream / rate
            );
        }
    }
}

/// Median of at least 5 runs and about half a second, after one run to warm up.
fn median(run: &mut impl FnMut()) -> f64 {
    let mut seconds = Vec::new();
    let begin = Instant::now();
    run();
    while seconds.len() < 5 || (begin.elapsed().as_secs_f64() < 0.5 && seconds.len() < 1001) {
        let start = Instant::now();
        run();
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// A skewed multigraph: in-degrees from 0 to thousands, sources uniform, with one hub of 10^5 edges.
fn graph(rng: &mut StdRng, nodes: usize, hub: usize) -> Arc<Adjacency> {
    let mut row_start = vec![0u32];
    for node in 0..nodes {
        let uniform: f64 = rng.random_range(1e-6..1.0);
        let degree = if node == nodes / 2 { hub } else { ((DEGREE / 2) as f64 / uniform.sqrt()) as usize };
        row_start.push(row_start[node] + degree as u32);
    }
    let source = (0..row_start[nodes]).map(|_| rng.random_range(0..nodes as u32)).collect();
    Arc::new(Adjacency::new(row_start, source).unwrap())
}

fn main() {
    let wanted = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let mut rng = StdRng::seed_from_u64(1);
    let adjacency = graph(&mut rng, NODES, 100_000);
    let values: Vec<f32> = (0..NODES * WIDTHS[0]).into_par_iter().map(|index| (index % 8191) as f32 * 1e-3).collect();
    let mut out = vec![0f32; values.len()];
    out.par_chunks_mut(1 << 16).for_each(|chunk| chunk.fill(1.0));
    let mut table = Table { wanted, stream: 0.0 };
    println!("{} nodes, {} edges, {} threads", NODES, adjacency.edges(), rayon::current_num_threads());
    memory(&mut table, &values, &mut out, adjacency.sources());
    for width in WIDTHS {
        f32_kernels(&table, &adjacency, width, &values, &mut out);
    }
    half_kernels(&table, &adjacency, &values);
    attention(&table, &adjacency);
    tensors(&table, &adjacency, &values);
    cora(&table, &mut rng);
}

/// The memory's speed without any graph.
fn memory(table: &mut Table, values: &[f32], out: &mut [f32], sources: &[u32]) {
    let bytes = size_of_val(values);
    let rate = |bytes: usize, mut run: Box<dyn FnMut() + '_>| bytes as f64 / median(&mut run) / 1e9;
    let sum = |part: &[f32]| pulp::Arch::new().dispatch(|| part.chunks_exact(16).fold([0f32; 16], add_lanes)[0]);
    let read = rate(
        bytes,
        Box::new(|| {
            black_box(values.par_chunks(1 << 16).map(sum).sum::<f32>());
        }),
    );
    let copy = |(to, from): (&mut [f32], &[f32])| to.copy_from_slice(from);
    let copied =
        rate(2 * bytes, Box::new(|| out.par_chunks_mut(1 << 16).zip(values.par_chunks(1 << 16)).for_each(copy)));
    table.stream = read.max(copied);
    println!("read {read:.1} GB/s, copy {copied:.1} GB/s; the stream is the larger, {:.1} GB/s", table.stream);
    for width in WIDTHS {
        let rows = |part: &[u32]| {
            let row = |&source: &u32| sum(&values[source as usize * width..][..width]);
            part.iter().map(row).sum::<f32>()
        };
        table.row(&format!("random rows read, F {width}"), sources.len() * (4 * width + 4), || {
            black_box(sources.par_chunks(1 << 12).map(rows).sum::<f32>());
        });
    }
}

fn add_lanes(mut sum: [f32; 16], part: &[f32]) -> [f32; 16] {
    sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    sum
}

fn f32_kernels(table: &Table, adjacency: &Adjacency, width: usize, values: &[f32], out: &mut [f32]) {
    let (nodes, edges) = (adjacency.nodes(), adjacency.edges());
    let (x, out) = (&values[..nodes * width], &mut out[..nodes * width]);
    let weights = &values[..edges];
    let copies = Messages::copies(width, x, Endpoint::Source);
    let weighted = Messages {
        op: EdgeOp::Mul,
        columns: Columns { heads: 1, width },
        rhs: Rows::new(weights, Endpoint::Edge),
        per_head: true,
        ..copies
    };
    let backward = Messages { lhs: Rows::new(x, Endpoint::Destination), ..weighted };
    let (rows, written) = (edges * width * 4, nodes * width * 4);
    table.row(&format!("spmm copy sum, F {width}"), rows + written + 4 * edges, || {
        sum_rows(adjacency, Direction::Incoming, &copies, false, out);
    });
    table.row(&format!("spmm weighted sum, F {width}"), rows + written + 8 * edges, || {
        sum_rows(adjacency, Direction::Incoming, &weighted, false, out);
    });
    table.row(&format!("spmm weighted sum, backward x, F {width}"), rows + written + 12 * edges, || {
        sum_rows(adjacency, Direction::Outgoing, &backward, false, out);
    });
    let mut holders = vec![0u32; nodes * width];
    table.row(&format!("spmm max, F {width}"), rows + 2 * written + 4 * edges, || {
        extreme_rows(adjacency, &copies, Extreme::Max, out, &mut holders);
    });
    drop(holders);
    let mut dots = vec![0f32; edges];
    let dot = Messages { op: EdgeOp::Dot, rhs: Rows::new(x, Endpoint::Destination), per_head: false, ..weighted };
    table.row(&format!("sddmm dot (backward w), F {width}"), rows + written + 8 * edges, || {
        edge_rows(adjacency, &dot, &mut dots);
    });
}

/// The same rows at half the bytes.
fn half_kernels(table: &Table, adjacency: &Adjacency, values: &[f32]) {
    for width in [256, 64] {
        let x: Vec<bf16> = values[..adjacency.nodes() * width].iter().map(|&value| bf16::narrow(value)).collect();
        let mut out = x.clone();
        let messages = Messages::copies(width, &x, Endpoint::Source);
        let bytes = 2 * width * (adjacency.edges() + adjacency.nodes()) + 4 * adjacency.edges();
        table.row(&format!("spmm copy sum, bf16, F {width}"), bytes, || {
            sum_rows(adjacency, Direction::Incoming, &messages, false, &mut out);
        });
    }
}

/// The operations of a graph attention layer: tensors in and out, including fresh memory.
fn attention(table: &Table, adjacency: &Arc<Adjacency>) {
    let (nodes, edges) = (adjacency.nodes(), adjacency.edges());
    for heads in [1, 8] {
        let logits = Tensor::randn(0f32, 1.0, (edges, heads), &Device::Cpu).unwrap();
        table.row(&format!("edge softmax, H {heads}"), 8 * edges * heads, || {
            black_box(edge_softmax(adjacency, &logits).unwrap());
        });
        let [source, target] = [(); 2].map(|()| Tensor::randn(0f32, 1.0, (nodes, heads), &Device::Cpu).unwrap());
        table.row(&format!("sddmm add, H {heads}"), 4 * heads * (2 * edges + nodes) + 4 * edges, || {
            let ends = (Operand::source(&source), Some(Operand::destination(&target)));
            black_box(sddmm(adjacency, EdgeOp::Add, ends.0, ends.1).unwrap());
        });
        table.row(&format!("attention, H {heads}"), 4 * heads * (2 * edges + nodes) + 4 * edges, || {
            black_box(KernelFamily::Spmm.attention(adjacency, &source, &target, 0.2).unwrap());
        });
        let x = Tensor::randn(0f32, 1.0, (nodes, heads, 8), &Device::Cpu).unwrap();
        table.row(
            &format!("spmm weighted sum, H {heads} x 8"),
            4 * heads * (8 * (edges + nodes) + edges) + 4 * edges,
            || {
                black_box(KernelFamily::Spmm.aggregate(adjacency, Reduce::Sum, &x, Some(&logits)).unwrap());
            },
        );
    }
}

/// Whole operations on tensors, forward and with backward, of both families.
fn tensors(table: &Table, adjacency: &Arc<Adjacency>, values: &[f32]) {
    let (nodes, edges, width) = (adjacency.nodes(), adjacency.edges(), 64);
    let x = Var::from_slice(&values[..nodes * width], (nodes, width), &Device::Cpu).unwrap();
    let row_bytes = 4 * width;
    for family in [KernelFamily::Spmm, KernelFamily::Scatter] {
        // Materialised messages are written once and read once more.
        let edge_rows = if family == KernelFamily::Spmm { edges } else { 3 * edges };
        let forward = row_bytes * (edge_rows + nodes) + 4 * edges;
        table.row(&format!("tensors: {family:?} mean, F {width}").to_lowercase(), forward, || {
            black_box(family.aggregate(adjacency, Reduce::Mean, &x, None).unwrap());
        });
        table.row(&format!("tensors: {family:?} mean with backward, F {width}").to_lowercase(), 2 * forward, || {
            let out = family.aggregate(adjacency, Reduce::Mean, &x, None).unwrap();
            black_box(out.sum_all().unwrap().backward().unwrap());
        });
    }
    table.row("tensors: dropout, F 64", 2 * row_bytes * nodes, || {
        black_box(dropout(&x, 0.5, 1).unwrap());
    });
}

/// Cora's first layer: 49,216 non-zeros of 2,708 x 1,433 times 16 columns.
fn cora(table: &Table, rng: &mut StdRng) {
    let (rows, columns, non_zeros, width) = (2708, 1433, 49_216, 16);
    let row_start = (0..=rows).map(|row| (non_zeros * row / rows) as u32).collect();
    let column = (0..non_zeros).map(|_| rng.random_range(0..columns as u32)).collect();
    let matrix = Arc::new(SparseMatrix::new(row_start, column, vec![0.1; non_zeros], columns).unwrap());
    let weight = Var::randn(0f32, 1.0, (width, columns), &Device::Cpu).unwrap();
    let bytes = 4 * width * (non_zeros + rows) + 8 * non_zeros;
    table.row("cora: sparse_linear", bytes, || {
        black_box(sparse_linear(&matrix, &weight).unwrap());
    });
    table.row("cora: sparse_linear with backward", 2 * bytes, || {
        let out = sparse_linear(&matrix, &weight).unwrap();
        black_box(out.sum_all().unwrap().backward().unwrap());
    });
}
