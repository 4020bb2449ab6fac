//! `gnntop train sage`.

use clap::Parser;

use super::sampled::SampledOptions;
use super::training_command::TrainingCommand;
use crate::launch::{RunOptions, at_least_one};
use crate::train::{Observer, Summary, TrainError};
use gnntop_nn::models::sage::{Sage, SageConfig};

/// Trains GraphSAGE on sampled neighbourhoods to predict the communities of a large graph.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "sage",
    after_help = "Examples:\n  gnntop run sage\n  gnntop run sage --form subgraph --kernels scatter\n  \
                  gnntop train sage --data reddit/ --batch-size 1024 --workers 2\n  \
                  gnntop run sage --ranks 2"
)]
pub(super) struct SageCommand {
    /// Width of the hidden layers.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    hidden: usize,
    #[command(flatten)]
    options: SampledOptions,
}

impl TrainingCommand for SageCommand {
    fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options.run
    }

    fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        Ok(self.options.ranks.processes_to_launch()?)
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (options, dataset) = (&self.options, self.options.dataset(observer)?);
        let config = SageConfig {
            in_features: dataset.features.width(),
            hidden: self.hidden,
            classes: dataset.classes,
            layers: options.fanouts.len(),
            kernels: options.kernels.into(),
            plain: options.plain,
            ..SageConfig::default()
        };
        let SageConfig { layers, hidden, .. } = config;
        let header = format!("GraphSAGE, {layers} layers of {hidden}, {} parameters", config.parameters());
        options.train::<Sage>("sage", &header, &dataset, (&config, false), observer)
    }
}
