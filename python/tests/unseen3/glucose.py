"""Forecasts blood glucose from a continuous monitor, with wavelet features of each window."""
import functools
import math
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

WINDOW = 1536
SCALES = 24


def monitor(days=60):
    t = torch.arange(days * 1440, dtype=torch.float32)
    gen = torch.Generator().manual_seed(8)
    meals = sum(25 * torch.sin(2 * math.pi * (t / 1440 * k + 0.1 * k)).clamp(min=0) for k in (1, 3, 4))
    drift = torch.cumsum(torch.randn(len(t), generator=gen) * 0.05, 0)
    return (95 + meals + drift) / 100


def kernels():
    bank = torch.zeros(SCALES, 1, 257)
    for i in range(SCALES):
        scale = 2.0 * 1.17 ** i
        x = (torch.arange(257) - 128) / scale
        bank[i, 0] = torch.exp(-x ** 2 / 2) * torch.cos(5 * x) / math.sqrt(scale)
    return bank


BANK = kernels()


@functools.lru_cache(maxsize=None)
def scalogram(window):
    rows = F.conv1d(window.view(1, 1, -1), BANK, padding=128)[0]
    return torch.log1p(rows.abs())[:, ::2].contiguous()


class Windows(Dataset):
    def __init__(self, series, count, horizon=30):
        self.series = series
        self.horizon = horizon
        self.starts = torch.linspace(0, len(series) - WINDOW - horizon - 1, count).long().tolist()

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        start = self.starts[i]
        window = self.series[start:start + WINDOW]
        ahead = self.series[start + WINDOW:start + WINDOW + self.horizon]
        return scalogram(window), ahead - window[-1]


class Forecaster(nn.Module):
    def __init__(self, hidden=72, horizon=30):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(SCALES, hidden, 5, 2, 2), nn.GELU(),
                                  nn.Conv1d(hidden, hidden, 5, 2, 2), nn.GELU(),
                                  nn.Conv1d(hidden, hidden, 5, 2, 2), nn.GELU(),
                                  nn.Conv1d(hidden, hidden, 5, 2, 2), nn.GELU())
        self.out = nn.Linear(hidden * 48, horizon)

    def forward(self, x):
        return self.out(self.conv(x).flatten(1))


def fit(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        losses = []
        for features, ahead in loader:
            loss = F.smooth_l1_loss(model(features), ahead)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")


def main():
    torch.manual_seed(0)
    loader = DataLoader(Windows(monitor(), 1024), batch_size=32, shuffle=True)
    began = time.time()
    fit(Forecaster(), loader, epochs=11)
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
