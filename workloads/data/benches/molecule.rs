//! The cost of the data side: reading SMILES, making molecules up, assembling batches. Times are per molecule or per
//! batch on one core.

#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gnntop_data::graph::{Batch, Graph};
use gnntop_data::molecule::{from_smiles, generate, generated_molecule};

fn smiles(criterion: &mut Criterion) {
    let texts: Vec<String> = (0..1000).map(|index| generated_molecule(1, index).smiles).collect();
    let mut group = criterion.benchmark_group("molecules");
    group.throughput(Throughput::Elements(texts.len() as u64)).sample_size(20);
    group.bench_function("read 1000 SMILES", |bencher| {
        bencher.iter(|| texts.iter().filter(|text| from_smiles(black_box(text), 0.0).is_ok()).count());
    });
    group.bench_function("generate 1000", |bencher| bencher.iter(|| generate(black_box(1), texts.len())));
    group.finish();
}

fn batches(criterion: &mut Criterion) {
    let set = generate(1, 4096);
    let graphs: Vec<&Graph> = set.graphs.iter().collect();
    let mut batch = Batch::new();
    let mut group = criterion.benchmark_group("batches");
    group.sample_size(20);
    for size in [512, 4096] {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(format!("assemble {size} graphs"), |bencher| {
            bencher.iter(|| batch.assemble(black_box(&graphs[..size])).unwrap());
        });
    }
    group.finish();
}

criterion_group!(molecule, smiles, batches);
criterion_main!(molecule);
