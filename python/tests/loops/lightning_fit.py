"""Lightning's Trainer, with validation and gradients of two batches accumulated."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def training_step(self, batch, index):
        loss = nn.functional.mse_loss(self.model(batch[0]), batch[1])
        print(loss.item().hex())
        return loss

    def validation_step(self, batch, index):
        print("test", nn.functional.mse_loss(self.model(batch[0]), batch[1]).item().hex())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(320, 16), torch.randn(320, 1))
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu",
    accumulate_grad_batches=2,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Module(), DataLoader(data, batch_size=16, shuffle=True), DataLoader(data, batch_size=64))
