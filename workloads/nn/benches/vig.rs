//! Training steps of study 3's ViG, fused and plain: images a second, and where a step's time goes.
//!
//! `cd workloads && cargo bench -p gnntop-nn --bench vig` runs both forms at 20 images; `-- --images 50 --steps 10 --form fused
//! --threads 1` changes that. Prints the median step after one step of warm-up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use candle_nn::loss::cross_entropy;
use gnntop_nn::learn::{Adam, AdamSettings};
use gnntop_nn::models::Parameters;
use gnntop_nn::models::vig::{Form, Mode, Vig, VigConfig};
use gnntop_nn::subnormals::{Subnormals, set_subnormals};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Time of one step: forward, backward, optimizer.
type Step = [Duration; 3];

fn option(name: &str) -> Option<String> {
    let arguments: Vec<String> = std::env::args().collect();
    let place = arguments.iter().position(|argument| argument == name)?;
    arguments.get(place + 1).cloned()
}

fn number(name: &str, default: usize) -> usize {
    option(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: not a number: {text}")))
}

fn train(form: Form, images: usize, steps: usize) -> Vec<Step> {
    let config = VigConfig::study();
    let parameters = Parameters::new(1);
    let model = Vig::new(&config, form, parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    let mut adam = Adam::new(parameters.list(), AdamSettings::default()).unwrap();
    let mut rng = StdRng::seed_from_u64(2);
    let nodes = images * config.grid.nodes();
    let pixels: Vec<f32> = (0..nodes * 3).map(|_| rng.random_range(0..=255u8) as f32 / 255.0).collect();
    let pixels = Tensor::from_vec(pixels, (nodes, 3), &Device::Cpu).unwrap();
    let classes: Vec<u32> = (0..images).map(|_| rng.random_range(0..10)).collect();
    let classes = Tensor::from_vec(classes, images, &Device::Cpu).unwrap();
    let mut step = || {
        let begin = Instant::now();
        let loss = cross_entropy(&model.forward(&pixels, Mode::Train).unwrap(), &classes).unwrap();
        let forward = begin.elapsed();
        let gradients = loss.backward().unwrap();
        let backward = begin.elapsed();
        adam.step(&gradients, 1e-4).unwrap();
        [forward, backward - forward, begin.elapsed() - backward]
    };
    step();
    (0..steps).map(|_| step()).collect()
}

fn report(name: &str, images: usize, mut steps: Vec<Step>) {
    steps.sort_by_key(|step| step.iter().sum::<Duration>());
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let median = steps[steps.len() / 2];
    let total = ms(median.iter().sum());
    let [forward, backward, optimizer] = median.map(ms);
    println!(
        "{name:6} {images:4} images: {:7.1} images/s, step {total:7.1} ms = forward {forward:.1} + backward \
         {backward:.1} + optimizer {optimizer:.1}",
        images as f64 / total * 1e3,
    );
}

fn main() {
    let (images, threads) = (number("--images", 20), number("--threads", 2));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().unwrap();
    set_subnormals(Subnormals::Flush);
    for (name, form, steps) in [("fused", Form::Fused, 20), ("plain", Form::Plain, 3)] {
        if option("--form").is_none_or(|wanted| wanted == name) {
            report(name, images, train(form, images, number("--steps", steps)));
        }
    }
}
