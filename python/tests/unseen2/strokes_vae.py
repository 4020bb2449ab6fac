"""A variational autoencoder of hand-drawn strokes, in Lightning."""
import tempfile

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIZE = 40


def make_strokes(count, seed):
    generator = torch.Generator().manual_seed(seed)
    angle = torch.rand(count, 1, generator=generator) * 3.14
    offset = torch.rand(count, 1, generator=generator) * 0.6 - 0.3
    y, x = torch.meshgrid(torch.linspace(-1, 1, SIZE), torch.linspace(-1, 1, SIZE), indexing="ij")
    distance = x.flatten() * angle.cos() + y.flatten() * angle.sin() - offset
    images = torch.exp(-(distance**2) * 80)
    labels = (angle[:, 0] > 1.57).long()
    return TensorDataset(images, labels)


class VAE(L.LightningModule):
    def __init__(self, hidden=320, latent=16):
        super().__init__()
        pixels = SIZE * SIZE
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, pixels))
        self.outputs = []

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(latent), mean, log_variance

    def losses(self, x):
        logits, mean, log_variance = self(x)
        rebuilt = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / len(x)
        return logits, rebuilt, divergence

    def training_step(self, batch, _):
        x, _ = batch
        logits, rebuilt, divergence = self.losses(x)
        self.outputs.append({"image": logits.sigmoid(), "rebuilt": rebuilt, "divergence": divergence})
        self.log("loss", rebuilt + divergence, prog_bar=False)
        return rebuilt + divergence

    def on_train_epoch_end(self):
        mean = torch.stack([out["rebuilt"].detach() for out in self.outputs[-50:]]).mean()
        print(f"epoch {self.current_epoch} rebuilt {mean:.2f}", flush=True)

    def validation_step(self, batch, _):
        _, rebuilt, divergence = self.losses(batch[0])
        self.log("val_loss", rebuilt + divergence)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    L.seed_everything(4)
    folder = tempfile.mkdtemp(prefix="strokes-")
    train = DataLoader(make_strokes(12800, 1), batch_size=128, shuffle=True)
    valid = DataLoader(make_strokes(1280, 2), batch_size=256)
    trainer = L.Trainer(
        max_epochs=9, accelerator="cpu", default_root_dir=folder, logger=CSVLogger(folder),
        callbacks=[ModelCheckpoint(folder, every_n_epochs=5)], enable_progress_bar=False, log_every_n_steps=25,
    )
    trainer.fit(VAE(), train, valid)
