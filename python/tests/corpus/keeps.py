"""What is kept grows by as much in each step. `states`: what a hook was given, for a plot at the end; `workers`: a
worker keeps each sample that it made. Repaired: numbers alone; nothing."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

what, repaired = sys.argv[1], "repaired" in sys.argv
MADE = {}


class Made(IterableDataset):
    def __iter__(self):
        for place in range(32 * 1500):
            sample = torch.rand(3, 40, 40)
            if not repaired:
                MADE[place] = sample
            yield sample


def train_with(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


torch.manual_seed(0)
torch.set_num_threads(1)
if what == "states":
    history = []
    model = nn.Sequential(nn.Linear(128, 640), nn.ELU(), nn.Linear(640, 640), nn.ELU(), nn.Linear(640, 64))
    optimizer = torch.optim.Adamax(model.parameters(), lr=1e-4)

    def keep(_module, _given, out):
        history.append(float(out.mean()) if repaired else out)

    model[1].register_forward_hook(keep)
    model[3].register_forward_hook(keep)
    for _ in range(420):
        train_with(model, optimizer, torch.randn(192, 128))
else:
    model = nn.Sequential(nn.Conv2d(3, 20, 5, 2), nn.ReLU(), nn.Conv2d(20, 8, 3), nn.Flatten(), nn.LazyLinear(4))
    model(torch.zeros(1, 3, 40, 40))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x in DataLoader(Made(), batch_size=32, num_workers=1):
        train_with(model, optimizer, x.repeat(4, 1, 1, 1))
