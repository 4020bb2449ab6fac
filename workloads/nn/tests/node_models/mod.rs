//! Properties of every model of nodes in samples of a graph, whatever its layers: the samples that it is tested on, and
//! the tests that are the same for all. Models have three layers, from [`IN_FEATURES`] features to [`CLASSES`] classes.

use std::cell::RefCell;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor, Var};
use gnntop_data::graph::Adjacency;
use gnntop_data::nodes::Features;
use gnntop_data::sampling::gather_features;
use gnntop_nn::kernels::MatmulPrecision;
use gnntop_nn::models::{FeatureRows, FeatureTable, NodeModel, Parameters, Pass};
use half::bf16;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::finite_differences::Slopes;

/// Width of the features that models read.
pub const IN_FEATURES: usize = 7;
/// Width of what they give.
pub const CLASSES: usize = 4;

/// Random edges from `sources` nodes to the first `targets` of them. Target 0 has no in-edge, target 1 is a hub, target
/// 2 has nothing but two loops; there are duplicates.
fn block(rng: &mut StdRng, targets: u32, sources: u32) -> Arc<Adjacency> {
    let mut rows: Vec<Vec<u32>> = (0..targets).map(|_| Vec::new()).collect();
    for row in rows.iter_mut().skip(3) {
        row.extend((0..rng.random_range(0..5)).map(|_| rng.random_range(0..sources)));
    }
    if targets > 3 {
        rows[1] = (0..40).map(|_| rng.random_range(0..sources)).collect();
        rows[2] = vec![2, 2];
        rows[3] = vec![3, sources - 1, sources - 1];
    }
    let mut row_start = vec![0];
    rows.iter().for_each(|row| row_start.push(row_start.last().unwrap() + row.len() as u32));
    Arc::new(Adjacency::bipartite(row_start, rows.concat(), sources as usize).unwrap())
}

/// Samples in both forms: blocks, the first of them wide enough for several tasks, and one graph for all layers.
pub fn samples(rng: &mut StdRng) -> Vec<Vec<Arc<Adjacency>>> {
    vec![
        vec![block(rng, 700, 1500), block(rng, 40, 700), block(rng, 5, 40)],
        vec![block(rng, 30, 31), block(rng, 29, 30), block(rng, 29, 29)],
        vec![block(rng, 25, 25)],
        vec![block(rng, 1, 1)],
    ]
}

pub fn random(rng: &mut StdRng, shape: (usize, usize)) -> Tensor {
    let values: Vec<f64> = (0..shape.0 * shape.1).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// Features of a sample, and weights for what a model makes of it.
pub fn input(rng: &mut StdRng, layers: &[Arc<Adjacency>]) -> (Var, Tensor) {
    let x = Var::from_tensor(&random(rng, (layers[0].source_nodes(), IN_FEATURES))).unwrap();
    (x, random(rng, (layers.last().unwrap().nodes(), CLASSES)))
}

pub fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.dims(), b.dims());
    (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap()
}

/// A model with its parameters.
pub type Made<M> = (Parameters, M);

/// Output, and gradients of the features and of all parameters.
fn evaluate<M: NodeModel>(
    (parameters, model): &Made<M>,
    x: &Var,
    layers: &[Arc<Adjacency>],
    pass: Pass,
    weights: &Tensor,
) -> Vec<Tensor> {
    let out = model.forward(x.as_tensor(), layers, pass).unwrap();
    let gradients = (&out * weights).unwrap().sum_all().unwrap().backward().unwrap();
    let edges: usize = layers.iter().map(|layer| layer.edges()).sum();
    // Without any edge a plain form may have no gradient to give: only some parameters have an influence.
    let of = |var: &Var| match gradients.get(var) {
        Some(gradient) => gradient.clone(),
        None if edges == 0 => var.zeros_like().unwrap(),
        None => panic!("no gradient of {:?}", var.dims()),
    };
    let mut all = vec![out, of(x)];
    all.extend(parameters.list().iter().map(|entry| of(&entry.var)));
    all
}

/// Forms of one model give the same outputs and gradients on every sample, in training and without.
pub fn forms_agree<M: NodeModel>(forms: &[&dyn Fn() -> Made<M>]) {
    let mut rng = StdRng::seed_from_u64(1);
    for layers in samples(&mut rng) {
        let (x, weights) = input(&mut rng, &layers);
        for pass in [Pass::Evaluate, Pass::Train { seed: 3 }] {
            let results: Vec<_> = forms.iter().map(|form| evaluate(&form(), &x, &layers, pass, &weights)).collect();
            for other in &results[1..] {
                for (number, (a, b)) in results[0].iter().zip(other).enumerate() {
                    assert!(distance(a, b) < 1e-10, "{number}: {}", distance(a, b));
                }
            }
        }
    }
}

pub fn dropout_changes_with_the_seed_and_only_in_training<M: NodeModel>((_, model): &Made<M>) {
    let mut rng = StdRng::seed_from_u64(2);
    let layers = samples(&mut rng).swap_remove(2);
    let (x, _) = input(&mut rng, &layers);
    let run = |pass: Pass| model.forward(x.as_tensor(), &layers, pass).unwrap();
    assert_eq!(distance(&run(Pass::Train { seed: 1 }), &run(Pass::Train { seed: 1 })), 0.0);
    assert!(distance(&run(Pass::Train { seed: 1 }), &run(Pass::Train { seed: 2 })) > 1e-3);
    assert!(distance(&run(Pass::Train { seed: 1 }), &run(Pass::Evaluate)) > 1e-3);
}

pub fn gradients_agree_with_finite_differences<M: NodeModel>((parameters, model): &Made<M>) {
    let mut rng = StdRng::seed_from_u64(3);
    for layers in samples(&mut rng).split_off(1) {
        let (x, weights) = input(&mut rng, &layers);
        let mut variables = vec![x.clone()];
        variables.extend(parameters.list().into_iter().map(|entry| entry.var));
        let objective = || {
            let out = model.forward(x.as_tensor(), &layers, Pass::Train { seed: 7 }).unwrap();
            (out * &weights).unwrap().sum_all().unwrap()
        };
        Slopes::default().agree(&variables, objective, &mut rng);
    }
}

/// `make` makes the model in single precision.
pub fn threads_do_not_change_the_result<M: NodeModel>(make: impl Fn() -> Made<M> + Sync) {
    let mut rng = StdRng::seed_from_u64(4);
    let layers = samples(&mut rng).swap_remove(0);
    let (x, weights) = input(&mut rng, &layers);
    let x = Var::from_tensor(&x.to_dtype(DType::F32).unwrap()).unwrap();
    let weights = weights.to_dtype(DType::F32).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let all = evaluate(&make(), &x, &layers, Pass::Train { seed: 1 }, &weights);
            all.iter().map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap()).collect::<Vec<_>>()
        })
    };
    assert_eq!(run(1), run(5));
}

/// The plain form and the fused ones that this processor has: whether it is plain, and what its products multiply.
pub fn forms() -> Vec<(bool, MatmulPrecision)> {
    let bf16 = MatmulPrecision::Bf16.check().is_ok().then_some((false, MatmulPrecision::Bf16));
    [(true, MatmulPrecision::F32), (false, MatmulPrecision::F32)].into_iter().chain(bf16).collect()
}

/// `make` makes the model in single precision.
pub fn features_are_read_where_they_are<M: NodeModel>(make: impl Fn() -> Made<M>) {
    let mut rng = StdRng::seed_from_u64(8);
    let (parameters, model) = make();
    for layers in samples(&mut rng) {
        let nodes: Vec<u32> = (0..layers[0].source_nodes()).map(|_| rng.random_range(0..900)).collect();
        let values = (0..900 * IN_FEATURES).map(|_| rng.random_range(-1.0..1.0f32)).collect();
        let exact = Arc::new(Features::Dense { values, width: IN_FEATURES });
        let rounded = match &*exact {
            Features::Dense { values, width } => {
                let values = values.iter().map(|&value| bf16::from_f32(value).to_f32()).collect();
                Arc::new(Features::Dense { values, width: *width })
            }
            Features::Sparse { .. } => unreachable!(),
        };
        let run = |features: FeatureRows<'_>| {
            let out = model.forward(features, &layers, Pass::Train { seed: 4 }).unwrap();
            let gradients = out.sqr().unwrap().sum_all().unwrap().backward().unwrap();
            let parameters = parameters.list();
            let gradients = parameters.iter().filter_map(|parameter| gradients.get(&parameter.var).cloned());
            let all = std::iter::once(out).chain(gradients);
            all.map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap()).collect::<Vec<_>>()
        };
        for (precision, values) in [(MatmulPrecision::F32, &exact), (MatmulPrecision::Bf16, &rounded)] {
            let mut gathered = Vec::new();
            gather_features(values, &nodes, &mut gathered, false);
            let gathered = Tensor::from_vec(gathered, (nodes.len(), IN_FEATURES), &Device::Cpu).unwrap();
            let table = FeatureTable::new(&exact, precision).unwrap();
            let in_place = run(FeatureRows::InPlace { table: &table, nodes: &nodes });
            assert!(in_place == run((&gathered).into()), "{}", precision.name());
        }
        let other = Arc::new(Features::Dense { values: vec![0.0; 8 * IN_FEATURES].into(), width: IN_FEATURES });
        let other = FeatureTable::Exact(other);
        let absent = vec![8; nodes.len()];
        let features = FeatureRows::InPlace { table: &other, nodes: &absent };
        let refused = model.forward(features, &layers, Pass::Evaluate).unwrap_err().to_string();
        assert!(refused.contains("there are features for 8 nodes, and none for node 8"), "{refused}");
    }
}

pub fn every_layer_is_entered_and_left_in_order<M: NodeModel>((_, model): &Made<M>) {
    struct Guard<'a>(usize, &'a RefCell<Vec<String>>);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(format!("-{}", self.0));
        }
    }
    let mut rng = StdRng::seed_from_u64(6);
    let layers = samples(&mut rng).swap_remove(2);
    let (x, _) = input(&mut rng, &layers);
    let log = RefCell::new(Vec::new());
    let enter = |layer| {
        log.borrow_mut().push(format!("+{layer}"));
        Guard(layer, &log)
    };
    model.forward_with(x.as_tensor(), &layers, Pass::Evaluate, enter).unwrap();
    assert_eq!(log.into_inner(), ["+0", "-0", "+1", "-1", "+2", "-2"]);
}

pub fn what_does_not_fit_is_refused<M: NodeModel>((_, model): &Made<M>) {
    let mut rng = StdRng::seed_from_u64(7);
    let layers = samples(&mut rng).swap_remove(1);
    let x = random(&mut rng, (31, 7));
    let refused =
        |x: &Tensor, layers: &[Arc<Adjacency>]| model.forward(x, layers, Pass::Evaluate).unwrap_err().to_string();
    assert!(refused(&x, &layers[..2]).contains("2 adjacencies for 3 layers"));
    assert!(refused(&x, &[]).contains("0 adjacencies for 3 layers"));
    assert!(refused(&random(&mut rng, (31, 8)), &layers).contains("expected features [nodes, 7], got [31, 8]"));
    assert!(refused(&random(&mut rng, (30, 7)), &layers).contains("layer 0 has 30 rows"));
    let swapped = [layers[1].clone(), layers[0].clone(), layers[2].clone()];
    assert!(refused(&random(&mut rng, (30, 7)), &swapped).contains("layer 1 has 29 rows"));
    let empty = [Arc::new(Adjacency::new(vec![0], vec![]).unwrap())];
    assert!(refused(&random(&mut rng, (1, 7)).narrow(0, 0, 0).unwrap(), &empty).contains("no nodes"));
    assert!(model.forward(&x.to_dtype(DType::U32).unwrap(), &layers, Pass::Evaluate).is_err());
    assert!(model.forward(&x.to_dtype(DType::F32).unwrap(), &layers, Pass::Evaluate).is_err());
}
