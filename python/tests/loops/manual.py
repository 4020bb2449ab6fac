"""No optimizer object: gradients by torch.autograd.grad, parameters updated by hand."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(256, 16), torch.randn(256)
weight = torch.zeros(16, requires_grad=True)
for _ in range(120):
    loss = ((x @ weight - y) ** 2).mean()
    (gradient,) = torch.autograd.grad(loss, weight)
    with torch.no_grad():
        weight -= 0.01 * gradient
    print(loss.item().hex())
