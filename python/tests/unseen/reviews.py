"""Sentiment of reviews with a small transformer encoder."""
import random
import re

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SUFFIXES = ("ational", "ization", "fulness", "ing", "ness", "ment", "able", "tion", "ers", "ed", "ly", "es", "s")
STEMS = ["movi", "plot", "act", "direct", "wonder", "bore", "light", "sound", "laugh", "script", "charm", "dull", "bright", "pace"]


def make_reviews(n, seed):
    r = random.Random(seed)
    out = []
    for _ in range(n):
        words = [r.choice(STEMS) + r.choice(SUFFIXES) for _ in range(r.randint(320, 400))]
        out.append((", ".join(words), r.randint(0, 1)))
    return out


def stem(word):
    for suffix in SUFFIXES:
        if re.search(suffix + "$", word):
            return re.sub(suffix + "$", "", word)
    return word


def tokenize(text, length=96):
    ids = []
    for word in re.findall(r"[a-z]+", text.lower()):
        pieces = [stem(word)] + [word[i:i + 3] for i in range(len(word) - 2)]
        for piece in pieces:
            ids.append(sum(ord(c) * 31 ** k for k, c in enumerate(piece)) % 4095 + 1)
    ids = ids[:: max(1, len(ids) // length)][:length]
    return ids + [0] * (length - len(ids))


class Reviews(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        return torch.tensor(tokenize(text)), label


class Classifier(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.embed = nn.Embedding(4096, d, padding_idx=0)
        self.position = nn.Parameter(torch.zeros(96, d))
        layer = nn.TransformerEncoderLayer(d, 4, 128, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(d, 2)

    def forward(self, ids):
        x = self.encoder(self.embed(ids) + self.position)
        return self.head(x.mean(1))


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    data = Reviews(make_reviews(16 * 100, 3))
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(4):
        running = 0.0
        for ids, label in loader:
            loss = nn.functional.cross_entropy(model(ids), label)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            running += loss.item()
        print(f"{epoch} {running / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
