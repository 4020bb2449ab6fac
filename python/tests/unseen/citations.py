"""GraphSAGE on a citation graph with sampled neighbourhoods."""
import random

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import BaseSampler, SamplerOutput

torch.manual_seed(5)
random.seed(5)
torch.set_num_threads(1)

N, CLASSES = 8000, 12
edge_index = torch.randint(0, N, (2, N * 12))
data = Data(x=torch.randn(N, 64), edge_index=edge_index, y=torch.randint(0, CLASSES, (N,)))


class NeighbourSampler(BaseSampler):
    def __init__(self, edge_index, fanouts):
        self.fanouts = fanouts
        self.neighbours = {}
        for source, target in edge_index.t().tolist():
            self.neighbours.setdefault(target, []).append(source)

    def sample_from_nodes(self, inputs, **kwargs):
        seeds = inputs.node.tolist()
        local = {node: i for i, node in enumerate(seeds)}
        nodes, rows, columns = list(seeds), [], []
        frontier = list(seeds)
        for fanout in self.fanouts:
            following = []
            for node in frontier:
                candidates = self.neighbours.get(node, [])
                for other in random.sample(candidates, min(fanout, len(candidates))):
                    if other not in local:
                        local[other] = len(nodes)
                        nodes.append(other)
                        following.append(other)
                    rows.append(local[other])
                    columns.append(local[node])
            frontier = following
        return SamplerOutput(torch.tensor(nodes), torch.tensor(rows), torch.tensor(columns), None, metadata=(inputs.input_id, inputs.time))

    def sample_from_edges(self, inputs, neg_sampling=None):
        raise NotImplementedError

    @property
    def edge_permutation(self):
        return None


class Sage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = SAGEConv(64, 64)
        self.second = SAGEConv(64, CLASSES)

    def forward(self, x, edge_index):
        return self.second(F.relu(self.first(x, edge_index)), edge_index)


train = torch.arange(0, N - N % 128)
loader = NodeLoader(data, NeighbourSampler(edge_index, (10, 10)), input_nodes=train, batch_size=128, shuffle=True, num_workers=0)
model = Sage()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
for epoch in range(14):
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        out = model(batch.x, batch.edge_index)[:128]
        loss = F.cross_entropy(out, batch.y[:128])
        loss.backward()
        optimizer.step()
        total += float(loss)
    print(f"Epoch {epoch:02d} loss {total / len(loader):.4f}", flush=True)
