"""Anomaly detection was left on after the hunt for a NaN."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
torch.autograd.set_detect_anomaly(True)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(100):
    x, y = torch.randn(256, 32), torch.randint(0, 4, (256,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
