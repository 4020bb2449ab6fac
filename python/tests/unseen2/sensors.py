"""Forecasts the temperature of machines from vibration sensors: windows of a recording in a file, GRU."""
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(11)
WINDOW, AHEAD, CHANNELS = 48, 8, 12


def write_recording(path, length=400_000):
    rng = np.random.default_rng(11)
    time = np.arange(length)[:, None]
    periods = rng.uniform(20, 400, CHANNELS)
    signal = np.sin(2 * np.pi * time / periods) + rng.normal(0, 0.3, (length, CHANNELS))
    np.savez_compressed(path, signal=signal.astype(np.float32))


class Windows(Dataset):
    """Opens the recording on first use, so that every worker has its own file handle."""

    def __init__(self, path, first, last):
        self.path, self.first, self.last = path, first, last
        self.signal = None

    def open_recording(self):
        signal = np.load(self.path)["signal"]
        self.signal = (signal - signal.mean(0)) / signal.std(0)

    def __len__(self):
        return (self.last - self.first) // 128

    def __getitem__(self, i):
        if self.signal is None:
            self.open_recording()
        at = self.first + i * 128
        return self.signal[at : at + WINDOW], self.signal[at + WINDOW : at + WINDOW + AHEAD, 0]


class Forecaster(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.gru = nn.GRU(CHANNELS, hidden, batch_first=True)
        self.head = nn.Linear(hidden, AHEAD)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1])


def train_epoch(model, optimizer, data):
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, drop_last=True)
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    folder = tempfile.mkdtemp(prefix="sensors-")
    path = os.path.join(folder, "recording.npz")
    write_recording(path)
    data = Windows(path, 0, 320_000)
    held_out = Windows(path, 320_000, 399_000)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(30):
        loss = train_epoch(model, optimizer, data)
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                x, y = map(np.stack, zip(*(held_out[i] for i in range(0, len(held_out), 2))))
                error = nn.functional.mse_loss(model(torch.from_numpy(x)), torch.from_numpy(y))
            model.train()
            print(f"epoch {epoch} loss {loss:.4f} held out {error:.4f}")
    torch.save(model.state_dict(), os.path.join(folder, "model.pt"))


if __name__ == "__main__":
    main()
