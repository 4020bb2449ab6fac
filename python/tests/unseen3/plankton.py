"""Plankton images sorted into kinds, with Lightning."""
import time

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KINDS = 7


def images(count, seed, size=40):
    gen = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, KINDS, (count,), generator=gen)
    grid = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    angle = torch.atan2(y, x)[None] + 6.28 * torch.rand(count, 1, 1, generator=gen)
    edge = 0.55 + 0.25 * torch.cos((kind + 1).view(-1, 1, 1) * angle)
    body = torch.sigmoid(20 * (edge - (x * x + y * y).sqrt()))
    noisy = body + 0.2 * torch.randn(body.shape, generator=gen)
    return TensorDataset(noisy.unsqueeze(1), kind)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
                                 nn.ReLU(), nn.Conv2d(width, width, 3, padding=1, bias=False),
                                 nn.BatchNorm2d(width))

    def forward(self, x):
        return F.relu(x + self.net(x))


class Plankton(L.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 5, 2, 2), nn.ReLU(), Residual(width), nn.MaxPool2d(2), Residual(width),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(), Residual(2 * width), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(2 * width, KINDS))

    def training_step(self, batch, _):
        x, kind = batch
        loss = F.cross_entropy(self.net(x), kind)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, kind = batch
        scores = self.net(x)
        self.log_dict({"val_loss": F.cross_entropy(scores, kind),
                       "val_accuracy": (scores.argmax(1) == kind).float().mean()})

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7)]


def main():
    L.seed_everything(0)
    train = DataLoader(images(4096, 1), batch_size=64, shuffle=True, drop_last=True)
    valid = DataLoader(images(512, 2), batch_size=128)
    trainer = L.Trainer(max_epochs=7, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        callbacks=[EarlyStopping("val_loss", patience=3)])
    began = time.time()
    trainer.fit(Plankton(), train, valid)
    print(f"trained in {time.time() - began:.1f} s, {trainer.callback_metrics['val_accuracy']:.3f} right")


if __name__ == "__main__":
    main()
