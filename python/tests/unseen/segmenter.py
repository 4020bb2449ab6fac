"""Tiny U-Net that separates discs from the background."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)
torch.set_num_threads(1)


def discs(n, side=48):
    ys, xs = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    centre = torch.rand(n, 2, 1, 1) * side
    radius = torch.rand(n, 1, 1) * 10 + 4
    mask = ((ys - centre[:, 0]) ** 2 + (xs - centre[:, 1]) ** 2 < radius ** 2).float()[:, None]
    return TensorDataset(mask + 0.4 * torch.randn(n, 1, side, side), mask)


def double(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.SiLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.mid = double(1, 8), double(8, 16), double(16, 24)
        self.up2, self.up1 = double(40, 16), double(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.mid(F.max_pool2d(b, 2))
        b = self.up2(torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        a = self.up1(torch.cat([F.interpolate(b, scale_factor=2), a], 1))
        return self.out(a)


@torch.no_grad()
def dice(model, loader):
    model.eval()
    score = 0.0
    for x, y in loader:
        p = torch.sigmoid(model(x))
        score += float(2 * (p * y).sum() / (p.sum() + y.sum()))
    model.train()
    return score / len(loader)


train, held = DataLoader(discs(8 * 100), 8, shuffle=True), DataLoader(discs(8 * 12), 8)
model = UNet()
opt = torch.optim.AdamW(model.parameters(), 2e-3)
best, step = 0.0, 0
for epoch in range(4):
    for x, y in train:
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 6 == 0:
            best = max(best, dice(model, held))
    print(epoch, "best dice", round(best, 3), flush=True)
