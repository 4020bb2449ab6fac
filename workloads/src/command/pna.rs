//! `gnntop train pna`: the options.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::training_command::TrainingCommand;
use crate::launch::{RunOptions, at_least_one};
use crate::train::{InvalidOption, Observer, Summary, TrainError};
use crate::trainers::pna::{PnaRun, PnaTraining};
use gnntop_data::graph::Graph;
use gnntop_data::molecule::{self, MoleculeSet};
use gnntop_nn::models::pna::PnaConfig;

/// Trains PNA (Principal Neighbourhood Aggregation) on small molecules to predict their HOMO-LUMO gap.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "pna",
    after_help = "Examples:\n  gnntop run pna\n  gnntop run pna --workers 0 --epochs 3\n  \
                  gnntop train pna --preset study --data pcqm4m-v2/raw/data.csv.gz"
)]
pub(super) struct PnaCommand {
    /// Sizes of model and batch: `default` suits a two-core CPU, `study` is the published setting.
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// Molecules in the layout of PCQM4Mv2 (data.csv or data.csv.gz: idx,smiles,homolumogap) [default: generated]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Molecules to train on.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    graphs: usize,
    /// Share of the molecules for validation after each epoch; the study does not validate.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    validation: Option<f64>,
    /// Molecules per batch; the last batch of an epoch has the rest.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    batch_size: Option<usize>,
    /// Layers of the model.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    layers: Option<usize>,
    /// Width of the layers.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    hidden: Option<usize>,
    /// Loader threads; 0 assembles each batch in the training loop.
    #[arg(long, value_name = "N", default_value_t = 2)]
    workers: usize,
    /// Compute every layer edge by edge, as PyTorch Geometric does, as a control; results are the same.
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    options: RunOptions,
}

/// A set of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Preset {
    #[default]
    Default,
    Study,
}

fn share(text: &str) -> Result<f64, InvalidOption> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        Ok(_) => Err(InvalidOption("must be at least 0 and less than 1".to_owned())),
        Err(error) => Err(InvalidOption(error.to_string())),
    }
}

impl PnaCommand {
    /// The preset's sizes with the command line's changes.
    fn sizes(&self) -> (PnaConfig, PnaTraining) {
        let (mut model, mut training) = match self.preset {
            Preset::Default => (PnaConfig::default(), PnaTraining::default()),
            Preset::Study => (PnaConfig::study(), PnaTraining::study()),
        };
        model.plain = self.plain;
        model.layers = self.layers.unwrap_or(model.layers);
        model.hidden = self.hidden.unwrap_or(model.hidden);
        training.batch_graphs = self.batch_size.unwrap_or(training.batch_graphs);
        training.epochs = self.options.epochs.unwrap_or(training.epochs);
        training.learning_rate = self.options.learning_rate.unwrap_or(training.learning_rate);
        (model, training)
    }

    fn molecules(&self, observer: &mut dyn Observer) -> Result<MoleculeSet, TrainError> {
        let Some(path) = &self.data else {
            return Ok(molecule::generate(self.options.seed, self.graphs));
        };
        let molecules =
            molecule::read(path, Some(self.graphs), &mut |rows| observer.loading(format_args!("{rows} molecules")))?;
        if molecules.graphs.is_empty() {
            return Err(TrainError::NoMolecules { path: path.clone() });
        }
        for row in molecules.skipped.iter().take(3) {
            observer.report_line(&format!("{}, line {}: skipped, {}", path.display(), row.line, row.reason));
        }
        Ok(molecules)
    }

    /// Splits off the last molecules for validation.
    fn set_apart(&self, molecules: &mut MoleculeSet) -> Vec<Graph> {
        let by_preset = if self.preset == Preset::Study { 0.0 } else { 0.1 };
        let share = self.validation.unwrap_or(by_preset);
        let count = (molecules.graphs.len() as f64 * share) as usize;
        molecules.graphs.split_off(molecules.graphs.len() - count)
    }

    fn describe(&self, model: &PnaConfig, training: &PnaTraining, molecules: &MoleculeSet) -> String {
        let skipped = match molecules.skipped_rows {
            0 => String::new(),
            rows => format!(", {rows} rows skipped"),
        };
        format!(
            "PNA{}, {} layers of {}, {} parameters; {} molecules from {}{skipped}; batches of {}, {} loader threads",
            if model.plain { " (plain form)" } else { "" },
            model.layers,
            model.hidden,
            model.parameters(),
            molecules.graphs.len(),
            molecules.source,
            training.batch_graphs,
            self.workers,
        )
    }
}

impl TrainingCommand for PnaCommand {
    fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (model, training) = self.sizes();
        let device = self.options.open_device()?;
        let mut molecules = self.molecules(observer)?;
        let validation = self.set_apart(&mut molecules);
        observer.report_line(&self.describe(&model, &training, &molecules));
        let (graphs, workers, options) = (molecules.graphs, self.workers, &self.options);
        PnaRun { model, training, graphs, validation, workers, options }.train(device, observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{Silent, StepReport};

    fn command(args: &[&str]) -> PnaCommand {
        PnaCommand::parse_from(["pna"].iter().chain(args))
    }

    #[test]
    fn the_study_preset_is_the_published_one() {
        let (model, training) = command(&["--preset", "study"]).sizes();
        assert_eq!(model.parameters(), 4_096_110);
        assert_eq!((training.batch_graphs, training.learning_rate), (512, 1e-6));
    }

    #[test]
    fn the_command_line_overrides_the_preset() {
        let (model, training) = command(&["--preset", "study", "--layers", "2", "--batch-size", "7"]).sizes();
        assert_eq!((model.layers, model.hidden, training.batch_graphs), (2, 64, 7));
        assert!(PnaCommand::try_parse_from(["pna", "--batch-size", "0"]).is_err());
    }

    #[test]
    fn a_training_learns_and_ends_with_a_partial_batch() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.gnntop");
        let mut watch = Watch::default();
        let file = file.to_str().unwrap();
        let size = ["--graphs", "150", "--batch-size", "64", "--layers", "2", "--hidden", "16", "--epochs", "60"];
        let more = ["--learning-rate", "0.01", "--validation", "0", "--record", file];
        let summary = command(&[&size[..], &more].concat()).run(&mut watch).unwrap();
        assert_eq!(summary.steps, 180);
        assert_eq!(watch.graphs[..3], [64, 64, 22].map(Some));
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(mean(&watch.losses[150..]) < 0.8 * mean(&watch.losses[..30]), "{:?}", watch.losses);
        assert!(std::fs::metadata(file).unwrap().len() > 1000);
    }

    #[test]
    fn molecules_kept_apart_are_judged_beside_predicting_the_mean() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.gnntop");
        let mut watch = Watch::default();
        let size = ["--graphs", "200", "--batch-size", "64", "--layers", "2", "--hidden", "16", "--epochs", "40"];
        let more = ["--learning-rate", "0.01", "--validation", "0.2", "--record", file.to_str().unwrap()];
        command(&[&size[..], &more].concat()).run(&mut watch).unwrap();
        assert_eq!(watch.graphs[..3], [64, 64, 32].map(Some));
        let told = watch.told.last().unwrap();
        let numbers: Vec<f64> = told.split(' ').filter_map(|word| word.parse().ok()).collect();
        assert!(numbers.len() == 2 && numbers[0] < numbers[1] && numbers[0] > 0.0, "{told}");
        assert!(PnaCommand::try_parse_from(["pna", "--validation", "1"]).is_err());
    }

    #[test]
    fn workers_change_nothing_but_time() {
        let losses = |workers: &str| {
            let temp = tempfile::tempdir().unwrap();
            let file = temp.path().join("a.gnntop");
            let mut watch = Watch::default();
            let size = ["--graphs", "60", "--batch-size", "16", "--layers", "2", "--hidden", "8", "--epochs", "2"];
            let more = ["--workers", workers, "--record", file.to_str().unwrap()];
            command(&[&size[..], &more].concat()).run(&mut watch).unwrap();
            watch.losses
        };
        assert_eq!(losses("0"), losses("3"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = command(&["--data", "/no/such/data.csv"]).run(&mut Silent).unwrap_err().to_string();
        assert!(error.contains("/no/such/data.csv"), "{error}");
    }

    #[derive(Default)]
    struct Watch {
        losses: Vec<f64>,
        graphs: Vec<Option<u64>>,
        told: Vec<String>,
    }

    impl Observer for Watch {
        fn report_line(&mut self, line: &str) {
            self.told.push(line.to_owned());
        }

        fn step(&mut self, report: &StepReport) {
            self.losses.push(report.loss);
            self.graphs.push(report.shape.graphs);
        }
    }
}
