"""Forecasts the load of a power grid a day ahead: dilated convolutions, quantile loss, a loader with a worker."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def make_load(hours, regions=10, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)[:, None]
    daily = np.sin(2 * np.pi * (t / 24 + rng.random(regions)))
    weekly = 0.5 * np.sin(2 * np.pi * (t / 168 + rng.random(regions)))
    weather = np.cumsum(rng.normal(0, 0.02, (hours, regions)), 0)
    return (daily + weekly + weather - weather.mean(0) + rng.normal(0, 0.1, (hours, regions))).astype(np.float32)


class Windows(Dataset):
    def __init__(self, load, past=168, ahead=24):
        self.load, self.past, self.ahead = torch.from_numpy(load), past, ahead

    def __len__(self):
        return len(self.load) - self.past - self.ahead

    def __getitem__(self, i):
        now = i + self.past
        return self.load[i:now].T, self.load[now : now + self.ahead].T


class TCN(nn.Module):
    def __init__(self, regions=10, width=48, ahead=24):
        super().__init__()
        self.start = nn.Conv1d(regions, width, 1)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, dilation=2**i, padding=2**i) for i in range(6))
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in range(6))
        self.head = nn.Linear(width, regions * ahead * 3)
        self.shape = (regions, ahead, 3)

    def forward(self, x):
        x = self.start(x)
        for layer, norm in zip(self.layers, self.norms):
            x = x + torch.relu(layer(norm(x)))
        return self.head(x[:, :, -24:].mean(-1)).view(-1, *self.shape)


def quantile_loss(predicted, actual):
    error = actual[..., None] - predicted
    return torch.maximum(QUANTILES * error, (QUANTILES - 1) * error).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    load = make_load(9000)
    train = DataLoader(Windows(load[:7600]), args.batch, shuffle=True, drop_last=True,
                       num_workers=args.workers, persistent_workers=args.workers > 0)
    valid = DataLoader(Windows(load[7600:8600]), 256)
    model = TCN()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    path = os.path.join(tempfile.mkdtemp(prefix="power-"), "best.pt")
    best = float("inf")
    for epoch in range(args.epochs):
        model.train()
        for step, (x, y) in enumerate(train):
            loss = quantile_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 30 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        schedule.step()
        model.eval()
        with torch.no_grad():
            error = sum(quantile_loss(model(x), y).item() * len(x) for x, y in valid) / len(valid.dataset)
        print(f"epoch {epoch} validation {error:.4f}", flush=True)
        if error < best:
            best = error
            torch.save(model.state_dict(), path)


if __name__ == "__main__":
    main()
