//! GIN against what PyTorch Geometric computes, within the tolerances that come with the vectors.

use crate::reference::case;
use candle_core::Device;
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::{AdamSettings, Learner};
use gnntop_nn::models::gin::{Gin, GinConfig};

#[test]
fn five_steps_of_training_match() {
    let case = case("model_gin");
    for kernels in [KernelFamily::Spmm, KernelFamily::Scatter] {
        let in_features = case.get("x").dim(1).unwrap();
        let config = GinConfig { in_features, hidden: 16, classes: 5, layers: 3, dropout: 0.0, kernels };
        let adam = AdamSettings { weight_decay: 5e-4, ..AdamSettings::default() };
        let trainer = Learner::<Gin>::new(&Device::Cpu, &config, adam, 1).unwrap();
        case.check_training(trainer);
    }
}
