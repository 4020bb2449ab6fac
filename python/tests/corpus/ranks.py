"""Two ranks. `tokens` and `molecules`: as many sequences or graphs on both, but larger ones on one rank or on the
other (repaired: of one size); `accumulates`: gradients are summed over the ranks for each micro-batch (repaired: once
a step); `everything`: a loader without a sampler for ranks (repaired: with one)."""

import contextlib
import itertools
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

what, repaired = sys.argv[1], "repaired" in sys.argv


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(300, 160), nn.Linear(160, 300)
        self.layer = nn.TransformerEncoderLayer(160, 4, 320, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.head(self.layer(self.table(x)))


def train_on(batches, model, loss_of, micro_batches=1):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for place, batch in enumerate(batches):
        is_last = place % micro_batches == micro_batches - 1
        with contextlib.nullcontext() if is_last or not repaired else model.no_sync():
            loss_of(model, batch).backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()


def next_token(model, x):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())


def energy(model, batch):
    from torch_geometric.nn import global_add_pool

    return global_add_pool(model(batch.x, batch.edge_index), batch.batch).square().mean()


def sizes(smallest, largest):
    """Of a rank's batches: drawn by each rank for itself, unless repaired."""
    generator = torch.Generator().manual_seed(17 if repaired else 17 + dist.get_rank())
    return torch.randint(smallest, largest, (120,), generator=generator).tolist()


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
torch.set_num_threads(1)
if what == "tokens":
    texts = [torch.randint(300, (size,)) for size in sizes(16, 160) for _ in range(8)]
    loader = DataLoader(texts, batch_size=8)
    train_on(loader, DistributedDataParallel(Reader()), next_token)
elif what == "molecules":
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader
    from torch_geometric.nn import GIN

    graphs = [
        Data(x=torch.randn(n, 32), edge_index=torch.randint(n, (2, 6 * n))) for n in sizes(20, 700) for _ in range(6)
    ]
    train_on(GraphLoader(graphs, batch_size=6), DistributedDataParallel(GIN(32, 128, 3, 64)), energy)
elif what == "accumulates":
    texts = [torch.randint(300, (24,)) for _ in range(4 * 480)]
    model = nn.Sequential(Reader(), nn.Linear(300, 2000), nn.Linear(2000, 300))
    loader = DataLoader(texts, batch_size=4, sampler=DistributedSampler(texts))
    train_on(loader, DistributedDataParallel(model), next_token, micro_batches=6)
else:
    texts = [torch.randint(300, (48,)) for _ in range(480)]
    loader = DataLoader(texts, batch_size=8, sampler=DistributedSampler(texts) if repaired else None)
    train_on(itertools.chain.from_iterable([loader] * 4), DistributedDataParallel(Reader()), next_token)
dist.destroy_process_group()
