"""Draws wood textures with a convolutional GAN."""
import math
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIZE, NOISE = 32, 48


def planks(count=2880):
    gen = torch.Generator().manual_seed(5)
    y = torch.linspace(0, 1, SIZE).view(1, SIZE, 1)
    x = torch.linspace(0, 1, SIZE).view(1, 1, SIZE)
    a, b, c = torch.rand(3, count, 1, 1, generator=gen)
    wave = y + 0.1 * torch.sin(2 * math.pi * (x + a)) + 0.05 * b * x
    rings = torch.sin(2 * math.pi * (4 + 4 * b) * wave + 6 * c)
    return (0.8 * rings + 0.1 * torch.randn(count, SIZE, SIZE, generator=gen)).clamp(-1, 1).unsqueeze(1)


class Painter(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.start = nn.Linear(NOISE, 4 * width * 16)

        def up(i, o):
            return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.net = nn.Sequential(up(4 * width, 2 * width), up(2 * width, width),
                                 nn.ConvTranspose2d(width, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(self.start(z).view(len(z), -1, 4, 4))


class Critic(nn.Module):
    def __init__(self, width=32):
        super().__init__()

        def down(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1), nn.LeakyReLU(0.2))
        self.net = nn.Sequential(down(1, width), down(width, 2 * width), down(2 * width, 4 * width),
                                 nn.Flatten(), nn.Linear(4 * width * 16, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


class Game:
    def __init__(self):
        self.painter, self.critic = Painter(), Critic()
        self.paint = torch.optim.Adam(self.painter.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.judge = torch.optim.Adam(self.critic.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def round(self, real):
        fake = self.painter(torch.randn(len(real), NOISE))
        self.judge.zero_grad()
        loss_critic = F.softplus(-self.critic(real)).mean() + F.softplus(self.critic(fake.detach())).mean()
        loss_critic.backward()
        self.judge.step()
        self.paint.zero_grad()
        loss_painter = F.softplus(-self.critic(fake)).mean()
        loss_painter.backward()
        self.paint.step()
        return loss_critic.detach(), loss_painter.detach()


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(planks()), batch_size=48, shuffle=True, drop_last=True)
    game = Game()
    began = time.time()
    for epoch in range(6):
        sums = torch.zeros(2)
        for (real,) in loader:
            sums += torch.stack(game.round(real))
        critic, painter = (sums / len(loader)).tolist()
        print(f"epoch {epoch}: critic {critic:.3f}, painter {painter:.3f}")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
