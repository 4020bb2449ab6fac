use std::sync::Mutex;

use clap::Parser;

use super::*;
use crate::train::Silent;
use gnntop_data::loading::LoaderShard;
use gnntop_nn::models::Parameters;
use gnntop_nn::models::sage::{Sage, SageConfig};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    options: SampledOptions,
}

/// A small graph; fan-outs that take every neighbour, so that nothing is left to chance.
const ALL: [&str; 6] = ["--nodes", "200", "--edges", "1600", "--fanouts", "500,500"];

/// Trains GraphSAGE of two layers; the parameters of every rank, in the order in which they came.
fn train_with(words: &[&str], dropout: f64) -> Vec<Vec<f32>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.gnntop").display().to_string();
    let words = [&["test", "--record", &file, "--workers", "0"], &ALL[..], words].concat();
    let options = Arguments::try_parse_from(words).unwrap().options;
    let dataset = options.dataset(&mut Silent).unwrap();
    let config = SageConfig {
        in_features: dataset.features.width(),
        hidden: 8,
        classes: dataset.classes,
        layers: 2,
        dropout,
        ..SageConfig::default()
    };
    // Adam divides by the root of the second moment: where that is rounding, a small gradient becomes a large step.
    let adam = AdamSettings { epsilon: 1e-3, ..AdamSettings::default() };
    let all: Mutex<Vec<Parameters>> = Mutex::default();
    let make = |device: &Device| -> candle_core::Result<Learner<Sage>> {
        let trainer = Learner::new(device, &config, adam, options.run.seed)?;
        all.lock().unwrap().push(trainer.parameters().clone());
        Ok(trainer)
    };
    options.sampled_run("test", &dataset, false).train(make, &mut Silent).unwrap();
    let values = |parameters: &Parameters| {
        let tensors = parameters.list().into_iter().map(|one| one.var.flatten_all().unwrap().to_vec1::<f32>().unwrap());
        tensors.flatten().collect()
    };
    all.into_inner().unwrap().iter().map(values).collect()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn features_that_the_device_holds_teach_the_same() {
    let words = ["--batch-size", "24", "--steps", "12"];
    let with_batches = train_with(&words, 0.5);
    assert_eq!(train_with(&[&words[..], &["--features-on-device"]].concat(), 0.5), with_batches);
}

#[test]
fn ranks_with_parts_of_a_batch_learn_what_one_does_with_all_of_it() {
    let one = train_with(&["--batch-size", "24", "--steps", "4"], 0.0);
    let initial = train_with(&["--batch-size", "24", "--steps", "0"], 0.0);
    let learnt = largest_difference(&one[0], &initial[0]);
    for ranks in [2, 3] {
        let batch = (24 / ranks).to_string();
        let words = ["--ranks", &ranks.to_string(), "--batch-size", &batch, "--steps", "4"];
        let several = train_with(&words, 0.0);
        assert_eq!(several.len(), ranks);
        assert!(several.iter().all(|rank| *rank == several[0]), "ranks differ");
        let difference = largest_difference(&several[0], &one[0]);
        assert!(difference < 1e-5 && learnt > 1e-3, "{ranks} ranks: {difference} off, {learnt} learnt");
    }
}

#[test]
fn ranks_stay_equal_with_dropout_and_without_shards() {
    for shard in ["split", "none"] {
        let words = ["--ranks", "2", "--batch-size", "10", "--steps", "3", "--shard", shard];
        let ranks = train_with(&words, 0.5);
        assert!(ranks[0] == ranks[1] && ranks[0].iter().all(|value| value.is_finite()), "{shard}");
    }
}

#[test]
fn shards_divide_the_steps_of_an_epoch_and_no_shards_do_not() {
    let steps = |words: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.gnntop").display().to_string();
        let words = [&["test", "--record", &file, "--workers", "0", "--batch-size", "10"], &ALL[..], words].concat();
        let options = Arguments::try_parse_from(words).unwrap().options;
        let dataset = options.dataset(&mut Silent).unwrap();
        let whose = LoaderShard { number: 0, of: options.ranks.ranks };
        let run = options.sampled_run("test", &dataset, false);
        let loader = run.training_loader(whose, |batches| batches).unwrap();
        (loader.batches_per_epoch(), run.describe_shards(whose.of))
    };
    let (alone, _) = steps(&[]);
    let (split, split_words) = steps(&["--ranks", "2"]);
    let (none, none_words) = steps(&["--ranks", "2", "--shard", "none"]);
    assert_eq!((alone.div_ceil(2), alone), (split, none));
    assert!(split_words.contains("split between 2 ranks"), "{split_words}");
    assert!(none_words.contains("an epoch is 2 times the work"), "{none_words}");
}
