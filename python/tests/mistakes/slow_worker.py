"""One of two workers reads what takes far longer, and batches come in order."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Uneven(Dataset):
    def __len__(self):
        return 3200

    def __getitem__(self, index):
        time.sleep(0.003 if get_worker_info().id else 0.001)
        return torch.full((64,), index / 3200), torch.zeros(1)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(Uneven(), batch_size=16, num_workers=2):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
