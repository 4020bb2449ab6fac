"""Parameters changed by hand, without an optimizer: `plain` subtracts gradients, `meta` learns how to start."""

import sys

import torch
from torch import nn
from torch.func import functional_call, grad


def plain(model, steps=240):
    for _ in range(steps):
        x = torch.randn(768, 80)
        (model(x) - x.roll(1, 1)).square().mean().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 1e-3 * parameter.grad
                parameter.grad = None


def meta(model, steps=120):
    weights = {name: value.detach().clone() for name, value in model.named_parameters()}

    def inner(weights, x):
        return (functional_call(model, weights, (x,)) - x).square().mean()

    def outer(weights, x):
        gradients = grad(inner)(weights, x)
        nearer = {name: weights[name] - 1e-2 * gradients[name] for name in weights}
        return inner(nearer, x.flip(0))

    for _ in range(steps):
        gradients = grad(outer)(weights, torch.randn(384, 80))
        weights = {name: weights[name] - 1e-3 * gradients[name] for name in weights}


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(80, 640), nn.Softplus(), nn.Linear(640, 640), nn.Softplus(), nn.Linear(640, 80))
{"plain": plain, "meta": meta}[sys.argv[1]](model)
