"""Topics of papers in a citation graph: GraphSAGE with sampled neighbours (own sampler on CSR arrays)."""
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torch_geometric.nn import SAGEConv

torch.manual_seed(3)
rng = np.random.default_rng(3)
NODES, CLASSES, WIDTH = 80_000, 12, 48
FANOUTS = [25, 20, 15]


def make_graph():
    topic = rng.integers(0, CLASSES, NODES)
    degree = np.minimum(rng.zipf(1.7, NODES) + 8, 200)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    indices = rng.integers(0, NODES, indptr[-1])
    by_topic = np.argsort(topic, kind="stable")
    starts = np.searchsorted(topic[by_topic], np.arange(CLASSES + 1))
    source = np.repeat(topic, degree)
    same = rng.random(len(indices)) < 0.6
    low, high = starts[source], starts[source + 1]
    friends = by_topic[low + (rng.random(len(indices)) * (high - low)).astype(np.int64)]
    indices = np.where(same, friends, indices)
    features = np.eye(CLASSES, WIDTH, dtype=np.float32)[topic] + rng.normal(0, 1.5, (NODES, WIDTH)).astype(np.float32)
    return indptr, indices, features, topic


INDPTR, INDICES, FEATURES, TOPIC = make_graph()


def sample(seeds):
    nodes = np.asarray(seeds)
    layers = []
    for fanout in FANOUTS:
        degree = INDPTR[nodes + 1] - INDPTR[nodes]
        picks = (rng.random((len(nodes), fanout)) * degree[:, None]).astype(np.int64)
        found = INDICES[INDPTR[nodes][:, None] + picks].ravel()
        new = np.setdiff1d(found, nodes)
        every = np.concatenate([nodes, new])
        place = np.empty(NODES, dtype=np.int64)
        place[every] = np.arange(len(every))
        edges = np.stack([place[found], np.repeat(np.arange(len(nodes)), fanout)])
        layers.append((torch.from_numpy(edges), len(nodes)))
        nodes = every
    return torch.from_numpy(FEATURES[nodes]), layers[::-1], torch.from_numpy(TOPIC[np.asarray(seeds)])


class Sage(torch.nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        sizes = [WIDTH, hidden, hidden, CLASSES]
        self.convs = torch.nn.ModuleList(SAGEConv(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x, layers):
        for i, (conv, (edges, targets)) in enumerate(zip(self.convs, layers)):
            x = conv((x, x[:targets]), edges)
            x = F.relu(x) if i < 2 else x
        return x


seeds = rng.permutation(NODES)
train = DataLoader(seeds[:6000].tolist(), batch_size=32, shuffle=True, collate_fn=sample, drop_last=True)
test = DataLoader(seeds[-256:].tolist(), batch_size=64, collate_fn=sample)
model = Sage()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(9):
    model.train()
    for step, (x, layers, y) in enumerate(train):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, layers), y)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
    model.eval()
    with torch.no_grad():
        right = sum((model(x, layers).argmax(1) == y).sum().item() for x, layers, y in test)
    print(f"epoch {epoch} accuracy {right / 256:.3f}", flush=True)
