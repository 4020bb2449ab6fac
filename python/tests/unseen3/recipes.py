"""A language model of recipes, letter by letter."""
import math
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

VERBS = ["mix", "fry", "boil", "chop", "bake", "stir", "rest", "peel"]
THINGS = ["the onions", "two eggs", "a cup of rice", "the dough", "some butter", "the leeks", "a pinch of salt"]
WAYS = ["slowly", "until golden", "for ten minutes", "with care", "in a wide pan", "over low heat"]


def cookbook(sentences=9000):
    rng = random.Random(1)
    lines = [f"{rng.choice(VERBS)} {rng.choice(THINGS)} {rng.choice(WAYS)}." for _ in range(sentences)]
    return "\n".join(lines)


class Letters:
    def __init__(self, text):
        self.alphabet = sorted(set(text))
        code = {c: i for i, c in enumerate(self.alphabet)}
        self.data = torch.tensor([code[c] for c in text])
        cut = int(0.95 * len(self.data))
        self.train, self.valid = self.data[:cut], self.data[cut:]

    def batch(self, which, size, length):
        data = self.train if which == "train" else self.valid
        start = torch.randint(0, len(data) - length - 1, (size, 1))
        rows = data[start + torch.arange(length + 1)]
        return rows[:, :-1], rows[:, 1:]


class LetterModel(nn.Module):
    def __init__(self, letters, width=64, hidden=256):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.body = nn.LSTM(width, hidden, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(hidden, letters)

    def forward(self, x, state=None):
        h, state = self.body(self.embed(x), state)
        return self.out(h), state


@torch.no_grad()
def bits(model, letters, batches=3):
    model.eval()
    total = 0.0
    for _ in range(batches):
        x, y = letters.batch("valid", 48, 64)
        total += F.cross_entropy(model(x)[0].flatten(0, 1), y.flatten()).item()
    model.train()
    return total / batches / math.log(2)


@torch.no_grad()
def write(model, letters, count=60):
    x, state, out = torch.zeros(1, 1, dtype=torch.long), None, []
    for _ in range(count):
        logits, state = model(x, state)
        x = torch.multinomial(logits[:, -1].softmax(1), 1)
        out.append(letters.alphabet[int(x)])
    return "".join(out)


def main():
    torch.manual_seed(0)
    letters = Letters(cookbook())
    model = LetterModel(len(letters.alphabet))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    began = time.time()
    for step in range(1, 181):
        x, y = letters.batch("train", 48, 64)
        loss = F.cross_entropy(model(x)[0].flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step}: {bits(model, letters):.2f} bits a letter; {write(model, letters)!r}")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
