"""An embedding of many rows has dense gradients: the optimizer goes through all of its rows for the few of a batch."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.EmbeddingBag(60_000, 32, mode="mean"), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(100):
    rows, y = torch.randint(0, 60_000, (64, 20)), torch.randint(0, 10, (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(rows), y).backward()
    optimizer.step()
