"""GRU encoder and decoder with attention, batches bucketed by length."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

random.seed(113)
torch.manual_seed(113)
torch.set_num_threads(1)


class Pairs(Dataset):
    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            source = torch.randint(2, 1500, (random.randint(8, 24),))
            self.rows.append((source, source.flip(0)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Buckets(Sampler):
    def __init__(self, data, size):
        order = sorted(range(len(data)), key=lambda i: len(data.rows[i][0]))
        self.batches = [order[i:i + size] for i in range(0, len(order), size)]

    def __iter__(self):
        random.shuffle(self.batches)
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


def collate(rows):
    return pad_sequence([a for a, _ in rows], batch_first=True), pad_sequence([b for _, b in rows], batch_first=True)


class Seq2Seq(nn.Module):
    def __init__(self, d=80):
        super().__init__()
        self.source, self.target = nn.Embedding(1500, d), nn.Embedding(1500, d)
        self.encode, self.decode = nn.GRU(d, d, batch_first=True), nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(2 * d, 1500)

    def forward(self, source, target):
        memory, h = self.encode(self.source(source))
        states, _ = self.decode(self.target(target), h)
        context = torch.softmax(states @ memory.transpose(1, 2), -1) @ memory
        return self.out(torch.cat([states, context], -1))


data = Pairs(32 * 110)
loader = DataLoader(data, batch_sampler=Buckets(data, 32), collate_fn=collate)
model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(9):
    for source, target in loader:
        logits = model(source, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(epoch, round(loss.item(), 3), flush=True)
