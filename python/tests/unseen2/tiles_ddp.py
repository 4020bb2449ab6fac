"""Land cover of satellite tiles on two ranks: torchrun --nproc-per-node 2 tiles_ddp.py"""
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CLASSES, BANDS, SIZE = 8, 4, 24


def make_tiles(count, seed):
    """Every class has its own mean of the bands and its own grain."""
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(CLASSES, BANDS, generator=torch.Generator().manual_seed(1))
    label = torch.randint(CLASSES, (count,), generator=generator)
    coarse = torch.randn(count, BANDS, SIZE // 4, SIZE // 4, generator=generator)
    grain = nn.functional.interpolate(coarse, size=SIZE) * (label[:, None, None, None] % 3)
    tiles = means[label][..., None, None] * 0.5 + grain + torch.randn(count, BANDS, SIZE, SIZE, generator=generator)
    return TensorDataset(tiles, label)


class Block(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(b), nn.BatchNorm2d(b)
        self.skip = nn.Conv2d(a, b, 1, stride, bias=False)

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.skip(x))


def make_model(width=24):
    return nn.Sequential(
        Block(BANDS, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, CLASSES),
    )


def evaluate(model, loader):
    """Correct ones and all, summed over the ranks."""
    model.eval()
    counts = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            counts += torch.tensor([(model(x).argmax(1) == y).sum().item(), len(y)])
    dist.all_reduce(counts)
    model.train()
    return (counts[0] / counts[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    train, valid = make_tiles(6400, 10), make_tiles(640, 11)
    sampler = DistributedSampler(train, shuffle=True, seed=5)
    loader = DataLoader(train, batch_size=32, sampler=sampler, drop_last=True)
    valid_loader = DataLoader(valid, batch_size=64, sampler=DistributedSampler(valid, shuffle=False))
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    epochs = 4
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    criterion = nn.CrossEntropyLoss()
    folder = tempfile.mkdtemp(prefix="tiles-") if rank == 0 else None
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            if rank == 0 and step % 25 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        accuracy = evaluate(model.module, valid_loader)
        if rank == 0:
            print(f"epoch {epoch} accuracy {accuracy:.3f}", flush=True)
            if epoch % 2 == 0:
                torch.save(model.module.state_dict(), os.path.join(folder, f"epoch-{epoch}.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
