"""An exception in the forward pass ends the program with a traceback."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(16, 1), 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 12:
            raise ValueError("the thirteenth batch is bad")
        return self.layer(x)


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(640, 16), torch.randn(640, 1)), batch_size=32)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
