"""Compiled models that are compiled again and again. `lengths`: each batch of sequences has another length; `counts`:
a number that changes is kept in the module. Repaired: padded to one length; the number is a tensor."""

import sys

import torch
from torch import nn

what, repaired = sys.argv[1], "repaired" in sys.argv


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.read = nn.Embedding(500, 192), nn.Linear(192, 500)
        self.layer = nn.TransformerEncoderLayer(192, 4, 384, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.read(self.layer(self.tokens(x)))


class Annealed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(96, 768), nn.SiLU(), nn.Linear(768, 768), nn.SiLU(), nn.Linear(768, 96))
        self.temperature = torch.ones(()) if repaired else 1

    def forward(self, x):
        return self.layers(x) / self.temperature


torch.manual_seed(0)
torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 64
model = Mixer() if what == "lengths" else Annealed()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
compiled = torch.compile(model, backend="aot_eager", dynamic=False)
rows = torch.randn(256, 96)
for step in range(240):
    optimizer.zero_grad()
    if what == "lengths":
        x = torch.randint(500, (16, 32 if repaired else 20 + (step // 8) % 30))
        loss = nn.functional.cross_entropy(compiled(x).flatten(0, 1), x.flatten())
    else:
        x = rows
        loss = (compiled(x) - x).square().mean()
        if step % 12 == 11:
            model.temperature = model.temperature + 1
    loss.backward()
    optimizer.step()
