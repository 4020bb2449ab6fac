"""Gradients that have become denormal numbers, as those of very deep networks do."""

import time

import torch

torch.manual_seed(0)
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs = torch.randn(64, 256)
end = time.monotonic() + 6
while time.monotonic() < end:
    optimizer.zero_grad()
    (model(inputs).mean() * 1e-36).backward()
    optimizer.step()
