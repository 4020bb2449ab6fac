"""A DCGAN on synthetic images of soft blobs: two networks, two optimizers, own loop."""
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIZE, LATENT, WIDTH = 32, 48, 24


def make_blobs(count):
    center = torch.rand(count, 3, 2, 1, 1) * 24 + 4
    spread = torch.rand(count, 3, 1, 1) * 20 + 8
    grid = torch.stack(torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")).float()
    images = torch.exp(-(grid - center).pow(2).sum(2) / spread).sum(1, keepdim=True)
    return images.clamp(max=1) * 2 - 1


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(LATENT, 4 * WIDTH, 4, bias=False), nn.BatchNorm2d(4 * WIDTH), nn.ReLU(),
            nn.ConvTranspose2d(4 * WIDTH, 2 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.ReLU(),
            nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(),
            nn.ConvTranspose2d(WIDTH, 1, 4, 2, 1), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z[:, :, None, None])


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, WIDTH, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(WIDTH, 2 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * WIDTH, 4 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * WIDTH), nn.LeakyReLU(0.2),
            nn.Conv2d(4 * WIDTH, 1, 4), nn.Flatten(0),
        )

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(31)
    folder = tempfile.mkdtemp(prefix="blobs-")
    loader = DataLoader(TensorDataset(make_blobs(3200)), batch_size=32, shuffle=True, drop_last=True)
    generator, critic = Generator(), Critic()
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    fixed = torch.randn(16, LATENT)
    ones, zeros = torch.full((32,), 0.9), torch.zeros(32)
    for epoch in range(6):
        for step, (real,) in enumerate(loader):
            fake = generator(torch.randn(len(real), LATENT))
            critic_optimizer.zero_grad()
            critic_loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
            critic_loss.backward()
            critic_optimizer.step()

            generator_optimizer.zero_grad()
            generator_loss = criterion(critic(fake), ones)
            generator_loss.backward()
            generator_optimizer.step()
            if step % 25 == 0:
                print(f"epoch {epoch} step {step} critic {critic_loss.item():.3f} generator {generator_loss.item():.3f}", flush=True)
        generator.eval()
        with torch.no_grad():
            torch.save(generator(fixed), os.path.join(folder, f"samples-{epoch}.pt"))
        generator.train()
    torch.save({"generator": generator.state_dict(), "critic": critic.state_dict()}, os.path.join(folder, "gan.pt"))


if __name__ == "__main__":
    main()
