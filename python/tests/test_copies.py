"""What programs do with what is hooked, other than to call it: they copy it, pickle it, and compile it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from programs import REACH, environment

pytest.importorskip("torch")

TRAINED = """
import copy, pickle, torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
    def forward(self, x):
        return self.layer(x) * 0 + self.layer.bias

class ByDictionary(Model):
    def __deepcopy__(self, memo):
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        for name, value in vars(self).items():
            vars(new)[name] = copy.deepcopy(value, memo)
        return new

class WithState(Model):
    def __getstate__(self):
        return vars(self).copy()

def trained(kind):
    model = kind()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert type(model._call_impl.__func__).__name__ == "Hooked", "not hooked: this shows nothing"
    return model

def assert_is_own(model):
    nn.init.constant_(model.layer.bias, 42.0)
    assert model(torch.ones(1, 2)).item() == 42.0
"""

COPIES = """
assert_is_own(copy.deepcopy(trained(Model)))
assert_is_own(copy.deepcopy(trained(ByDictionary)))
assert_is_own(copy.deepcopy(trained(WithState)))
assert_is_own(pickle.loads(pickle.dumps(trained(WithState))))
copied = Model()
vars(copied).update(vars(trained(Model)))  # what it was copied from is gone
copied.layer = nn.Linear(2, 1)
assert_is_own(copied)
replica = trained(Model)._replicate_for_data_parallel()
replica.layer = nn.Linear(2, 1)
assert_is_own(replica)
"""

PICKLED = """
trained(Model)
for function in (torch.save, nn.utils.clip_grad_norm_, torch.autograd.backward, torch.distributed.all_reduce):
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function
"""

SCRIPTED = """
@torch.jit.script
def slope(x: torch.Tensor):
    return torch.autograd.grad([(x * x).sum()], [x])[0]

assert slope(torch.ones(2, requires_grad=True)).tolist() == [2.0, 2.0]
"""


@pytest.mark.parametrize("does", [COPIES, PICKLED, SCRIPTED], ids=["copies", "pickled", "scripted"])
def test_programs_do_with_what_is_hooked_what_they_do_alone(does: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TRAINED + does)
    variables = environment(tmp_path / "sessions") | REACH
    done = subprocess.run([sys.executable, program], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
