//! The kernels of a GPU against its memory: bytes that each has to move, time, and its share of a copy's rate.
//!
//! ```sh
//! cd workloads
//! cargo bench --features cuda --bench device               # on cuda:0, half a minute
//! cargo bench --features cuda --bench device -- cuda:1     # on another one
//! ```
//!
//! Without a GPU, says so and does nothing. `gnntop_nn::cuda::rates` defines what counts as moved.
#![allow(clippy::print_stdout, missing_docs)]

use std::sync::Arc;

use gnntop_data::graph::Adjacency;
use gnntop_nn::cuda::rates::{Rate, measure};
use gnntop_workloads::launch::DeviceChoice;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Reddit's nodes, and the mean in-degree of a sampled neighbourhood.
const NODES: usize = 232_965;
const DEGREE: f64 = 10.0;
const COPY_BYTES: usize = 1 << 30;
const REPEATS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let device = match name.unwrap_or_else(|| "cuda:0".to_owned()).parse::<DeviceChoice>()?.open() {
        Ok(device) => device,
        Err(reason) => {
            println!("no GPU: {reason}");
            return Ok(());
        }
    };
    let graph = skewed(&mut StdRng::seed_from_u64(1))?;
    println!("{} nodes, {} edges", graph.nodes(), graph.edges());
    println!("| kernel | MB | us | GB/s | of the copy |\n|---|---|---|---|---|");
    let mut copy = None;
    measure(&device, &graph, COPY_BYTES, REPEATS, &mut |rate| {
        let copy = *copy.get_or_insert_with(|| rate.bytes_per_second());
        print(&rate, copy);
    })?;
    Ok(())
}

fn print(rate: &Rate, copy: f64) {
    let (mega, micro, giga) = (rate.bytes as f64 / 1e6, rate.seconds * 1e6, rate.bytes_per_second() / 1e9);
    let share = rate.bytes_per_second() / copy * 100.0;
    println!("| {} | {mega:.1} | {micro:.1} | {giga:.0} | {share:.0} % |", rate.name);
}

/// In-degrees from a few to thousands, sources uniform, with one hub of 10^5 edges.
fn skewed(rng: &mut StdRng) -> candle_core::Result<Arc<Adjacency>> {
    let mut row_start = vec![0u32];
    for node in 0..NODES {
        let uniform: f64 = rng.random_range(1e-6..1.0);
        let degree = if node == NODES / 2 { 100_000 } else { (DEGREE / 2.0 / uniform.sqrt()) as u32 };
        row_start.push(row_start[node] + degree);
    }
    let source = (0..row_start[NODES]).map(|_| rng.random_range(0..NODES as u32)).collect();
    Adjacency::new(row_start, source).map(Arc::new)
}
