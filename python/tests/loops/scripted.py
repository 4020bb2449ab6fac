"""A model that TorchScript has compiled: what is known of its forward passes comes late."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(80, 3), torch.randn(80, 1))
model = torch.jit.script(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(5):
    for x, y in DataLoader(data, batch_size=16):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
print(loss.item().hex())
