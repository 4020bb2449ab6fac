"""Classifies drawn shapes with a small residual network, in Lightning."""
import tempfile

import lightning as L
import torch
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

KINDS, SIZE = 6, 32


def draw(count, seed):
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(KINDS, (count,), generator=generator)
    center = torch.rand(count, 2, 1, 1, generator=generator) * 12 + 10
    radius = torch.rand(count, 1, 1, generator=generator) * 5 + 4
    grid = torch.stack(torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")).float()
    y, x = (grid[None] - center).unbind(1)
    disc, square = (x**2 + y**2).sqrt(), torch.maximum(x.abs(), y.abs())
    diamond, cross = x.abs() + y.abs(), torch.minimum(x.abs(), y.abs()) + 0.3 * square
    ring, bar = (disc - radius * 0.7).abs() * 2, torch.maximum(x.abs() * 0.5, y.abs() * 2)
    distance = torch.stack([disc, square, diamond, cross, ring, bar], 1)[torch.arange(count), kind]
    image = (distance < radius).float() + 0.4 * torch.randn(count, SIZE, SIZE, generator=generator)
    return TensorDataset(image[:, None], kind)


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(),
            nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b),
        )
        self.skip = nn.Conv2d(a, b, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


class Shapes(L.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(
            Residual(1, width, 1), Residual(width, 2 * width, 2), Residual(2 * width, 4 * width, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, KINDS),
        )
        self.accuracy = MulticlassAccuracy(KINDS)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y, label_smoothing=0.05)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self.net(x)
        self.log("val_loss", nn.functional.cross_entropy(logits, y))
        self.accuracy(logits, y)
        self.log("val_accuracy", self.accuracy)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=2e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, self.trainer.estimated_stepping_batches)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


if __name__ == "__main__":
    L.seed_everything(12)
    folder = tempfile.mkdtemp(prefix="shapes-")
    train = DataLoader(draw(6400, 1), batch_size=64, shuffle=True, drop_last=True)
    valid = DataLoader(draw(640, 2), batch_size=128)
    trainer = L.Trainer(
        max_epochs=4, accelerator="cpu", logger=CSVLogger(folder), enable_progress_bar=False, log_every_n_steps=20,
        callbacks=[ModelCheckpoint(folder, monitor="val_loss"), LearningRateMonitor("step")],
    )
    trainer.fit(Shapes(), train, valid)
    print({name: round(float(value), 4) for name, value in trainer.callback_metrics.items()})
