//! The study's ways to train the same network, and the trade-off of each.

use candle_core::DType;

/// A row of study 1's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every node in every step, the adjacency normalised again each time.
    Full,
    /// Mini-batches of seeds with sampled neighbours.
    Sampled,
    /// Sampled, with products and sums in bf16.
    SampledBf16,
    /// Sampled, with products and sums in f16 and a scaled loss.
    SampledFp16,
    /// Every node in every step, with all constant work done once.
    #[default]
    Compiled,
}

impl Mode {
    /// All of them, in the order of the study's table.
    pub const ALL: [Self; 5] = [Self::Full, Self::Sampled, Self::SampledBf16, Self::SampledFp16, Self::Compiled];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Sampled => "sampled",
            Self::SampledBf16 => "sampled-bf16",
            Self::SampledFp16 => "sampled-fp16",
            Self::Compiled => "compiled",
        }
    }

    /// Its trade-off.
    #[must_use]
    pub fn trade(self) -> &'static str {
        match self {
            Self::Full => "nothing traded: the whole graph in every step, normalised again as PyTorch Geometric does",
            Self::Sampled => {
                "less memory per step, for the sample's degrees instead of the graph's, and two steps per epoch"
            }
            Self::SampledBf16 => "half the activation memory for 8 bits of mantissa; no loss scaling needed",
            Self::SampledFp16 => {
                "half the activation memory for 11 bits of mantissa, a small range, and steps lost to overflow"
            }
            Self::Compiled => "memory for keeping the normalised adjacency; exact",
        }
    }

    /// Whether it trains on samples.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        matches!(self, Self::Sampled | Self::SampledBf16 | Self::SampledFp16)
    }

    /// Number type of its products and sums.
    #[must_use]
    pub fn precision(self) -> DType {
        match self {
            Self::SampledBf16 => DType::BF16,
            Self::SampledFp16 => DType::F16,
            _ => DType::F32,
        }
    }
}
