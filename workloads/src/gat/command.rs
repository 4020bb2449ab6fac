//! `gnntop train gat`.

use clap::{Parser, ValueEnum};

use super::{GatConfig, SelfLoops, Trainer};
use crate::command::{Observer, RunOptions, Summary, TrainError, at_least_one};
use crate::parallel::RankOptions;
use crate::sampled::{SampledOptions, SampledRun, WEIGHT_DECAY};
use crate::train::AdamSettings;

/// Trains GAT (graph attention network) on sampled neighbourhoods to tell the communities of a large graph.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "gat",
    after_help = "Examples:\n  gnntop run gat\n  gnntop run gat --variant pyg --form subgraph\n  \
                  gnntop train gat --data reddit/ --batch-size 1024 --workers 2\n  \
                  gnntop run gat --ranks 2"
)]
pub struct GatCommand {
    /// Whose network: they drop different things and treat self-loops differently.
    #[arg(long, value_enum, default_value_t)]
    variant: Variant,
    /// Attention heads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    heads: usize,
    /// Width of a head in the layers between.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    hidden: usize,
    #[command(flatten)]
    options: SampledOptions,
}

/// Study 2's two networks of this name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Variant {
    /// PyTorch Geometric's: a loop for every node in every layer, dropout of attention and activations.
    Pyg,
    /// DGL's: loops are sampled like any edge, dropout of features and attention in all layers.
    #[default]
    Dgl,
}

impl GatCommand {
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
        let published = if self.variant == Variant::Pyg { GatConfig::pyg() } else { GatConfig::dgl() };
        let config = GatConfig {
            in_features: dataset.features.width(),
            hidden: self.hidden,
            heads: self.heads,
            classes: dataset.classes,
            layers: options.fanouts.len(),
            kernels: options.kernels,
            plain: options.plain,
            ..published
        };
        observer.tell(&format!(
            "GAT, {} layers of {} heads of {}, {} parameters; {}",
            config.layers,
            config.heads,
            config.hidden,
            config.parameters(),
            options.describe(&dataset)
        ));
        let self_loops = config.self_loops == SelfLoops::AsGiven;
        let adam = AdamSettings { weight_decay: WEIGHT_DECAY, ..AdamSettings::default() };
        let run = SampledRun { name: "gat", options, dataset: &dataset, self_loops };
        run.train(|device| Trainer::on(device, &config, adam, options.run.seed), observer)
    }
}
