"""GPyTorch: exact regression, as in its first tutorial; each step has all data and no loader."""

import counting
import gpytorch
import torch

counting.start()


class ExactGPModel(gpytorch.models.ExactGP):
    """The tutorial's model."""

    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        """The prior at x."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


x = torch.linspace(0, 1, 100)
y = torch.sin(x * 6.28) + torch.randn(100) * 0.2
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = ExactGPModel(x, y, likelihood)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for _ in range(50):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    print(loss.item())
    optimizer.step()
