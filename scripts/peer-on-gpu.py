#!/usr/bin/env python3
"""Trains what gnntop trains with PyTorch Geometric on a GPU; prints one JSON line: step time, peak memory of the device.

usage: peer-on-gpu.py ROW [--device cuda] [--batch N] [--steps 30] [--layers 64] [--hidden 64] [--nodes 232965] [--edges 114615892]
                      [--cora DIR] [--compile] [--resident]

ROW is pna, gcn, sage or gat. Everything is in f32 without TF32. A step is what the device does and the wait for its end: transfer to
the device from pinned memory, forward, backward, Adam. What PyTorch Geometric's loader does on the CPU is not timed, to its favour:
batches are made beforehand (pna: 20 of them; sage and gat: 8, fan-outs 10, 10, 10, as one subgraph, which is what its loader gives).
--resident keeps the features of sage and gat on the device and gathers them there, as gnntop does with --features-on-device.
"""
import argparse, json, statistics, time
import numpy as np
import torch
import torch.nn.functional as F

p = argparse.ArgumentParser(description=__doc__.split("\n")[0], usage=__doc__.split("usage: ")[1].split("\n\n")[0])
p.add_argument("row", choices=["pna", "gcn", "sage", "gat"])
p.add_argument("--device", default="cuda")
p.add_argument("--cora")
p.add_argument("--compile", action="store_true")
p.add_argument("--resident", action="store_true")
for name, default in dict(batch=512, steps=30, layers=64, hidden=64, nodes=232_965, edges=114_615_892).items():
    p.add_argument("--" + name, type=int, default=default)
a = p.parse_args()
cuda = a.device.startswith("cuda")
torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(0)
rng = np.random.default_rng(1)


def pinned(tensors):
    return [t.pin_memory() if cuda else t for t in tensors]


def moved(tensors):
    return [t.to(a.device, non_blocking=True) for t in tensors]


def molecules(count):
    """Random trees with ring closures, about 14 nodes and 29 directed edges each, side by side in one graph."""
    sources, targets, graph, first = [], [], [], 0
    for number in range(count):
        n = int(np.clip(rng.normal(14.1, 2.7), 4, 20))
        pairs = [(v - 1 - min(v - 1, int(rng.integers(0, 3))), v) for v in range(1, n)]
        pairs += [tuple(sorted(rng.choice(n, 2, replace=False))) for _ in range(rng.poisson(1.3))]
        for u, v in pairs:
            sources += [first + u, first + v]
            targets += [first + v, first + u]
        graph += [number] * n
        first += n
    features = torch.from_numpy(rng.integers(0, 5, (first, 9)).astype(np.float32))
    return [features, torch.tensor([sources, targets]), torch.tensor(graph), torch.randn(count)]


def pna():
    from torch_geometric.nn import global_max_pool
    from torch_geometric.nn.models import PNA
    batches = [molecules(a.batch) for _ in range(min(20, a.steps + 5) if a.batch <= 512 else 4)]
    degrees = torch.cat([torch.bincount(edges[1], minlength=len(x)) for x, edges, _, _ in batches])
    model = PNA(9, a.hidden, a.layers, 1, aggregators=["mean", "min", "max", "std"], scalers=["identity", "amplification", "attenuation"],
                deg=torch.bincount(degrees, minlength=10)).to(a.device)

    def loss(run, x, edges, graph, y):
        return F.l1_loss(global_max_pool(run(x, edges), graph, a.batch).view(-1), y)

    return model, batches, loss, 1e-6, dict(nodes=len(batches[0][0]), edges=batches[0][1].shape[1])


def gcn():
    from torch_geometric.nn import GCNConv
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    if a.cora:
        pairs = np.loadtxt(f"{a.cora}/cora.edges.tsv", comments="#", dtype=np.int64).T
    else:
        pairs = rng.integers(0, 2708, (2, 5278))
    edges, weight = gcn_norm(torch.from_numpy(np.concatenate([pairs, pairs[::-1]], 1)), None, 2708)

    class Gcn(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = GCNConv(1433, 16, normalize=False), GCNConv(16, 7, normalize=False)

        def forward(self, x, edges, weight):
            return self.two(F.relu(self.one(x, edges, weight)), edges, weight)

    x = (torch.rand(2708, 1433) < 0.0127).float()
    fixed = [t.to(a.device) for t in (x, edges, weight, torch.randint(0, 7, (140,)))]

    def loss(run):
        return F.cross_entropy(run(*fixed[:3])[:140], fixed[3])

    return Gcn().to(a.device), [[]], loss, 0.01, dict(nodes=2708, edges=edges.shape[1])


def sampled():
    from torch_geometric.nn import GATConv, SAGEConv
    widths = [602, 256, 256, 41] if a.row == "sage" else [602, 16, 16, 41]

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            make = (lambda k: SAGEConv(widths[k], widths[k + 1])) if a.row == "sage" else \
                (lambda k: GATConv(widths[k], widths[k + 1], dropout=0.6 if k < 2 else 0.0))
            self.convs = torch.nn.ModuleList(make(k) for k in range(3))

        def forward(self, x, edges):
            for k, conv in enumerate(self.convs):
                x = conv(x, edges)
                if k < 2:
                    x = F.dropout(x.relu(), 0.5, self.training) if a.row == "sage" else F.dropout(F.elu(x), 0.6, self.training)
            return x

    # Only neighbours that are drawn matter: every node draws among its own, uniformly over all nodes.
    degrees = np.maximum(1, rng.pareto(1.5, a.nodes) * a.edges / a.nodes / 2).astype(np.int64)
    table = torch.randn(a.nodes, 602)
    on_device = table.to(a.device) if a.resident else None

    def batch():
        seeds = rng.choice(a.nodes, a.batch, replace=False)
        nodes, frontier, edges = seeds, seeds, []
        place = np.full(a.nodes, -1, dtype=np.int64)
        place[seeds] = np.arange(len(seeds))
        for _ in range(3):
            count = np.minimum(10, degrees[frontier])
            target = np.repeat(place[frontier], count)
            drawn = rng.integers(0, a.nodes, len(target))
            fresh = np.unique(drawn[place[drawn] < 0])
            place[fresh] = len(nodes) + np.arange(len(fresh))
            nodes, frontier = np.concatenate([nodes, fresh]), fresh
            edges.append(np.stack([place[drawn], target]))
        nodes = torch.from_numpy(nodes)
        return [nodes if a.resident else table[nodes], torch.from_numpy(np.concatenate(edges, 1)), torch.randint(0, 41, (a.batch,))]

    def loss(run, x, edges, labels):
        x = on_device[x] if a.resident else x
        return F.cross_entropy(run(x, edges)[:len(labels)], labels)

    batches = [batch() for _ in range(8)]
    return Net().to(a.device), batches, loss, 5e-3, dict(nodes=len(batches[0][0]), edges=batches[0][1].shape[1])


model, batches, loss_of, rate, sizes = dict(pna=pna, gcn=gcn, sage=sampled, gat=sampled)[a.row]()
run = torch.compile(model, dynamic=True) if a.compile else model
optimizer = torch.optim.Adam(model.parameters(), lr=rate)
batches = [pinned(batch) for batch in batches]
wait = torch.cuda.synchronize if cuda else (lambda: None)
times = []
for step in range(a.steps + 5):
    if step == 5 and cuda:
        torch.cuda.reset_peak_memory_stats()
    wait()
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = loss_of(run, *moved(batches[step % len(batches)]))
    loss.backward()
    optimizer.step()
    loss.item()
    wait()
    times.append((time.perf_counter() - begin) * 1e3)
times = sorted(times[5:])
import torch_geometric
print(json.dumps(dict(peer=f"pyg {torch_geometric.__version__}, torch {torch.__version__}", row=a.row, batch=a.batch, **sizes, compiled=a.compile,
                      resident=a.resident, step_ms=round(statistics.median(times), 3), p95_ms=round(times[int(len(times) * 0.95)], 3),
                      peak_mib=torch.cuda.max_memory_allocated() >> 20 if cuda else None)))
