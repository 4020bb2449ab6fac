"""Two-tower retrieval with sparse embeddings and in-batch negatives."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(109)
torch.set_num_threads(1)

USERS, ITEMS, DIM, BATCH = 40_000, 20_000, 64, 1024


class Tower(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = nn.EmbeddingBag(rows, DIM, mode="mean", sparse=True)
        self.top = nn.Sequential(nn.Linear(DIM, 256), nn.ReLU(), nn.Linear(256, DIM))

    def forward(self, ids):
        return F.normalize(self.top(self.table(ids)), dim=1)


users, items = Tower(USERS), Tower(ITEMS)
sparse = torch.optim.SparseAdam([*users.table.parameters(), *items.table.parameters()], lr=1e-2)
dense = torch.optim.Adam([*users.top.parameters(), *items.top.parameters()], lr=1e-3)
temperature = 0.07
for step in range(1700):
    history = torch.randint(0, USERS, (BATCH, 4))
    bought = torch.randint(0, ITEMS, (BATCH, 2))
    scores = users(history) @ items(bought).t() / temperature
    loss = F.cross_entropy(scores, torch.arange(BATCH))
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    if step % 200 == 0:
        print(step, loss.item(), flush=True)
