"""Lightning module that predicts vitals, with a validation at the end of each epoch."""
import logging
import tempfile
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Vitals(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(12, 96, num_layers=2, batch_first=True)
        self.head = nn.Linear(96, 12)

    def shared(self, batch):
        series, following = batch
        states, _ = self.rnn(series)
        return nn.functional.mse_loss(self.head(states[:, -1]), following)

    def training_step(self, batch, _):
        loss = self.shared(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", self.shared(batch))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-3)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)}


def series(n):
    walk = torch.randn(n, 33, 12).cumsum(1) / 6
    return TensorDataset(walk[:, :32], walk[:, 32])


if __name__ == "__main__":
    lightning.seed_everything(131, verbose=False)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            default_root_dir=folder, max_epochs=7, accelerator="cpu", logger=False, enable_progress_bar=False,
            enable_model_summary=False, gradient_clip_val=1.0,
        )
        trainer.fit(Vitals(), DataLoader(series(32 * 150), 32, shuffle=True), DataLoader(series(32 * 12), 32))
        print(float(trainer.callback_metrics["val_loss"]), flush=True)
