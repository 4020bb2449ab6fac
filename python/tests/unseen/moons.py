"""Denoising diffusion of point clouds with a time-conditioned network."""
import math

import torch
from torch import nn

torch.set_num_threads(1)
STEPS = 200


class Clouds(torch.utils.data.Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(107)
        angle = torch.rand(n, 64, generator=g) * math.pi
        self.points = torch.stack([angle.cos(), angle.sin()], -1) + 0.05 * torch.randn(n, 64, 2, generator=g)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, i):
        return self.points[i]


class Denoiser(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.enter = nn.Linear(2, d)
        self.time = nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, d))
        self.attend = nn.MultiheadAttention(d, 4, batch_first=True)
        self.feed = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d))
        self.leave = nn.Linear(d, 2)
        self.register_buffer("frequencies", torch.exp(-torch.arange(d // 2) * math.log(1e4) / (d // 2)))

    def forward(self, x, t):
        phase = t[:, None] * self.frequencies
        h = self.enter(x) + self.time(torch.cat([phase.sin(), phase.cos()], 1))[:, None]
        h = h + self.attend(h, h, h, need_weights=False)[0]
        return self.leave(h + self.feed(h))


def main():
    torch.manual_seed(107)
    alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.04, STEPS), 0)
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    warm = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=1520)
    loader = torch.utils.data.DataLoader(Clouds(48 * 190), batch_size=48, shuffle=True, num_workers=1, persistent_workers=True)
    for epoch in range(8):
        for clean in loader:
            t = torch.randint(0, STEPS, (len(clean),))
            noise = torch.randn_like(clean)
            a = alphas[t][:, None, None]
            loss = (model(a.sqrt() * clean + (1 - a).sqrt() * noise, t.float()) - noise).square().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            warm.step()
        print(epoch, round(loss.item(), 4), flush=True)


if __name__ == "__main__":
    main()
