"""Recommends items from the last ones a user looked at: sampled softmax over a large catalogue."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Histories(Dataset):
    """Users stay within a genre; popular items come first."""

    def __init__(self, users, items, length=20, seed=0):
        generator = torch.Generator().manual_seed(seed)
        genre = torch.randint(100, (users, 1), generator=generator)
        rank = (torch.rand(users, length + 1, generator=generator) ** 3 * (items // 100)).long()
        self.rows = rank * 100 + genre

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i, :-1], self.rows[i, -1]


class Recommender(nn.Module):
    def __init__(self, items, width=32):
        super().__init__()
        self.items = nn.Embedding(items, width)
        nn.init.normal_(self.items.weight, std=0.05)
        self.gru = nn.GRU(width, 96, batch_first=True)
        self.out = nn.Linear(96, width)

    def forward(self, history, candidates):
        hidden = self.gru(self.items(history))[0][:, -1]
        return self.out(hidden) @ self.items(candidates).T


def recall(model, loader, items, generator):
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for history, target in loader:
            others = torch.randint(items, (1000,), generator=generator)
            scores = model(history, torch.cat([target, others]))
            own = scores.diagonal()
            hits += ((scores[:, len(target):] > own[:, None]).sum(1) < 20).sum().item()
            count += len(target)
    model.train()
    return hits / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=300_000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--negatives", type=int, default=1024)
    args = parser.parse_args()
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    train = DataLoader(Histories(40_000, args.items), batch_size=128, shuffle=True, drop_last=True)
    test = DataLoader(Histories(1_024, args.items, seed=9), batch_size=256)
    model = Recommender(args.items)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step = 0
    while step < args.steps:
        for history, target in train:
            candidates = torch.cat([target, torch.randint(args.items, (args.negatives,), generator=generator)])
            scores = model(history, candidates)
            loss = nn.functional.cross_entropy(scores, torch.arange(len(target)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
            if step >= args.steps:
                break
        print(f"step {step} recall@20 {recall(model, test, args.items, generator):.3f}", flush=True)


if __name__ == "__main__":
    main()
