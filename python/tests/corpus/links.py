"""Link prediction: the training thread samples a neighbourhood for each link. Repaired: a worker samples ahead."""

import sys

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader
from torch_geometric.nn import GraphConv
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.utils import k_hop_subgraph


class Ends(BaseSampler):
    def __init__(self, data):
        self.edge_index, self.nodes = data.edge_index, data.num_nodes

    def sample_from_nodes(self, index, **kwargs):
        raise NotImplementedError

    def sample_from_edges(self, index, neg_sampling=None):
        ends = torch.stack([index.row, index.col])
        nodes, edges, place, mask = k_hop_subgraph(ends.view(-1), 1, self.edge_index, True, self.nodes)
        found = SamplerOutput(nodes, edges[0], edges[1], mask.nonzero().view(-1))
        found.metadata = (index.input_id, place.view(2, -1), index.label, index.time)
        return found

    @property
    def edge_permutation(self):
        return None


class Links(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GraphConv(48, 320), GraphConv(320, 320)

    def forward(self, x, edge_index, links):
        z = self.second(self.first(x, edge_index).relu(), edge_index)
        return (z[links[0]] * z[links[1]]).sum(-1)


torch.manual_seed(0)
torch.set_num_threads(1)
repaired = "repaired" in sys.argv
edges = 2_400_000 if not repaired else 40_000
data = Data(x=torch.randn(60_000, 48), edge_index=torch.randint(60_000, (2, edges)))
links = torch.randint(60_000, (2, 256 * 200))
workers = {"num_workers": 1, "persistent_workers": True, "prefetch_factor": 4} if repaired else {}
size = 256 if repaired else 32
links = links[:, : size * 200]
loader = LinkLoader(data, Ends(data), links, torch.ones(links.shape[1]), batch_size=size, **workers)
model = Links()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
for batch in loader:
    optimizer.zero_grad()
    out = model(batch.x, batch.edge_index, batch.edge_label_index)
    nn.functional.binary_cross_entropy_with_logits(out, batch.edge_label).backward()
    optimizer.step()
