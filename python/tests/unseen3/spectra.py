"""Mineral composition from Raman spectra."""
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, count=3000, minerals=10, bins=768, seed=11):
        rng = np.random.default_rng(seed)
        axis = np.linspace(0, 1, bins)
        lines = rng.uniform(0.05, 0.95, (minerals, 6))
        width = rng.uniform(0.003, 0.02, (minerals, 6))
        height = rng.uniform(0.2, 1.0, (minerals, 6))
        shape = np.exp(-((axis[None, None] - lines[..., None]) / width[..., None]) ** 2)
        pure = (height[..., None] * shape).sum(1)
        self.shares = rng.dirichlet(np.full(minerals, 0.5), count)
        glow = rng.uniform(0, 0.5, (count, 1)) * np.exp(-3 * axis)
        self.curves = self.shares @ pure + glow + rng.normal(0, 0.02, (count, bins))
        self.curves = (self.curves - self.curves.mean()) / self.curves.std()

    def __len__(self):
        return len(self.curves)

    def __getitem__(self, i):
        return self.curves[i][None], self.shares[i]


class Block(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 5, padding=2 * dilation, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return x + self.mix(F.relu(self.norm(self.conv(x))))


class Unmixer(nn.Module):
    def __init__(self, width=48, minerals=10):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 9, stride=4, padding=4)
        self.blocks = nn.Sequential(*[Block(width, 2 ** (i % 3)) for i in range(5)])
        self.head = nn.Linear(width * 4, minerals)

    def forward(self, x):
        h = F.adaptive_avg_pool1d(self.blocks(self.stem(x)), 4)
        return F.log_softmax(self.head(h.flatten(1)), 1)


def fit(model, loader, epochs=4):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * len(loader))
    model.train()
    for epoch in range(epochs):
        running = 0.0
        for curve, share in loader:
            loss = F.kl_div(model(curve), share, reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            running += loss.detach()
        print(f"epoch {epoch}: divergence {float(running) / len(loader):.4f}")


def main():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    loader = DataLoader(Spectra(), batch_size=64, shuffle=True, drop_last=True)
    model = Unmixer()
    began = time.time()
    fit(model, loader)
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
