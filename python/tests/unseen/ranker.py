"""Click prediction with a factorisation machine over hashed fields."""
import json
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FIELDS, BUCKETS, DIM = 24, 5000, 16


class FM(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.EmbeddingBag(BUCKETS, 1, mode="sum")
        self.factors = nn.Embedding(BUCKETS, DIM)
        nn.init.normal_(self.factors.weight, std=0.05)
        self.deep = nn.Sequential(nn.Linear(FIELDS * DIM, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, ids):
        e = self.factors(ids)
        pairs = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1)
        return self.linear(ids)[:, 0] + pairs + self.deep(e.flatten(1))[:, 0]


class Journal:
    def __init__(self, path):
        self.file = open(path, "w")

    def write(self, record):
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def main():
    torch.manual_seed(13)
    torch.set_num_threads(1)
    n = 256 * 300
    ids = torch.randint(0, BUCKETS, (n, FIELDS))
    clicks = (torch.rand(n) < 0.1).float()
    loader = DataLoader(TensorDataset(ids, clicks), batch_sampler=None, batch_size=256, shuffle=False)
    model = FM()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    journal = Journal(os.path.join(tempfile.mkdtemp(), "metrics.jsonl"))
    step = 0
    for epoch in range(5):
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            journal.write({"step": step, "loss": loss.item()})
            for name, p in model.named_parameters():
                journal.write({"step": step, "name": name, "norm": p.detach().norm().item()})
        print("epoch", epoch, loss.item(), flush=True)


if __name__ == "__main__":
    main()
