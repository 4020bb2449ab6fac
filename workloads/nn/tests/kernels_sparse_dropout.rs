//! Dropout and the sparse product: their definition, their statistics, and bad input.

use std::sync::Arc;

use crate::multigraph::{distance, generator, numbers, random_tensor, with_gradients};
use candle_core::{DType, Device, Tensor};
use gnntop_data::graph::SparseMatrix;
use gnntop_nn::kernels::{dropout, sparse_linear, sparse_linear_dropout};
use rand::RngExt;

/// A dense matrix with a share of non-zeros.
fn sparse(rows: usize, columns: usize, share: f64, seed: u64) -> Tensor {
    let mut rng = generator(seed);
    let mut value = || if rng.random_bool(share) { rng.random_range(0.1f32..1.0) } else { 0.0 };
    let values: Vec<f32> = (0..rows * columns).map(|_| value()).collect();
    Tensor::from_vec(values, (rows, columns), &Device::Cpu).unwrap()
}

#[test]
fn the_sparse_product_equals_the_dense_one() {
    let mut rng = generator(1);
    for (rows, columns, out, share) in
        [(9, 30, 16, 0.2), (200, 333, 7, 0.02), (50, 40, 1, 0.0), (2708, 1433, 16, 0.013)]
    {
        let dense = sparse(rows, columns, share, rows as u64);
        let matrix = Arc::new(SparseMatrix::from_dense(&dense).unwrap());
        assert_eq!((matrix.rows(), matrix.columns()), (rows, columns));
        let weight = [random_tensor(&mut rng, &[out, columns], DType::F32)];
        let upstream = random_tensor(&mut rng, &[rows, out], DType::F32);
        let ours = with_gradients(&weight, Some(&upstream), |weight| sparse_linear(&matrix, &weight[0]));
        let expected = with_gradients(&weight, Some(&upstream), |weight| dense.matmul(&weight[0].t()?));
        assert!(distance(&ours.0, &expected.0) < 1e-5);
        assert!(distance(&ours.1[0], &expected.1[0]) < 1e-4);
    }
}

#[test]
fn the_sparse_product_drops_the_same_values_in_both_directions() {
    let mut rng = generator(2);
    let dense = sparse(120, 90, 0.3, 5);
    let matrix = Arc::new(SparseMatrix::from_dense(&dense).unwrap());
    // The identity as weight gives back the matrix as it was after dropout.
    let identity = Tensor::eye(90, DType::F32, &Device::Cpu).unwrap();
    let dropped = sparse_linear_dropout(&matrix, &identity, 0.5, 9).unwrap();
    let kept = numbers(&dropped).iter().filter(|value| **value != 0.0).count() as f64 / matrix.non_zeros() as f64;
    assert!((kept - 0.5).abs() < 0.05, "{kept}");
    let (doubled, dense) = (numbers(&dropped), numbers(&dense));
    assert!(doubled.iter().zip(&dense).all(|(got, value)| *got == 0.0 || (got - 2.0 * value).abs() < 1e-6));
    let weight = [random_tensor(&mut rng, &[4, 90], DType::F32)];
    let upstream = random_tensor(&mut rng, &[120, 4], DType::F32);
    let ours = with_gradients(&weight, Some(&upstream), |w| sparse_linear_dropout(&matrix, &w[0], 0.5, 9));
    let expected = with_gradients(&weight, Some(&upstream), |w| dropped.matmul(&w[0].t()?));
    assert!(distance(&ours.0, &expected.0) < 1e-5 && distance(&ours.1[0], &expected.1[0]) < 1e-4);
}

#[test]
fn wrong_sparse_matrices_and_weights_are_refused() {
    assert!(SparseMatrix::new(vec![], vec![], vec![], 3).is_err());
    assert!(SparseMatrix::new(vec![0, 2], vec![0], vec![1.0], 3).is_err());
    assert!(SparseMatrix::new(vec![0, 2, 1], vec![0], vec![1.0], 3).is_err());
    assert!(SparseMatrix::new(vec![0, 1], vec![3], vec![1.0], 3).is_err());
    assert!(SparseMatrix::new(vec![0, 1], vec![], vec![1.0], 3).is_err());
    let matrix = Arc::new(SparseMatrix::new(vec![0, 2, 2], vec![1, 1], vec![1.0, 2.0], 3).unwrap());
    let weight = Tensor::new(&[[5f32, 7.0, 9.0]], &Device::Cpu).unwrap();
    assert_eq!(sparse_linear(&matrix, &weight).unwrap().to_vec2::<f32>().unwrap(), [[21.0], [0.0]]);
    assert!(sparse_linear(&matrix, &weight.t().unwrap()).is_err());
    assert!(sparse_linear(&matrix, &weight.to_dtype(DType::F64).unwrap()).is_err());
    assert!(sparse_linear_dropout(&matrix, &weight, 1.5, 0).is_err());
    let transposed = weight.t().unwrap().contiguous().unwrap().t().unwrap();
    assert_eq!(sparse_linear(&matrix, &transposed).unwrap().to_vec2::<f32>().unwrap(), [[21.0], [0.0]]);
}

#[test]
fn dropout_keeps_the_expectation_and_its_share() {
    let ones = Tensor::ones((1000, 301), DType::F32, &Device::Cpu).unwrap();
    for p in [0.0, 0.1, 0.5, 0.6, 0.999, 1.0] {
        let out = numbers(&dropout(&ones, p, 3).unwrap());
        let kept = out.iter().filter(|value| **value != 0.0).count() as f64 / out.len() as f64;
        // Five standard deviations.
        assert!((kept - (1.0 - p)).abs() <= 5.0 * (p * (1.0 - p) / out.len() as f64).sqrt(), "{p}: {kept}");
        assert!(out.iter().all(|value| *value == 0.0 || (value * (1.0 - p) - 1.0).abs() < 1e-6), "{p}");
    }
}

#[test]
fn masks_differ_by_seed_and_not_by_thread_count() {
    let ones = Tensor::ones(100_000, DType::F32, &Device::Cpu).unwrap();
    let mask = |seed| numbers(&dropout(&ones, 0.5, seed).unwrap());
    assert_eq!(mask(1), mask(1));
    for (a, b) in [(1, 2), (1, 1 << 32), (0, u64::MAX), (7, 8)] {
        let (a, b) = (mask(a), mask(b));
        let agree = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert!((49_000..51_000).contains(&agree), "{agree}");
        // Nor is one the other, shifted a little.
        let shifted = a.iter().skip(1).zip(&b).filter(|(a, b)| a == b).count();
        assert!((49_000..51_000).contains(&shifted), "{shifted}");
    }
    let neighbours = mask(4).windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!((49_000..51_000).contains(&neighbours), "{neighbours}");
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(one.install(|| mask(5)), three.install(|| mask(5)));
}

#[test]
fn wrong_dropouts_are_refused() {
    let ones = Tensor::ones(4, DType::F32, &Device::Cpu).unwrap();
    for p in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(dropout(&ones, p, 0).is_err(), "{p}");
    }
    assert!(dropout(&ones.to_dtype(DType::U32).unwrap(), 0.5, 0).is_err());
    assert_eq!(dropout(&Tensor::zeros((0, 3), DType::F32, &Device::Cpu).unwrap(), 0.5, 0).unwrap().dims(), [0, 3]);
}
