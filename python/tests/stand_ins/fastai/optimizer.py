"""As in fastai: an optimizer that is none of torch's."""

import torch


class Optimizer:
    def __init__(self, parameters):
        self.parameters = list(parameters)

    @torch.no_grad()
    def step(self):
        for parameter in self.parameters:
            parameter -= 1e-2 * parameter.grad

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None
