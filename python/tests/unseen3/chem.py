"""Predicts the solubility of molecules from their SMILES strings and a fingerprint."""
import random
import re
import time
import zlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

TOKENS = re.compile(r"Cl|Br|\[[^\]]+\]|.")
PIECES = ["C", "CC", "c1ccccc1", "N", "O", "C(=O)", "Cl", "Br", "S", "[nH]", "F", "C#N", "OC", "N(C)", "P"]
BITS = 2048


def make_molecules(count, seed=5):
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        smiles = "".join(rng.choice(PIECES) for _ in range(rng.randint(12, 30)))
        out.append((smiles, smiles.count("O") * 0.4 - smiles.count("c") * 0.1 + rng.gauss(0, 0.1)))
    return out


class Vocabulary:
    def __init__(self, molecules):
        found = sorted({t for smiles, _ in molecules for t in TOKENS.findall(smiles)})
        self.ids = {t: i + 1 for i, t in enumerate(found)}

    def __len__(self):
        return len(self.ids) + 1

    def encode(self, smiles):
        return [self.ids[t] for t in TOKENS.findall(smiles)]


def fingerprint(smiles, longest=7):
    bits = [0.0] * BITS
    tokens = TOKENS.findall(smiles)
    for size in range(1, longest + 1):
        for start in range(len(tokens) - size + 1):
            bits[zlib.crc32("".join(tokens[start:start + size]).encode()) % BITS] = 1.0
    return bits


class Collator:
    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def __call__(self, items):
        coded = [self.vocabulary.encode(smiles) for smiles, _ in items]
        width = max(len(c) for c in coded)
        tokens = torch.tensor([c + [0] * (width - len(c)) for c in coded])
        prints = torch.tensor([fingerprint(smiles) for smiles, _ in items])
        target = torch.tensor([value for _, value in items])
        return tokens, prints, target


class Solubility(nn.Module):
    def __init__(self, words, width=128):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.position = nn.Parameter(torch.randn(256, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 256, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.prints = nn.Sequential(nn.Linear(BITS, width), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, tokens, prints):
        mask = tokens == 0
        h = self.encoder(self.embed(tokens) + self.position[:tokens.shape[1]], src_key_padding_mask=mask)
        keep = (~mask).unsqueeze(2).float()
        h = (h * keep).sum(1) / keep.sum(1)
        return self.head(torch.cat([h, self.prints(prints)], 1)).squeeze(1)


def main():
    torch.manual_seed(0)
    molecules = make_molecules(2048)
    vocabulary = Vocabulary(molecules)
    loader = DataLoader(molecules, batch_size=32, shuffle=True, collate_fn=Collator(vocabulary))
    model = Solubility(len(vocabulary))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    began = time.time()
    for epoch in range(3):
        for step, (tokens, prints, target) in enumerate(loader):
            loss = F.mse_loss(model(tokens, prints), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 25 == 0:
                print(f"epoch {epoch} step {step}: loss {loss.item():.3f}")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
