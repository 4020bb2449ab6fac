"""Self-supervised embeddings of wrist motion, contrasted with embeddings seen before."""
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def recordings(count=4096, channels=6, length=128):
    gen = torch.Generator().manual_seed(2)
    kind = torch.randint(0, 8, (count, 1, 1), generator=gen)
    t = torch.linspace(0, 6.28, length)
    phase = torch.rand(count, channels, 1, generator=gen) * 6.28
    return torch.sin((kind + 1) * t + phase) + 0.2 * torch.randn(count, channels, length, generator=gen)


def jitter(x):
    scale = 0.8 + 0.4 * torch.rand(len(x), x.shape[1], 1)
    return x * scale + 0.05 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, channels=6, width=48, out=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(channels, width, 7, 2, 3), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, 2 * width, 5, 2, 2), nn.BatchNorm1d(2 * width), nn.ReLU(),
            nn.Conv1d(2 * width, 2 * width, 3, 2, 1), nn.BatchNorm1d(2 * width), nn.ReLU())
        self.project = nn.Linear(2 * width, out)

    def forward(self, x):
        return F.normalize(self.project(self.net(x).mean(2)), dim=1)


class Contrast(nn.Module):
    def __init__(self, encoder, temperature=0.1):
        super().__init__()
        self.encoder = encoder
        self.temperature = temperature
        self.negatives = torch.zeros(0, 64)

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        near = (za * zb).sum(1, keepdim=True)
        batch = za @ zb.T - 2 * torch.eye(len(za))
        far = za @ self.negatives.T
        logits = torch.cat([near, batch, far], 1) / self.temperature
        self.negatives = torch.cat([self.negatives, zb.detach()])
        return F.cross_entropy(logits, torch.zeros(len(za), dtype=torch.long))


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(recordings()), batch_size=128, shuffle=True, drop_last=True)
    model = Contrast(Encoder())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    began = time.time()
    for epoch in range(14):
        total = 0.0
        for (x,) in loader:
            loss = model(jitter(x), jitter(x))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {float(total) / len(loader):.3f}")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
