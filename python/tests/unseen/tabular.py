"""Deep residual network on a table, with averaged weights."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(43)
torch.set_num_threads(1)


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.a = nn.Linear(dim, dim)
        self.b = nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.b(torch.nn.functional.silu(self.a(self.norm(x))))


class Average:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {name: value.clone() for name, value in model.state_dict().items()}

    def update(self, model):
        drift = 0.0
        for name, value in model.state_dict().items():
            old = self.shadow[name]
            new = self.decay * old + (1 - self.decay) * value
            drift += (new - old).norm().item() ** 2
            drift += (new - value).abs().max().item() * 0
            self.shadow[name] = new.clone()
        return drift ** 0.5


x = torch.randn(64 * 110, 48)
y = (x[:, :5].prod(1, keepdim=True) + x[:, 5:6].sin())
model = nn.Sequential(nn.Linear(48, 48), *[Layer(48) for _ in range(40)], nn.Linear(48, 1))
average = Average(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, foreach=True)
loader = DataLoader(TensorDataset(x, y), 64, shuffle=True)
for epoch in range(10):
    for features, target in loader:
        loss = nn.functional.smooth_l1_loss(model(features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        drift = average.update(model)
    print(epoch, loss.item(), drift, flush=True)
