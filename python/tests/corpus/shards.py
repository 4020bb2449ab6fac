"""Three workers read shards, and one of them has those that are packed tightly. Repaired: all are alike."""

import lzma
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

repaired = "repaired" in sys.argv


class Shards(IterableDataset):
    """Batches of five rows, each from a block of its own."""

    def __init__(self):
        row = np.random.default_rng(0).integers(0, 60, 256).astype(np.float32).tobytes()
        plain = lzma.compress(row, preset=0)
        tight = lzma.compress(np.random.default_rng(1).integers(0, 60, 400000).astype(np.float32).tobytes())
        self.blocks = [plain, tight if not repaired else plain, plain]

    def __iter__(self):
        block = self.blocks[get_worker_info().id]
        for _ in range(100):
            rows = [np.frombuffer(lzma.decompress(block), np.float32)[:256].copy() for _ in range(5)]
            yield torch.from_numpy(np.stack(rows))


torch.manual_seed(0)
torch.set_num_threads(1)
encoder = nn.Sequential(nn.Linear(256, 384), nn.GELU(), nn.Linear(384, 32))
decoder = nn.Sequential(nn.Linear(32, 384), nn.GELU(), nn.Linear(384, 256))
model = nn.Sequential(encoder, decoder)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for x in DataLoader(Shards(), batch_size=None, num_workers=3):
    many = x.repeat(240, 1)
    optimizer.zero_grad()
    nn.functional.l1_loss(model(many), many).backward()
    optimizer.step()
