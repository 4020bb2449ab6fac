"""One worker for a loop that would need more."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 4800

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.full((64,), index / 4800), torch.zeros(1)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(Slow(), batch_size=16, num_workers=1):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
