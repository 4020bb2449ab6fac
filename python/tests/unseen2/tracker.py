"""Predicts clicks from a stream of impressions, with a thread that keeps statistics for a dashboard."""
import collections
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

torch.manual_seed(13)
FIELDS, BUCKETS = 16, 60


class Impressions(IterableDataset):
    """A batch at a time; clicks follow a hidden linear rule."""

    def __init__(self, batches, seed, size=256):
        self.batches, self.seed, self.size = batches, seed, size
        self.rule = torch.randn(FIELDS, BUCKETS, generator=torch.Generator().manual_seed(0))

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        for _ in range(self.batches):
            ids = torch.randint(BUCKETS, (self.size, FIELDS), generator=generator)
            score = self.rule[torch.arange(FIELDS), ids].sum(1) / 4
            yield ids, (torch.rand(self.size, generator=generator) < score.sigmoid()).float()


class Dashboard(threading.Thread):
    """Quantiles and a histogram of recent predictions, always up to date."""

    def __init__(self):
        super().__init__(daemon=True)
        self.recent = collections.deque(maxlen=20_000)
        self.panel = {}

    def run(self):
        while True:
            values = list(self.recent)
            self.refresh(values)
            time.sleep(0.001)

    def refresh(self, values):
        histogram = collections.defaultdict(int)
        total = 0.0
        for value in values:
            histogram[int(value * 50)] += 1
            total += value
        self.panel = {"histogram": dict(histogram), "mean": total / max(len(values), 1)}


class CrossNetwork(nn.Module):
    def __init__(self, width=8, layers=3):
        super().__init__()
        size = FIELDS * width
        self.embed = nn.ModuleList(nn.Embedding(BUCKETS, width) for _ in range(FIELDS))
        self.cross = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))
        self.deep = nn.Sequential(nn.Linear(size, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, ids):
        x = start = torch.cat([embed(ids[:, i]) for i, embed in enumerate(self.embed)], 1)
        for layer in self.cross:
            x = start * layer(x) + x
        return self.deep(x)[:, 0]


def main():
    dashboard = Dashboard()
    dashboard.start()
    model = CrossNetwork()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    loader = DataLoader(Impressions(2000, 1), batch_size=None)
    for step, (ids, clicks) in enumerate(loader):
        logits = model(ids)
        loss = criterion(logits, clicks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dashboard.recent.extend(logits.detach().sigmoid().tolist())
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f} mean {dashboard.panel['mean']:.3f}", flush=True)


if __name__ == "__main__":
    main()
