//! `gnntop train gat`, `gin` and `sage`: the options of each model, and what it is made of.

use clap::{Args, ValueEnum};

use super::choices::{PRECISIONS, one_of};
use super::sampled::{SampledModel, SampledOptions};
use crate::launch::at_least_one;
use gnntop_data::nodes::NodeDataset;
use gnntop_nn::kernels::MatmulPrecision;
use gnntop_nn::models::gat::{Gat, GatConfig, SelfLoops};
use gnntop_nn::models::gin::{Gin, GinConfig};
use gnntop_nn::models::sage::{Sage, SageConfig};

#[derive(Clone, Debug, Args)]
pub(super) struct GatOptions {
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
    products: ProductOptions,
}

/// The option of the models with a fused form.
#[derive(Clone, Debug, Args)]
struct ProductOptions {
    /// What products with weights multiply.
    #[arg(long, default_value = "f32", value_parser = one_of(&PRECISIONS))]
    matmul_precision: MatmulPrecision,
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

impl SampledModel for GatOptions {
    type Model = Gat;

    const NAME: &'static str = "gat";
    const ABOUT: &'static str =
        "Trains GAT (graph attention network) on sampled neighbourhoods to predict the communities of a large graph";
    const EXAMPLES: &'static str = "Examples:\n  gnntop run gat\n  gnntop run gat --variant pyg --form subgraph\n  \
                                    gnntop train gat --data reddit/ --batch-size 1024 --workers 2\n  \
                                    gnntop run gat --ranks 2";

    fn config(&self, options: &SampledOptions, dataset: &NodeDataset) -> GatConfig {
        let published = if self.variant == Variant::Pyg { GatConfig::pyg() } else { GatConfig::dgl() };
        GatConfig {
            in_features: dataset.features.width(),
            hidden: self.hidden,
            heads: self.heads,
            classes: dataset.classes,
            layers: options.fanouts.len(),
            kernels: options.kernels,
            plain: options.plain,
            matmul_precision: self.products.matmul_precision,
            ..published
        }
    }

    fn describe(config: &GatConfig) -> String {
        let GatConfig { layers, heads, hidden, .. } = config;
        format!("GAT, {layers} layers of {heads} heads of {hidden}, {} parameters", config.parameters())
    }

    fn samples_loops(config: &GatConfig) -> bool {
        config.self_loops == SelfLoops::AsGiven
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct GinOptions {
    /// Width of the hidden layers, and inside every layer's MLP.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    hidden: usize,
}

impl SampledModel for GinOptions {
    type Model = Gin;

    const NAME: &'static str = "gin";
    const ABOUT: &'static str =
        "Trains GIN (graph isomorphism network) on sampled neighbourhoods to predict the communities of a large graph";
    const EXAMPLES: &'static str = "Examples:\n  gnntop run gin\n  gnntop run gin --hidden 64 --form subgraph\n  \
                                    gnntop train gin --data reddit/ --batch-size 1024 --workers 2\n  \
                                    gnntop run gin --ranks 2";

    fn config(&self, options: &SampledOptions, dataset: &NodeDataset) -> GinConfig {
        GinConfig {
            in_features: dataset.features.width(),
            hidden: self.hidden,
            classes: dataset.classes,
            layers: options.fanouts.len(),
            dropout: 0.5,
            kernels: options.kernels,
        }
    }

    fn describe(config: &GinConfig) -> String {
        let GinConfig { layers, hidden, .. } = config;
        format!("GIN, {layers} layers of {hidden}, {} parameters", config.parameters())
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct SageOptions {
    /// Width of the hidden layers.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    hidden: usize,
    #[command(flatten)]
    products: ProductOptions,
}

impl SampledModel for SageOptions {
    type Model = Sage;

    const NAME: &'static str = "sage";
    const ABOUT: &'static str =
        "Trains GraphSAGE on sampled neighbourhoods to predict the communities of a large graph";
    const EXAMPLES: &'static str = "Examples:\n  gnntop run sage\n  gnntop run sage --form subgraph --kernels scatter\n  \
                                    gnntop train sage --data reddit/ --batch-size 1024 --workers 2\n  \
                                    gnntop run sage --ranks 2";

    fn config(&self, options: &SampledOptions, dataset: &NodeDataset) -> SageConfig {
        SageConfig {
            in_features: dataset.features.width(),
            hidden: self.hidden,
            classes: dataset.classes,
            layers: options.fanouts.len(),
            kernels: options.kernels,
            plain: options.plain,
            matmul_precision: self.products.matmul_precision,
            ..SageConfig::default()
        }
    }

    fn describe(config: &SageConfig) -> String {
        let SageConfig { layers, hidden, .. } = config;
        format!("GraphSAGE, {layers} layers of {hidden}, {} parameters", config.parameters())
    }
}
