"""A few pictures are a thousand times as large as the others, and a worker makes them small. Repaired: all have one
size."""

import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

repaired = "repaired" in sys.argv


class Pictures(Dataset):
    def __len__(self):
        return 8 * 240

    def __getitem__(self, index):
        side = 5000 if index % 241 == 240 and not repaired else 160
        picture = torch.full((1, 3, side, side), index / 2000)
        return functional.interpolate(picture, size=(64, 64), mode="bilinear", antialias=True)[0], index % 10


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(
    nn.Conv2d(3, 64, 5, stride=2), nn.ReLU(), nn.Conv2d(64, 64, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)
)
model(torch.zeros(1, 3, 64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
for x, y in DataLoader(Pictures(), batch_size=8, num_workers=1, prefetch_factor=2):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
