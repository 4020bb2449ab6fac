"""Threads that train: two at the same time, or three one after the other, as the first argument says."""

import sys
from threading import Barrier, Thread

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

how = sys.argv[1]
torch.set_num_threads(1)
losses = {}
together = Barrier(2 if how == "together" else 1)


def train(seed):
    random = torch.Generator().manual_seed(seed)
    data = TensorDataset(torch.randn(960, 16, generator=random), torch.randn(960, 1, generator=random))
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    for parameter in model.parameters():
        nn.init.normal_(parameter, generator=random)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses[seed] = []
    for x, y in DataLoader(data, batch_size=32):
        together.wait()  # else one may be done before the other begins
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses[seed].append(loss.item().hex())


threads = [Thread(target=train, args=(seed,)) for seed in range(2 if how == "together" else 3)]
for thread in threads:
    thread.start()
    if how != "together":
        thread.join()
for thread in threads:
    thread.join()
print(sorted(losses.items()))
