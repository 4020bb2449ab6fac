"""Water levels of harbours, with Lightning."""
import math
import tempfile
import time

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def harbours(count, length=64, ports=16):
    gen = torch.Generator().manual_seed(6)
    phase = torch.rand(count, 1, ports, generator=gen) * 2 * math.pi
    t = torch.arange(length + 1).view(1, -1, 1) / 12.4 * 2 * math.pi
    level = torch.sin(t + phase) + 0.3 * torch.sin(2 * t + 1.7 * phase)
    level = level + 0.05 * torch.randn(level.shape, generator=gen)
    return TensorDataset(level[:, :-1], level[:, 1:])


class TideModel(L.LightningModule):
    def __init__(self, ports=16, width=320):
        super().__init__()
        self.save_hyperparameters()
        self.lift = nn.Linear(ports, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.out = nn.Linear(width, ports)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(64))

    def forward(self, x):
        return self.out(self.body(self.lift(x), mask=self.mask, is_causal=True))

    def training_step(self, batch, _):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", F.mse_loss(self(x), y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def main():
    L.seed_everything(0)
    train = DataLoader(harbours(560), batch_size=4, shuffle=True)
    valid = DataLoader(harbours(32), batch_size=16)
    with tempfile.TemporaryDirectory() as folder:
        keep = ModelCheckpoint(folder, monitor="train_loss", save_top_k=2, save_last=True, every_n_train_steps=8)
        trainer = L.Trainer(max_epochs=2, callbacks=[keep], logger=False, enable_progress_bar=False,
                            enable_model_summary=False, accelerator="cpu")
        began = time.time()
        trainer.fit(TideModel(), train, valid)
        print(f"trained in {time.time() - began:.1f} s, best {keep.best_model_score:.4f}")


if __name__ == "__main__":
    main()
