"""Phoneme frames from audio that is read in shards."""
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

FRAMES, BANDS, PHONES = 64, 40, 30


def pack(rng, samples):
    wave = np.cumsum(rng.integers(-40, 41, samples)).astype(np.int16)
    return zlib.compress(wave.tobytes(), 6)


class Shards(IterableDataset):
    """Shard k belongs to worker k; the last shard has the long recordings."""

    def __init__(self, per_shard):
        rng = np.random.default_rng(1)
        self.per_shard = per_shard
        self.shards = [[pack(rng, 12_000) for _ in range(24)], [pack(rng, 700_000) for _ in range(8)]]
        self.window = np.hanning(160)

    def features(self, blob):
        wave = np.frombuffer(zlib.decompress(blob), dtype=np.int16).astype(np.float32)
        start = (len(wave) - FRAMES * 160) // 2
        frames = wave[start:start + FRAMES * 160].reshape(FRAMES, 160) * self.window
        spectrum = np.abs(np.fft.rfft(frames, axis=1))[:, :BANDS]
        return torch.from_numpy(np.log1p(spectrum).astype(np.float32))

    def __iter__(self):
        info = get_worker_info()
        shard = self.shards[info.id]
        g = torch.Generator().manual_seed(info.id)
        for i in range(self.per_shard):
            yield self.features(shard[i % len(shard)]), torch.randint(PHONES, (FRAMES,), generator=g)


class Acoustic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(BANDS, 64, 5, padding=2), nn.GELU(), nn.Conv1d(64, 64, 5, padding=2), nn.GELU())
        self.rnn = nn.LSTM(64, 64, batch_first=True, bidirectional=True)
        self.out = nn.Linear(128, PHONES)

    def forward(self, x):
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return self.out(self.rnn(x)[0])


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Acoustic()
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
    loader = DataLoader(Shards(8 * 290), batch_size=8, num_workers=2)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(step, round(loss.item(), 3), flush=True)
