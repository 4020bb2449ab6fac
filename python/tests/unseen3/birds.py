"""Recognises bird calls from their mel spectrograms."""
import math
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 16000
SPECIES = 12


def mel_filters(bands=48, size=1024):
    """Triangular filters, smoothed as in the field recorder's manual."""
    top = 2595 * math.log10(1 + RATE / 2 / 700)
    centres = [700 * (10 ** (i * top / (bands + 1) / 2595) - 1) for i in range(bands + 2)]
    bank = []
    for low, mid, high in zip(centres, centres[1:], centres[2:]):
        row = []
        for k in range(size // 2 + 1):
            weight = 0.0
            for part in range(36):
                f = (k + part / 36) * RATE / size
                weight += max(0.0, min((f - low) / (mid - low), (high - f) / (high - mid)))
            row.append(weight / 36)
        bank.append(row)
    return torch.tensor(bank)


class Calls(Dataset):
    def __init__(self, count=768, seconds=1.0):
        gen = torch.Generator().manual_seed(1)
        self.labels = torch.randint(0, SPECIES, (count,), generator=gen)
        self.pitch = 600 + 350 * self.labels + 80 * torch.rand(count, generator=gen)
        self.length = int(RATE * seconds)
        self.filters = None

    def __len__(self):
        return len(self.labels)

    def waveform(self, i):
        t = torch.arange(self.length) / RATE
        chirp = torch.sin(2 * math.pi * (self.pitch[i] * t + 200 * t * t))
        return chirp * torch.exp(-3 * t) + 0.3 * torch.randn(self.length)

    def __getitem__(self, i):
        if self.filters is None:
            self.filters = mel_filters()
        spectrum = torch.stft(self.waveform(i), 1024, 256, window=torch.hann_window(1024),
                              return_complex=True).abs()
        return torch.log1p(self.filters @ spectrum).unsqueeze(0), self.labels[i]


class CallNet(nn.Module):
    def __init__(self):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
                                 nn.MaxPool2d(2))
        self.body = nn.Sequential(block(1, 24), block(24, 48), block(48, 96))
        self.head = nn.Linear(96, SPECIES)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    calls = Calls()
    loader = DataLoader(calls, batch_size=32, shuffle=True, num_workers=1, prefetch_factor=4, drop_last=True)
    model = CallNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9)
    began = time.time()
    for epoch in range(9):
        total = torch.zeros(())
        for spectra, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(spectra), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        schedule.step()
        print(f"epoch {epoch}: loss {total.item() / len(loader):.3f}")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
