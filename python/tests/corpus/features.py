"""Wide features, of which each batch gathers a part on the training thread. Repaired: they are narrow."""

import sys

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SGConv
from torch_geometric.sampler import BaseSampler, SamplerOutput


class Circles(BaseSampler):
    """The nodes after each seed: almost nothing to sample."""

    def sample_from_nodes(self, index, **kwargs):
        nodes = torch.cat([index.node] + [(index.node + k) % 60_000 for k in range(1, 24)])
        row = torch.arange(index.node.numel(), nodes.numel())
        col = row % index.node.numel()
        return SamplerOutput(nodes, row, col, None, metadata=(index.input_id, None))

    def sample_from_edges(self, index, **kwargs):
        raise NotImplementedError

    @property
    def edge_permutation(self):
        return None


torch.manual_seed(0)
torch.set_num_threads(1)
width = 64 if "repaired" in sys.argv else 4096
features = torch.randn(60_000, 64).repeat(1, width // 64)
data = Data(x=features, edge_index=torch.randint(60_000, (2, 8)), y=torch.randint(4, (60_000,)))
loader = NodeLoader(
    data, Circles(), input_nodes=torch.randperm(60_000)[: 64 * (240 if width == 64 else 600)], batch_size=64
)
narrow, conv = nn.Linear(64, 96), SGConv(96, 4, K=1)
hidden = nn.Sequential(nn.ReLU(), nn.Linear(96, 96), nn.ReLU())
model = nn.ModuleDict({"narrow": narrow, "hidden": hidden, "conv": conv})
optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    z = hidden(narrow(batch.x[:, :64]))
    out = conv(z, batch.edge_index)[: batch.batch_size]
    nn.functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
    optimizer.step()
