"""skorch: `NeuralNetRegressor`, as in its README."""

import counting
import torch
from skorch import NeuralNetRegressor

counting.start()
x, y = torch.randn(640, 8), torch.randn(640, 1)
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
net = NeuralNetRegressor(model, max_epochs=5, batch_size=32, train_split=None, verbose=0)
net.fit(x.numpy(), y.numpy())
print(net.history[:, "train_loss"])
