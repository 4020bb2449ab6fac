"""Too many for the cores. `threads`: of torch, in a small U-Net; `workers`: loader workers that compute. Repaired: as
many as there are cores. `plain` takes the number of threads from the environment."""

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

what, repaired = sys.argv[1], "repaired" in sys.argv


class Noisy(Dataset):
    """Pictures that are made blurred by a large kernel."""

    def __len__(self):
        return 16 * {"plain": 400, "workers": 160, "threads": 400 if repaired else 40}[what]

    def __getitem__(self, index):
        picture = torch.full((1, 1, 96, 96), index / 3000)
        if what == "workers":
            for _ in range(1 if repaired else 30):
                picture = nn.functional.conv2d(picture, torch.ones(1, 1, 7, 7) / 49, padding=3)
        return picture[0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.mid = nn.Conv2d(1, 12, 3, 2, 1), nn.Conv2d(12, 12, 3, 1, 1)
        self.up = nn.ConvTranspose2d(12, 1, 2, 2)

    def forward(self, x):
        return self.up(self.mid(self.down(x).relu()).relu())


torch.manual_seed(0)
if what == "threads":
    torch.set_num_threads(len(os.sched_getaffinity(0)) if repaired else 12)
elif what == "workers":
    torch.set_num_threads(1)
workers = (1 if repaired else 6) if what == "workers" else 0
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x in DataLoader(Noisy(), batch_size=16, num_workers=workers):
    optimizer.zero_grad()
    (model(x) - x).square().mean().backward()
    optimizer.step()
