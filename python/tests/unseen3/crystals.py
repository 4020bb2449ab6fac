"""Formation energies of crystals with a graph network."""
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MessagePassing, global_add_pool

SPECIES = 20


def crystal(gen, near=10):
    atoms = int(torch.randint(16, 25, (1,), generator=gen))
    place = torch.rand(atoms, 3, generator=gen) * 3
    kind = torch.randint(0, SPECIES, (atoms,), generator=gen)
    apart = torch.cdist(place, place) + 1e6 * torch.eye(atoms)
    far, who = apart.topk(near, largest=False)
    target = torch.arange(atoms).repeat_interleave(near)
    energy = torch.exp(-far).sum() * 0.1 + (kind % 5).float().sum() * 0.05
    return Data(z=kind, edge_index=torch.stack([who.flatten(), target]), apart=far.flatten(),
                y=energy.view(1))


class Filter(MessagePassing):
    def __init__(self, width, basis):
        super().__init__(aggr="add")
        self.weight = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, width))
        self.update_atom = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, edge_index, basis):
        return h + self.update_atom(self.propagate(edge_index, h=h, w=self.weight(basis)))

    def message(self, h_j, w):
        return h_j * w


class EnergyNet(nn.Module):
    def __init__(self, width=128, layers=3, basis=24):
        super().__init__()
        self.embed = nn.Embedding(SPECIES, width)
        self.register_buffer("centres", torch.linspace(0, 3, basis))
        self.layers = nn.ModuleList(Filter(width, basis) for _ in range(layers))
        self.out = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, data):
        basis = torch.exp(-8 * (data.apart[:, None] - self.centres) ** 2)
        h = self.embed(data.z)
        for layer in self.layers:
            h = layer(h, data.edge_index, basis)
        return global_add_pool(self.out(h), data.batch).squeeze(1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    wrong = [F.l1_loss(model(batch), batch.y) for batch in loader]
    model.train()
    return torch.stack(wrong).mean().item()


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    crystals = [crystal(gen) for _ in range(2200)]
    train = DataLoader(crystals[:2048], batch_size=32, shuffle=True)
    valid = DataLoader(crystals[2048:], batch_size=76)
    model = EnergyNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    began = time.time()
    for epoch in range(8):
        for batch in train:
            loss = F.mse_loss(model(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {evaluate(model, valid):.3f} off")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
