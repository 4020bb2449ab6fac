"""Samples in files. `small`: thousands of small ones; `again`: the system's cache does not hold them, so that every
epoch reads from the disk; `cold`: only the first epoch does. Repaired: one file, in memory after the first epoch."""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

how, repaired = sys.argv[1], "repaired" in sys.argv
FILES, FLOATS, EPOCHS = {"small": (6400, 2048, 2), "again": (160, 400_000, 4), "cold": (200, 800_000, 6)}[how]


def forget(path):
    """As if the data were larger than memory: the system drops what it keeps of this file."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Files(Dataset):
    def __init__(self, folder):
        self.paths = [Path(folder) / f"{k:05}.bin" for k in range(FILES)]
        self.kept = {}
        for k, path in enumerate(self.paths):
            np.full(FLOATS, k / FILES, np.float32).tofile(path)
        os.sync()
        for path in self.paths:
            forget(path)

    def __len__(self):
        return FILES

    def __getitem__(self, place):
        if place not in self.kept:
            row = torch.from_numpy(np.fromfile(self.paths[place], np.float32))[:2048].clone()
            if repaired:
                self.kept[place] = row
            elif how != "cold":
                forget(self.paths[place])
            return row
        return self.kept[place]


torch.manual_seed(0)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory(dir=".") as folder:
    data = Files(folder)
    if repaired:
        [data[k] for k in range(FILES)]
    width = 10 if how == "small" else 56
    convolutions = [nn.Unflatten(1, (2, 1024)), nn.Conv1d(2, width, 9), nn.ReLU(), nn.Conv1d(width, width, 9)]
    model = nn.Sequential(*convolutions, nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
    model(torch.zeros(1, 2048))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(EPOCHS):
        for x in DataLoader(data, batch_size=64 if how == "small" else 4):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
