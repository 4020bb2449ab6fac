"""PyG: neighbourhoods sampled from one graph by NodeLoader, with as many workers as the first argument says.

Where neither pyg-lib nor torch-sparse is installed, NeighborLoader does not sample; then a sampler of one's own does.
"""

import sys

import torch
import torch_geometric.typing
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.utils import k_hop_subgraph


class Hops(BaseSampler):
    def __init__(self, data):
        self.edge_index, self.nodes = data.edge_index, data.num_nodes

    def sample_from_nodes(self, index, **kwargs):
        seeds = index.node
        nodes, edges, mapping, mask = k_hop_subgraph(
            seeds, 1, self.edge_index, relabel_nodes=True, num_nodes=self.nodes
        )
        order = torch.cat(
            [mapping, torch.tensor([n for n in range(len(nodes)) if n not in set(mapping.tolist())])]
        ).long()
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        return SamplerOutput(
            nodes[order], place[edges[0]], place[edges[1]], mask.nonzero().view(-1), metadata=(index.input_id, None)
        )

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


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    workers = int(sys.argv[1])
    data = Data(x=torch.randn(1000, 16), edge_index=torch.randint(1000, (2, 8000)), y=torch.randint(4, (1000,)))
    options = dict(input_nodes=torch.arange(640), batch_size=64, num_workers=workers)
    if torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE:
        loader = NeighborLoader(data, num_neighbors=[5, 5], **options)
    else:
        loader = NodeLoader(data, node_sampler=Hops(data), **options)
    model = Sage()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[: batch.batch_size]
            loss = nn.functional.cross_entropy(out, batch.y[: batch.batch_size])
            loss.backward()
            optimizer.step()
            print(loss.item().hex())


if __name__ == "__main__":
    main()
