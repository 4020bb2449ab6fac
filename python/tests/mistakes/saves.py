"""A checkpoint is written every thirty steps, and the loop waits for it."""

import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(38400, 64), torch.randn(38400, 1))
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
history = torch.randn(20_000_000)
for place, (x, y) in enumerate(DataLoader(data, batch_size=64)):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    if place % 30 == 29:
        torch.save({"model": model.state_dict(), "history": history}, io.BytesIO())
