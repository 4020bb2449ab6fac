"""DistributedDataParallel with gloo: started by torchrun, or alone with the argument `spawn` for two ranks by mp.spawn."""

import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(rank, ranks):
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(640, 16), torch.randn(640, 1))
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data, ranks, rank))
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    if rank == 0:
        print("\n".join(losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1:] == ["spawn"]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
        multiprocessing.spawn(train, args=(2,), nprocs=2)
    else:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
