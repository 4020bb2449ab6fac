//! `gnntop train sage`.

use clap::Parser;

use super::{SageConfig, Trainer};
use crate::command::{Observer, RunOptions, Summary, TrainError, at_least_one};
use crate::parallel::RankOptions;
use crate::sampled::{SampledOptions, SampledRun, WEIGHT_DECAY};
use crate::train::AdamSettings;

/// Trains GraphSAGE on sampled neighbourhoods to tell the communities of a large graph.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "sage",
    after_help = "Examples:\n  gnntop run sage\n  gnntop run sage --form subgraph --kernels scatter\n  \
                  gnntop train sage --data reddit/ --batch-size 1024 --workers 2\n  \
                  gnntop run sage --ranks 2"
)]
pub struct SageCommand {
    /// Width of the layers between.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    hidden: usize,
    #[command(flatten)]
    options: SampledOptions,
}

impl SageCommand {
    /// The options that every training has.
    pub(crate) fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options.run
    }

    /// The ranks that are to train together.
    pub(crate) fn ranks(&self) -> &RankOptions {
        &self.options.ranks
    }

    /// Trains until the epochs or steps are done or the observer says stop.
    ///
    /// # Errors
    /// The data cannot be read, or the model cannot be computed.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let options = &self.options;
        let dataset = options.dataset(observer)?;
        let config = SageConfig {
            in_features: dataset.features.width(),
            hidden: self.hidden,
            classes: dataset.classes,
            layers: options.fanouts.len(),
            kernels: options.kernels,
            plain: options.plain,
            ..SageConfig::default()
        };
        observer.tell(&format!(
            "GraphSAGE, {} layers of {}, {} parameters; {}",
            config.layers,
            config.hidden,
            config.parameters(),
            options.describe(&dataset)
        ));
        let adam = AdamSettings { weight_decay: WEIGHT_DECAY, ..AdamSettings::default() };
        let run = SampledRun { name: "sage", options, dataset: &dataset, self_loops: false };
        run.train(|device| Trainer::on(device, &config, adam, options.run.seed), observer)
    }
}
