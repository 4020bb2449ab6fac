"""Segments cells in synthetic microscope images with a small U-Net."""
import argparse
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Cells(Dataset):
    """Bright discs on noise; images are made once."""

    def __init__(self, count, size=48, seed=0):
        generator = torch.Generator().manual_seed(seed)
        grid = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).float()
        centers = torch.rand(count, 4, 2, generator=generator) * size
        radii = torch.rand(count, 4, generator=generator) * 6 + 3
        distance = (grid[None, None] - centers[..., None, None]).pow(2).sum(2).sqrt()
        self.masks = (distance < radii[..., None, None]).any(1).float()[:, None]
        self.images = self.masks * 0.8 + torch.randn(count, 1, size, size, generator=generator) * 0.5

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                         nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        sizes = [width * 2**i for i in range(5)]
        self.down = nn.ModuleList(block(a, b) for a, b in zip([1] + sizes, sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(sizes, sizes[1:]))
        self.merge = nn.ModuleList(block(2 * a, a) for a in sizes[:-1])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skips = []
        for i, down in enumerate(self.down):
            x = down(x if i == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        for i in reversed(range(len(self.up))):
            x = self.merge[i](torch.cat([self.up[i](x), skips[i]], 1))
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--save-every", type=int, default=2)
    parser.add_argument("--out", default=tempfile.mkdtemp(prefix="segment-"))
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(Cells(400), batch_size=8, shuffle=True)
    test = DataLoader(Cells(48, seed=1), batch_size=16)
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.BCEWithLogitsLoss()
    step = 0
    for epoch in range(args.epochs):
        model.train()
        for images, masks in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(images), masks)
            loss.backward()
            optimizer.step()
            step += 1
            if step % args.save_every == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save(state, os.path.join(args.out, "last.pt"))
        model.eval()
        with torch.no_grad():
            dice = [(2 * ((o := model(i) > 0) * m).sum() / (o.sum() + m.sum())).item() for i, m in test]
        print(f"epoch {epoch} loss {loss.item():.4f} dice {sum(dice) / len(dice):.3f}", flush=True)


if __name__ == "__main__":
    main()
