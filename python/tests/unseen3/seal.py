"""Flags suspicious accounts in a payment network from the neighbourhood of each account."""
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_mean_pool
from torch_geometric.utils import k_hop_subgraph, to_undirected


def payment_network(accounts=6000, payments=22000, width=48, seed=3):
    gen = torch.Generator().manual_seed(seed)
    src = torch.randint(0, accounts, (payments,), generator=gen)
    hop = torch.randint(1, 400, (payments,), generator=gen)
    dst = (src + hop) % accounts
    edge_index = to_undirected(torch.stack([src, dst]))
    x = torch.randn(accounts, width, generator=gen)
    shady = (x[:, :4].sum(1) + 0.3 * torch.randn(accounts, generator=gen) > 1.5).long()
    return Data(x=x, edge_index=edge_index, y=shady)


class Neighbourhoods(Dataset):
    """One item is the two-hop neighbourhood of a labelled account."""

    def __init__(self, network, accounts, hops=2):
        self.network = network
        self.accounts = accounts
        self.hops = hops

    def __len__(self):
        return len(self.accounts)

    def __getitem__(self, i):
        account = int(self.accounts[i])
        nodes, edges, where, _ = k_hop_subgraph(
            account, self.hops, self.network.edge_index, relabel_nodes=True,
            num_nodes=self.network.num_nodes)
        x = self.network.x[nodes]
        mark = torch.zeros(len(nodes), 1)
        mark[where] = 1
        return Data(x=torch.cat([x, mark], 1), edge_index=edges, y=self.network.y[account])


class Scorer(nn.Module):
    def __init__(self, width, hidden=224, layers=4):
        super().__init__()
        self.encode = nn.Linear(width, hidden)
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)))
            for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, batch):
        h = self.encode(batch.x)
        for conv, norm in zip(self.convs, self.norms):
            h = h + F.relu(norm(conv(h, batch.edge_index)))
        return self.head(global_mean_pool(h, batch.batch))


def train_epoch(model, loader, optimizer):
    model.train()
    right = seen = 0
    for batch in loader:
        optimizer.zero_grad()
        scores = model(batch)
        loss = F.cross_entropy(scores, batch.y)
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == batch.y).sum()
        seen += len(batch.y)
    return float(right) / seen


def main():
    torch.manual_seed(0)
    network = payment_network()
    accounts = torch.randperm(network.num_nodes)[:1536]
    loader = DataLoader(Neighbourhoods(network, accounts), batch_size=24, shuffle=True)
    model = Scorer(network.num_features + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    began = time.time()
    for epoch in range(6):
        accuracy = train_epoch(model, loader, optimizer)
        print(f"epoch {epoch}: accuracy {accuracy:.3f}")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
