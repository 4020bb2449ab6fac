"""Two ranks that send their gradients after each of four micro-batches."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
torch.set_num_threads(1)
model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(40):
    optimizer.zero_grad()
    for _ in range(4):
        model(torch.randn(16, 256)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
