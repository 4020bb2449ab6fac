"""A process of multiprocessing's trains, begun as the first argument says."""

import multiprocessing
import sys

import torch
from torch import nn


def train():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
    print(loss.item().hex(), flush=True)


if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=train)
    process.start()
    process.join()
    print(process.exitcode)
