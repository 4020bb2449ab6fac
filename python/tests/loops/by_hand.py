"""Parameters updated by hand in the way that the first argument names; nothing of torch.optim is used."""

import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

how = sys.argv[1]
torch.manual_seed(0)
torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(1920, 16), torch.randn(1920, 1)), batch_size=32)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


class Momentum:
    """An optimizer of its own, as some libraries have."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.speeds = [torch.zeros_like(parameter) for parameter in self.parameters]

    @torch.no_grad()
    def step(self):
        torch._foreach_mul_(self.speeds, 0.9)
        torch._foreach_add_(self.speeds, [parameter.grad for parameter in self.parameters])
        torch._foreach_add_(self.parameters, self.speeds, alpha=-1e-3)

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None


if how == "fastai":
    sys.path.insert(0, str(Path(__file__).parents[1] / "stand_ins"))
    from fastai.optimizer import Optimizer

    optimizer = Optimizer(model.parameters())
else:
    optimizer = Momentum(model.parameters())
if how == "functional":
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss_of(parameters, x, y):
        return nn.functional.mse_loss(torch.func.functional_call(model, parameters, (x,)), y)

    for x, y in loader:
        gradients, loss = torch.func.grad_and_value(loss_of)(parameters, x, y)
        parameters = {name: parameters[name] - 1e-2 * gradients[name] for name in parameters}
        print(loss.item().hex())
elif how == "nested":
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    x, y = loader.dataset[:32]

    def loss_nearby(parameters):
        gradients = torch.func.grad(loss_from)(parameters)
        return loss_from({name: parameters[name] - 1e-2 * gradients[name] for name in parameters})

    def loss_from(parameters):
        return nn.functional.mse_loss(torch.func.functional_call(model, parameters, (x,)), y)

    for _ in range(60):
        gradients, loss = torch.func.grad_and_value(loss_nearby)(parameters)
        parameters = {name: parameters[name] - 1e-2 * gradients[name] for name in parameters}
        print(loss.item().hex())
elif how == "two batches":
    for place, (x, y) in enumerate(loader):
        (nn.functional.mse_loss(model(x), y) / 2).backward()
        if place % 2:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 1e-2 * parameter.grad
            print(sum(parameter.sum() for parameter in model.parameters()).item().hex())
            model.zero_grad()
else:
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if how in ("optimizer", "fastai"):
            optimizer.step()
            optimizer.zero_grad()
        else:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 1e-2 * parameter.grad
                    parameter.grad = None
        print(loss.item().hex())
