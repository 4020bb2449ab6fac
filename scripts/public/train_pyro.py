"""Pyro: `SVI`, as in its tutorial."""

import counting
import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Trace_ELBO

counting.start()


def guide():
    """A normal distribution whose mean is learnt."""
    pyro.sample("z", dist.Normal(pyro.param("m", torch.zeros(())), 1.0))


def model():
    """What was seen is near z."""
    z = pyro.sample("z", dist.Normal(0.0, 1.0))
    pyro.sample("seen", dist.Normal(z, 1.0), obs=torch.tensor(1.0))


svi = SVI(model, guide, pyro.optim.SGD({"lr": 0.01}), Trace_ELBO())
print([svi.step() for _ in range(50)])
