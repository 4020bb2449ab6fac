"""Neighbourhoods are sampled by the training thread: PyG's loader has no workers unless it is given some."""

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.utils import k_hop_subgraph


class Hops(BaseSampler):
    """Works without pyg-lib."""

    def __init__(self, data):
        self.edge_index, self.nodes = data.edge_index, data.num_nodes

    def sample_from_nodes(self, index, **kwargs):
        nodes, edges, _, mask = k_hop_subgraph(index.node, 2, self.edge_index, relabel_nodes=True, num_nodes=self.nodes)
        return SamplerOutput(nodes, edges[0], edges[1], mask.nonzero().view(-1), metadata=(index.input_id, None))

    def sample_from_edges(self, index, **kwargs):
        raise NotImplementedError

    @property
    def edge_permutation(self):
        return None


class Sage(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = SAGEConv(16, 32), SAGEConv(32, 4)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


torch.manual_seed(0)
torch.set_num_threads(1)
data = Data(x=torch.randn(50_000, 16), edge_index=torch.randint(50_000, (2, 400_000)), y=torch.randint(4, (50_000,)))
loader = NodeLoader(data, node_sampler=Hops(data), input_nodes=torch.arange(32 * 150), batch_size=32)
model = Sage()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for batch in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch.x, batch.edge_index), batch.y).backward()
    optimizer.step()
