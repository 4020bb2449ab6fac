"""Batches are put together slowly, by the training thread."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate


def collate(samples):
    time.sleep(0.01)
    return default_collate(samples)


torch.manual_seed(0)
torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(19200, 64), torch.randn(19200, 1)), batch_size=64, collate_fn=collate)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
