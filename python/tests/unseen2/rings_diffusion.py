"""A diffusion model of small pictures of rings, with Accelerate and an exponential moving average."""
import copy
import math
import os
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIZE, TIMES, EPOCHS = 16, 200, 5
BETAS = torch.linspace(1e-4, 0.03, TIMES)
KEPT = torch.cumprod(1 - BETAS, 0)


def make_rings(count):
    center = torch.rand(count, 2, 1, 1) * 6 + 5
    radius = torch.rand(count, 1, 1) * 3 + 2
    grid = torch.stack(torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")).float()
    distance = (grid - center).pow(2).sum(1).sqrt() - radius
    return (torch.exp(-(distance**2)) * 2 - 1)[:, None]


class Block(nn.Module):
    def __init__(self, width, times):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, width), nn.GroupNorm(4, width)
        self.conv1, self.conv2 = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.time = nn.Linear(times, width)

    def forward(self, x, t):
        y = self.conv1(nn.functional.silu(self.norm1(x))) + self.time(t)[..., None, None]
        return x + self.conv2(nn.functional.silu(self.norm2(y)))


class Denoiser(nn.Module):
    def __init__(self, width=40, times=64):
        super().__init__()
        self.start, self.end = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, 1, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(times, times), nn.SiLU())
        self.blocks = nn.ModuleList(Block(width, times) for _ in range(4))
        self.register_buffer("waves", torch.exp(-math.log(1000) * torch.arange(times // 2) / (times // 2)))

    def forward(self, x, t):
        angle = t[:, None].float() * self.waves
        t = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        x = self.start(x)
        for block in self.blocks:
            x = block(x, t)
        return self.end(x)


@torch.no_grad()
def sample(model, count=8):
    x = torch.randn(count, 1, SIZE, SIZE)
    for t in reversed(range(0, TIMES, 4)):
        noise = model(x, torch.full((count,), t))
        clean = ((x - (1 - KEPT[t]).sqrt() * noise) / KEPT[t].sqrt()).clamp(-1, 1)
        before = KEPT[max(t - 4, 0)]
        x = before.sqrt() * clean + (1 - before).sqrt() * noise
    return x


def main():
    set_seed(40)
    accelerator = Accelerator(cpu=True)
    folder = tempfile.mkdtemp(prefix="rings-")
    model = Denoiser()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(make_rings(2560)), batch_size=32, shuffle=True, drop_last=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(EPOCHS):
        for step, (x,) in enumerate(loader):
            t = torch.randint(TIMES, (len(x),))
            noise = torch.randn_like(x)
            kept = KEPT[t][:, None, None, None]
            loss = nn.functional.mse_loss(model(kept.sqrt() * x + (1 - kept).sqrt() * noise, t), noise)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            torch._foreach_lerp_(list(average.parameters()), list(accelerator.unwrap_model(model).parameters()), 0.005)
            if step % 40 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        if epoch % 2 == 1:
            torch.save({"model": average.state_dict(), "rings": sample(average)}, os.path.join(folder, f"{epoch}.pt"))


if __name__ == "__main__":
    main()
