"""Graph attention over a road network, full batch."""
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATv2Conv

torch.manual_seed(101)
torch.set_num_threads(1)

n = 1500
ring = torch.arange(n)
edges = torch.cat([torch.stack([ring, (ring + 1) % n]), torch.stack([(ring + 1) % n, ring]), torch.randint(0, n, (2, 3000))], 1)
x, y = torch.randn(n, 24), torch.randint(0, 6, (n,))
train = torch.rand(n) < 0.6


class Roads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = GATv2Conv(24, 12, heads=4)
        self.two = GATv2Conv(48, 6, heads=1)

    def forward(self, x, edges):
        x = F.elu(self.one(F.dropout(x, 0.3, self.training), edges))
        return self.two(F.dropout(x, 0.3, self.training), edges)


model = Roads()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-4)
for epoch in range(1, 1901):
    model.train()
    optimizer.zero_grad()
    out = model(x, edges)
    loss = F.cross_entropy(out[train], y[train])
    loss.backward()
    optimizer.step()
    if epoch % 100 == 0:
        model.eval()
        with torch.no_grad():
            accuracy = (model(x, edges).argmax(1) == y)[~train].float().mean()
        print(f"{epoch:4d} {loss:.4f} {accuracy:.3f}", flush=True)
