"""Waits for a device: what is watched stays what it was, and is counted and timed where there is a device.

There is no device here. Tensors of the type `meta` stand in for those of one: they are not on the CPU, and raise
where their values would be copied.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import GNNTOP, REACH, environment, report

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

TRAINS = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
far = torch.empty(3, device="meta")

def copy(tensor):
    try:
        return tensor.cpu()
    except NotImplementedError as error:
        return type(error).__name__

def train(reads):
    for step in range(60):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).sum()
        reads(loss)
        loss.backward()
        optimizer.step()
"""

SAME = """
import inspect, pickle
from torch.overrides import TorchFunctionMode
base = torch._C.TensorBase
for name in ("item", "tolist", "cpu", "nonzero", "__float__", "__int__", "__bool__", "__index__"):
    method = getattr(torch.Tensor, name)
    print(name, method is getattr(base, name), type(method).__name__, name in vars(torch.Tensor), repr(method))
    print(type(getattr(far, name)).__name__, method.__doc__ == getattr(base, name).__doc__, method.__objclass__)
    print(pickle.loads(pickle.dumps(method)) is method)
    try:
        inspect.signature(method)
    except ValueError as error:
        print(error)
print(torch._C._cuda_synchronize if hasattr(torch._C, "_cuda_synchronize") else None)

class Heard(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print("heard", function)
        return super().__torch_function__(function, types, args, kwargs or {})
class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        print("mode", function)
        return function(*args, **(kwargs or {}))
one = torch.ones(1)
def reads(loss):
    print(float(loss), int(one), bool(one), one.tolist(), one.item(), one.cpu() is one)
    print(one.nonzero().tolist(), [5, 6][one.long()])
    print(one.as_subclass(Heard).item(), copy(far))
    with Mode():
        print(one.item(), one.cpu() is one)
    for wrong in (lambda: one.item(1), lambda: one.cpu(1), lambda: torch.ones(2).item(), lambda: bool(torch.ones(2))):
        try:
            wrong()
        except Exception as error:
            print(type(error).__name__, error)
train(reads)
"""


def ran(program: str, home: Path, watched: bool) -> str:
    script = home / "train.py"
    home.mkdir()
    script.write_text(TRAINS + program)
    variables = environment(home / "sessions") | (REACH if watched else {"GNNTOP": "0"})
    done = subprocess.run([sys.executable, script], env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def session(home: Path) -> dict[str, Any]:
    (path,) = (path for path in (home / "sessions").iterdir() if path.is_dir())
    return report(path)


def test_what_is_watched_looks_and_does_as_before(tmp_path: Path) -> None:
    assert ran(SAME, tmp_path / "watched", True) == ran(SAME, tmp_path / "alone", False)


def test_waits_are_counted_and_have_their_lines(tmp_path: Path) -> None:
    ran("train(lambda loss: [copy(far) for _ in range(3)])", tmp_path / "home", True)
    seen = session(tmp_path / "home")
    waits = [span for span in seen["spans"] if span["name"].startswith("wait for the device: cpu in copy (train.py:")]
    assert [wait["count"] >= 1 for wait in waits] == [True], seen["spans"]
    counters = {counter["name"]: counter for counter in seen["counters"]}
    assert counters["waits for the device"]["last"] == 3, counters
    assert counters["waits for the device (ns)"]["last"] > 0, counters


def test_reads_on_the_cpu_are_a_fact_and_no_finding(tmp_path: Path) -> None:
    ran("train(lambda loss: (loss.item(), float(loss)))", tmp_path / "home", True)
    seen = session(tmp_path / "home")
    facts = json.dumps(seen["session"])
    assert "2.0 a step, on the CPU" in facts, facts
    assert not any(span["name"].startswith("wait") for span in seen["spans"])
    assert not any(finding["kind"] == "host-sync" for finding in seen["findings"]["found"])
