"""Two ranks by torchrun with gloo, of which rank 1 does more in each forward pass: rank 0 waits for it."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Augmented(nn.Module):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        time.sleep(self.seconds)
        return self.layers(x)


rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo")
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(2560, 64), torch.randn(2560, 1))
loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data, ranks, rank))
model = DistributedDataParallel(Augmented(0.02 if rank == 1 else 0.0))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
dist.destroy_process_group()
