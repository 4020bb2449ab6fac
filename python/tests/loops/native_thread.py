"""Trains on a thread of OpenMP, for which Python keeps no state between one call and the next."""

import ctypes
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batches = iter(DataLoader(TensorDataset(torch.randn(320, 16), torch.randn(320, 1)), batch_size=16))
losses = []


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def step(_):
    if threading.get_ident() == threading.main_thread().ident:
        return
    x, y = next(batches)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())


with open("/proc/self/maps") as maps:
    path = next(line.split()[-1] for line in maps if "libgomp" in line)
for _ in range(20):
    ctypes.CDLL(path).GOMP_parallel(step, None, 2, 0)
print(losses)
