//! `gnntop train gin`.

use clap::Parser;

use super::sampled::SampledOptions;
use super::training_command::TrainingCommand;
use crate::launch::{RunOptions, at_least_one};
use crate::train::{Observer, Summary, TrainError};
use gnntop_nn::models::gin::{Gin, GinConfig};

/// Trains GIN (graph isomorphism network) on sampled neighbourhoods to predict the communities of a large graph.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "gin",
    after_help = "Examples:\n  gnntop run gin\n  gnntop run gin --hidden 64 --form subgraph\n  \
                  gnntop train gin --data reddit/ --batch-size 1024 --workers 2\n  \
                  gnntop run gin --ranks 2"
)]
pub(super) struct GinCommand {
    /// Width of the hidden layers, and inside every layer's MLP.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    hidden: usize,
    #[command(flatten)]
    options: SampledOptions,
}

impl TrainingCommand for GinCommand {
    fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options.run
    }

    fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        Ok(self.options.ranks.processes_to_launch()?)
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (options, dataset) = (&self.options, self.options.dataset(observer)?);
        let config = GinConfig {
            in_features: dataset.features.width(),
            hidden: self.hidden,
            classes: dataset.classes,
            layers: options.fanouts.len(),
            dropout: 0.5,
            kernels: options.kernels.into(),
        };
        let GinConfig { layers, hidden, .. } = config;
        let header = format!("GIN, {layers} layers of {hidden}, {} parameters", config.parameters());
        options.train::<Gin>("gin", &header, &dataset, (&config, false), observer)
    }
}
