"""One part of making a batch is slow, by the first argument; the second is the number of workers that make them."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

PART, WORKERS = sys.argv[1], int(sys.argv[2])


class Samples(Dataset):
    def __len__(self):
        return 1280

    def __getitem__(self, index):
        if PART == "items":
            decode()
        return torch.full((64,), index / 1280), torch.zeros(1)


def decode():
    time.sleep(0.005)


def collate(samples):
    if PART == "collate":
        time.sleep(0.08)
    return default_collate(samples)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(Samples(), batch_size=16, num_workers=WORKERS, collate_fn=collate):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
