//! `gnntop train gat`.

use clap::{Parser, ValueEnum};

use super::sampled::SampledOptions;
use super::training_command::TrainingCommand;
use crate::launch::{RunOptions, at_least_one};
use crate::train::{Observer, Summary, TrainError};
use gnntop_nn::models::gat::{Gat, GatConfig, SelfLoops};

/// Trains GAT (graph attention network) on sampled neighbourhoods to predict the communities of a large graph.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "gat",
    after_help = "Examples:\n  gnntop run gat\n  gnntop run gat --variant pyg --form subgraph\n  \
                  gnntop train gat --data reddit/ --batch-size 1024 --workers 2\n  \
                  gnntop run gat --ranks 2"
)]
pub(super) struct GatCommand {
    /// Which library's network: they differ in dropout and self-loops.
    #[arg(long, value_enum, default_value_t)]
    variant: Variant,
    /// Attention heads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    heads: usize,
    /// Width of a head in the hidden layers.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    hidden: usize,
    #[command(flatten)]
    options: SampledOptions,
}

/// Study 2's two networks of this name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Variant {
    /// PyTorch Geometric's: a self-loop for every node in every layer, dropout of attention and activations.
    Pyg,
    /// DGL's: self-loops are sampled like other edges, dropout of features and attention in all layers.
    #[default]
    Dgl,
}

impl TrainingCommand for GatCommand {
    fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options.run
    }

    fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        Ok(self.options.ranks.processes_to_launch()?)
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (options, dataset) = (&self.options, self.options.dataset(observer)?);
        let published = if self.variant == Variant::Pyg { GatConfig::pyg() } else { GatConfig::dgl() };
        let config = GatConfig {
            in_features: dataset.features.width(),
            hidden: self.hidden,
            heads: self.heads,
            classes: dataset.classes,
            layers: options.fanouts.len(),
            kernels: options.kernels.into(),
            plain: options.plain,
            ..published
        };
        let GatConfig { layers, heads, hidden, self_loops, .. } = config;
        let header = format!("GAT, {layers} layers of {heads} heads of {hidden}, {} parameters", config.parameters());
        let adds_loops = self_loops == SelfLoops::AsGiven;
        options.train::<Gat>("gat", &header, &dataset, (&config, adds_loops), observer)
    }
}
