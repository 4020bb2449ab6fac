//! GIN against what PyTorch Geometric computes, within the tolerances that come with the vectors.

use crate::reference::case;
use gnntop_workloads::kernels::KernelFamily;
use gnntop_workloads::models::gin::{Gin, GinConfig};
use gnntop_workloads::train::{AdamSettings, NodeTrainer};

#[test]
fn five_steps_of_training_match() {
    let case = case("model_gin");
    for kernels in [KernelFamily::Spmm, KernelFamily::Scatter] {
        let in_features = case.get("x").dim(1).unwrap();
        let config = GinConfig { in_features, hidden: 16, classes: 5, layers: 3, dropout: 0.0, kernels };
        let adam = AdamSettings { weight_decay: 5e-4, ..AdamSettings::default() };
        let trainer = NodeTrainer::<Gin>::new(&config, adam, 1).unwrap();
        case.check_training(trainer);
    }
}
