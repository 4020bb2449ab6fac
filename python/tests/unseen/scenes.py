"""Scene descriptors on two ranks with accumulated gradients."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler

ACCUMULATE = 4


def build():
    return nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 20))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(71)
    rank, world = dist.get_rank(), dist.get_world_size()
    data = TensorDataset(torch.randn(8 * 2 * 4 * 80, 512), torch.randint(0, 20, (8 * 2 * 4 * 80,)))
    sampler = DistributedSampler(data, world, rank, shuffle=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y) / ACCUMULATE
            loss.backward()
            if i % ACCUMULATE == ACCUMULATE - 1:
                optimizer.step()
                optimizer.zero_grad()
        if rank == 0:
            print(epoch, float(loss) * ACCUMULATE, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
