//! GAT's fused form against the plain one, with dropout and on every form of sample, and its gradients against
//! finite differences in double precision.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::sync::Arc;

use candle_core::{DType, Device, Tensor, Var};
use gnntop_workloads::gat::{Gat, GatConfig, SelfLoops};
use gnntop_workloads::kernels::{Adjacency, KernelFamily};
use gnntop_workloads::train::{NodeModel, Parameters, Pass};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

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

fn random(rng: &mut StdRng, shape: (usize, usize)) -> Tensor {
    let values: Vec<f64> = (0..shape.0 * shape.1).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// Three layers from 7 features over 2 heads of 9 to 4 classes, in both variants.
fn configs() -> [GatConfig; 2] {
    [GatConfig::pyg(), GatConfig::dgl()].map(|variant| GatConfig {
        in_features: 7,
        hidden: 9,
        heads: 2,
        classes: 4,
        ..variant
    })
}

fn config() -> GatConfig {
    configs()[1].clone()
}

/// A model with a bias: without, nodes without edges have scores of exactly 0, where the leaky ReLU has no slope.
fn model(config: &GatConfig) -> (Parameters, Gat) {
    let parameters = Parameters::new(5);
    let model = Gat::new(config, parameters.var_builder(DType::F64, &Device::Cpu)).unwrap();
    for entry in parameters.list().iter().filter(|entry| entry.name.ends_with("bias")) {
        let values: Vec<f64> = (0..entry.var.elem_count()).map(|at| 0.1 + 0.03 * at as f64).collect();
        entry.var.set(&Tensor::from_vec(values, entry.var.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    (parameters, model)
}

/// Samples in both forms: blocks, one of them wide enough for several tasks, and one graph for all layers. The second
/// and the fourth make one layer or another project before it aggregates.
fn samples(rng: &mut StdRng) -> Vec<Vec<Arc<Adjacency>>> {
    vec![
        vec![block(rng, 700, 1500), block(rng, 40, 700), block(rng, 5, 40)],
        vec![block(rng, 30, 31), block(rng, 29, 30), block(rng, 29, 29)],
        vec![block(rng, 25, 25)],
        vec![block(rng, 1, 1)],
    ]
}

/// Output and gradients of the features and of all parameters.
fn evaluate(
    model: &Gat,
    parameters: &Parameters,
    x: &Var,
    layers: &[Arc<Adjacency>],
    pass: Pass,
    weights: &Tensor,
) -> Vec<Tensor> {
    let out = model.forward(x, layers, pass).unwrap();
    let gradients = (&out * weights).unwrap().sum_all().unwrap().backward().unwrap();
    // Without any edge nothing but the bias has an influence, and the plain form then has no gradient to give.
    let of = |var: &Var| gradients.get(var).cloned().unwrap_or_else(|| var.zeros_like().unwrap());
    let mut all = vec![out, of(x)];
    all.extend(parameters.list().iter().map(|entry| of(&entry.var)));
    all
}

fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.dims(), b.dims());
    (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap()
}

#[test]
fn all_forms_agree_in_outputs_and_gradients() {
    let mut rng = StdRng::seed_from_u64(1);
    for (layers, config) in
        samples(&mut rng).into_iter().flat_map(|layers| configs().map(|config| (layers.clone(), config)))
    {
        let x = Var::from_tensor(&random(&mut rng, (layers[0].source_nodes(), 7))).unwrap();
        let weights = random(&mut rng, (layers.last().unwrap().nodes(), 4));
        for pass in [Pass::Evaluate, Pass::Train { seed: 3 }] {
            let run = |config: &GatConfig| {
                let (parameters, model) = model(config);
                evaluate(&model, &parameters, &x, &layers, pass, &weights)
            };
            let fused = run(&config);
            let plain = run(&GatConfig { plain: true, ..config.clone() });
            let scatter = run(&GatConfig { kernels: KernelFamily::Scatter, ..config.clone() });
            for (number, ((fused, plain), scatter)) in fused.iter().zip(&plain).zip(&scatter).enumerate() {
                assert!(distance(fused, plain) < 1e-10, "{number}: {}", distance(fused, plain));
                assert!(distance(plain, scatter) < 1e-10, "{number}: {}", distance(plain, scatter));
            }
        }
    }
}

#[test]
fn dropout_changes_with_the_seed_and_only_in_training() {
    let mut rng = StdRng::seed_from_u64(2);
    let layers = samples(&mut rng).swap_remove(2);
    let x = random(&mut rng, (25, 7));
    let (_, model) = model(&config());
    let run = |pass: Pass| model.forward(&x, &layers, pass).unwrap();
    assert_eq!(distance(&run(Pass::Train { seed: 1 }), &run(Pass::Train { seed: 1 })), 0.0);
    assert!(distance(&run(Pass::Train { seed: 1 }), &run(Pass::Train { seed: 2 })) > 1e-3);
    assert!(distance(&run(Pass::Train { seed: 1 }), &run(Pass::Evaluate)) > 1e-3);
}

#[test]
fn gradients_agree_with_finite_differences() {
    let mut rng = StdRng::seed_from_u64(3);
    for layers in samples(&mut rng).split_off(1) {
        let x = Var::from_tensor(&random(&mut rng, (layers[0].source_nodes(), 7))).unwrap();
        let weights = random(&mut rng, (layers.last().unwrap().nodes(), 4));
        for (parameters, model) in configs().map(|config| model(&config)) {
            let pass = Pass::Train { seed: 7 };
            let gradients = evaluate(&model, &parameters, &x, &layers, pass, &weights);
            let mut variables = vec![x.clone()];
            variables.extend(parameters.list().into_iter().map(|entry| entry.var));
            let value = || {
                let out = model.forward(&x, &layers, pass).unwrap();
                (out * &weights).unwrap().sum_all().unwrap().to_scalar::<f64>().unwrap()
            };
            for (variable, gradient) in variables.iter().zip(&gradients[1..]) {
                agrees_with_slopes(variable, gradient, &value, &mut rng);
            }
        }
    }
}

/// Central differences at up to 30 places.
fn agrees_with_slopes(variable: &Var, gradient: &Tensor, value: &impl Fn() -> f64, rng: &mut StdRng) {
    let step = 1e-6;
    let gradient: Vec<f64> = gradient.flatten_all().unwrap().to_vec1().unwrap();
    let start: Vec<f64> = variable.flatten_all().unwrap().to_vec1().unwrap();
    let set = |values: &[f64]| variable.set(&Tensor::from_slice(values, variable.shape(), &Device::Cpu).unwrap());
    for _ in 0..30.min(start.len()) {
        let place = rng.random_range(0..start.len());
        let mut moved = start.clone();
        moved[place] = start[place] + step;
        set(&moved).unwrap();
        let above = value();
        moved[place] = start[place] - step;
        set(&moved).unwrap();
        let slope = (above - value()) / (2.0 * step);
        set(&start).unwrap();
        assert!((slope - gradient[place]).abs() < 1e-5 * (1.0 + slope.abs()), "{place}: {} {slope}", gradient[place]);
    }
}

#[test]
fn threads_do_not_change_the_result() {
    let mut rng = StdRng::seed_from_u64(4);
    let layers = samples(&mut rng).swap_remove(0);
    let x = Var::from_tensor(&random(&mut rng, (1500, 7)).to_dtype(DType::F32).unwrap()).unwrap();
    let weights = random(&mut rng, (5, 4)).to_dtype(DType::F32).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let parameters = Parameters::new(5);
            let model = Gat::new(&config(), parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
            let all = evaluate(&model, &parameters, &x, &layers, Pass::Train { seed: 1 }, &weights);
            all.iter().map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap()).collect::<Vec<_>>()
        })
    };
    assert_eq!(run(1), run(5));
}

#[test]
fn the_study_model_has_10763_parameters_in_their_order() {
    let parameters = Parameters::new(0);
    let model = Gat::new(&GatConfig::pyg(), parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    assert_eq!((model.layers(), parameters.values()), (3, 10_763));
    let list = parameters.list();
    let names: Vec<&str> = list.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names[..4], ["convs.0.att_src", "convs.0.att_dst", "convs.0.bias", "convs.0.lin.weight"]);
    let largest = |entry: usize| {
        list[entry].var.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap()
    };
    assert!(f64::from(largest(3)) <= (6.0 / 618.0f64).sqrt() && largest(3) > 0.09);
    assert!(f64::from(largest(0)) <= (6.0 / 17.0f64).sqrt() && largest(0) > 0.3);
    assert_eq!(largest(2), 0.0);
}

#[test]
fn a_node_without_edges_attends_to_itself_or_gets_the_bias() {
    let x = Tensor::new(&[[1.0f64; 7], [2.0; 7]], &Device::Cpu).unwrap();
    let alone = [Arc::new(Adjacency::new(vec![0, 0, 0], vec![]).unwrap())];
    let looped = [Arc::new(Adjacency::new(vec![0, 1, 3], vec![0, 1, 1]).unwrap())];
    for plain in [false, true] {
        let [replaced, as_given] = configs().map(|config| model(&GatConfig { plain, layers: 1, ..config }));
        let run = |(_, model): &(Parameters, Gat), layers: &[Arc<Adjacency>]| {
            model.forward(&x, layers, Pass::Evaluate).unwrap()
        };
        // Attention to oneself alone is 1, however many loops there are.
        assert_eq!(distance(&run(&replaced, &alone), &run(&replaced, &looped)), 0.0);
        assert!(distance(&run(&replaced, &looped), &run(&as_given, &looped)) < 1e-15);
        let bias = &as_given.0.list()[2].var;
        assert_eq!(distance(&run(&as_given, &alone), &bias.broadcast_as((2, 4)).unwrap()), 0.0);
        assert_eq!(replaced.1.config().self_loops, SelfLoops::Replaced);
    }
}

#[test]
fn every_layer_is_entered_and_left_in_order() {
    struct Guard<'a>(usize, &'a std::cell::RefCell<Vec<String>>);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(format!("-{}", self.0));
        }
    }
    let mut rng = StdRng::seed_from_u64(6);
    let layers = samples(&mut rng).swap_remove(2);
    let x = random(&mut rng, (25, 7));
    for plain in [false, true] {
        let (_, model) = model(&GatConfig { plain, ..config() });
        let log = std::cell::RefCell::new(Vec::new());
        let enter = |layer| {
            log.borrow_mut().push(format!("+{layer}"));
            Guard(layer, &log)
        };
        model.forward_with(&x, &layers, Pass::Evaluate, enter).unwrap();
        assert_eq!(log.into_inner(), ["+0", "-0", "+1", "-1", "+2", "-2"]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rng = StdRng::seed_from_u64(7);
    let (_, model) = model(&config());
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
