"""A compiled model is compiled again for each new size of a batch."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
compiled = torch.compile(model, backend="aot_eager", dynamic=False)
optimizer = torch.optim.Adam(model.parameters())
for step in range(360):
    x = torch.randn(64 + step // 60, 64)
    optimizer.zero_grad()
    compiled(x).square().mean().backward()
    optimizer.step()
