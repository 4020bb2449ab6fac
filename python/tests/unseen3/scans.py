"""Outlines of nodules in synthetic scans with a small U-Net."""
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def scans(count, size=64, seed=0):
    gen = torch.Generator().manual_seed(seed)
    grid = torch.arange(size, dtype=torch.float32)
    mask = torch.zeros(count, 1, size, size)
    for _ in range(3):
        cx, cy = (10 + 44 * torch.rand(2, count, 1, 1, generator=gen))
        radius = 3 + 6 * torch.rand(count, 1, 1, generator=gen)
        mask[:, 0] = torch.maximum(mask[:, 0], ((grid[None, None] - cx) ** 2 + (grid[None, :, None] - cy) ** 2
                                                < radius ** 2).float())
    blur = F.avg_pool2d(mask, 5, 1, 2)
    return 0.6 * blur + 0.4 * torch.randn(mask.shape, generator=gen), mask


def double(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                         nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.down = nn.ModuleList([double(1, width), double(width, 2 * width), double(2 * width, 4 * width)])
        self.up = nn.ModuleList([double(6 * width, 2 * width), double(3 * width, width)])
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](F.max_pool2d(a, 2))
        c = self.down[2](F.max_pool2d(b, 2))
        b = self.up[0](torch.cat([b, F.interpolate(c, scale_factor=2)], 1))
        a = self.up[1](torch.cat([a, F.interpolate(b, scale_factor=2)], 1))
        return self.out(a)


def dice(logits, mask):
    p = logits.sigmoid()
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


def loss_of(logits, mask):
    return F.binary_cross_entropy_with_logits(logits, mask) + dice(logits, mask)


def validate(model, loader):
    model.eval()
    with torch.no_grad():
        score = sum(dice(model(x), mask) for x, mask in loader) / len(loader)
    model.train()
    return 1 - score.item()


def main():
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(*scans(960, seed=1)), batch_size=16, shuffle=True, drop_last=True)
    valid = DataLoader(TensorDataset(*scans(96, seed=2)), batch_size=32)
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    began = time.time()
    for epoch in range(3):
        for x, mask in train:
            if torch.rand(()) < 0.5:
                x, mask = x.flip(3), mask.flip(3)
            optimizer.zero_grad()
            loss = loss_of(model(x), mask)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: dice {validate(model, valid):.3f}")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
