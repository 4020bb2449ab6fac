"""Texts of unequal length are cut into letters and padded in plain Python while the loop waits. Repaired: done
before."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

WORDS = {chr(97 + k): k + 1 for k in range(26)}


def tokenize(text):
    tokens = []
    for letter in text:
        tokens.append(WORDS[letter.lower()])
    return tokens


def pad_texts(samples):
    rows = [tokenize(text) if isinstance(text, str) else text for text in samples]
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])[:, :48]


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(27, 256, padding_idx=0)
        self.head = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 27))

    def forward(self, x):
        return self.head(self.table(x))


torch.manual_seed(0)
torch.set_num_threads(1)
lengths = torch.randint(1500, 2500, (64 * 260,)).tolist()
texts = ["".join(chr(97 + (k * size) % 26) for k in range(61)) * (size // 61) for size in lengths]
if "repaired" in sys.argv:
    texts = [tokenize(text[:48]) for text in texts]
model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x in DataLoader(texts, batch_size=64, collate_fn=pad_texts):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x.repeat(12, 1)), x[:, 0].repeat(12)).backward()
    optimizer.step()
