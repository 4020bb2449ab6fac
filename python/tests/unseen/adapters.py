"""Low-rank adapters in a frozen text model, a validation and a checkpoint at the end of each epoch."""
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(157)
torch.set_num_threads(1)


class LowRank(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + (x @ self.a.t()) @ self.b.t()


class Mixer(nn.Module):
    def __init__(self, d=96, tokens=32):
        super().__init__()
        self.embed = nn.Embedding(2000, d)
        self.across = nn.ModuleList(nn.Linear(tokens, tokens) for _ in range(2))
        self.within = nn.ModuleList(nn.Linear(d, d) for _ in range(2))
        self.head = nn.Linear(d, 4)

    def forward(self, ids):
        x = self.embed(ids)
        for across, within in zip(self.across, self.within):
            x = x + across(x.transpose(1, 2)).transpose(1, 2)
            x = x + nn.functional.gelu(within(x))
        return self.head(x.mean(1))


def build():
    model = Mixer().requires_grad_(False)
    model.within = nn.ModuleList(LowRank(layer) for layer in model.within)
    model.head.requires_grad_(True)
    return model


def table(n):
    return TensorDataset(torch.randint(0, 2000, (n, 32)), torch.randint(0, 4, (n,)))


train, held = DataLoader(table(128 * 220), 128, shuffle=True), DataLoader(table(64 * 15), 64)
model = build()
parameters = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(parameters, 1e-3)
folder = tempfile.mkdtemp()
for epoch in range(7):
    model.train()
    for ids, label in train:
        loss = nn.functional.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(ids).argmax(1) == label).sum().item() for ids, label in held)
    torch.save({k: v for k, v in model.state_dict().items() if "base" not in k}, os.path.join(folder, f"{epoch}.pt"))
    print(epoch, round(loss.item(), 4), right, flush=True)
