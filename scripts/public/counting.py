"""What each program here begins with: chance from one seed, and a count of the optimizer's steps, printed at the end.

With the count goes a hash of the weights after each step: equal hashes are trainings that were equal to the last bit.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.metadata
import random
import runpy
import sys
import warnings
from collections.abc import Iterable

import numpy
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

_steps = 0
_weights = hashlib.sha256()


def start(every_optimizer: bool = True) -> None:
    """Seeds, and prints at the end how many steps torch's optimizers did, or how often the program called `count`."""
    warnings.filterwarnings("ignore")
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    if every_optimizer:
        register_optimizer_step_post_hook(
            lambda optimizer, *_: count(p for group in optimizer.param_groups for p in group["params"])
        )
    atexit.register(lambda: print(f"counted {_steps} weights {_weights.hexdigest()[:16]}"))


def count(parameters: Iterable[torch.Tensor]) -> None:
    """Counts a step after which the parameters are these."""
    global _steps
    _steps += 1
    for parameter in parameters:
        _weights.update(parameter.detach().flatten().view(torch.uint8).numpy())


def console_script(name: str, *arguments: str) -> None:
    """Runs a package's command in this process, as its script in `bin` would."""
    sys.argv = [name, *arguments]
    (script,) = importlib.metadata.entry_points(group="console_scripts", name=name)
    script.load()()


def module(name: str, *arguments: str) -> None:
    """Runs a module of a package in this process, as `python -m` would."""
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)
