"""A model that asks for something in its forward pass: it mostly waits."""

import time

import torch
from torch import nn


class Asks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        time.sleep(0.01)
        return self.layers(x)


torch.manual_seed(0)
torch.set_num_threads(1)
model = Asks()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(300):
    optimizer.zero_grad()
    model(torch.randn(64, 64)).square().mean().backward()
    optimizer.step()
