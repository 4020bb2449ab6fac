"""Phrase embeddings with a compiled mixer."""
import torch
import torch._dynamo
from torch import nn

torch.manual_seed(31)
torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 256
torch._dynamo.config.accumulated_recompile_limit = 1024


class Mixer(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.embed = nn.Embedding(3000, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(1))
        self.attend = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(1))
        self.feed = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(1))
        self.out = nn.Linear(dim, 50)

    def forward(self, ids):
        x = self.embed(ids)
        for norm, attend, feed in zip(self.norms, self.attend, self.feed):
            q, k, v = attend(norm(x)).chunk(3, -1)
            weights = torch.softmax(q @ k.transpose(1, 2) / 96 ** 0.5, -1)
            x = x + weights @ v
            x = x + feed(x)
        return self.out(x.mean(1))


def phrases(n):
    g = torch.Generator().manual_seed(9)
    for i in range(n):
        length = 8 + i // 14 + int(torch.randint(0, 5, (1,), generator=g))
        yield torch.randint(0, 3000, (64, length), generator=g), torch.randint(0, 50, (64,), generator=g)


model = Mixer()
fast = torch.compile(model, backend="aot_eager", dynamic=False)
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
for step, (ids, label) in enumerate(phrases(480)):
    loss = nn.functional.cross_entropy(fast(ids), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 70 == 0:
        print(step, round(loss.item(), 4), flush=True)
