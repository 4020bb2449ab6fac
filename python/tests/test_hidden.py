"""Programs that take from gnntop what it is reached by, or writes to: what is missing then is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from programs import GNNTOP, environment, recorded, report, run, steps_of

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

TRAINS = """
def train(steps):
    import torch
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x in torch.randn(steps, 4, 8):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    return optimizer
"""


def under_gnntop(code: str, directory: Path) -> tuple[str, dict]:
    """What the program prints, and what was recorded of it."""
    ran, recording = recorded([sys.executable, "-c", TRAINS + code], directory)
    assert ran.code == 0, ran.err.decode()
    return ran.out.decode(), report(recording)


CLEARS = {
    "before torch is imported": "import os; os.environ.clear(); train(20)",
    "before it trains": "import os, torch; os.environ.clear(); train(20)",
    "only the directory": "import os, torch; del os.environ['GNNTOP_DIR']; train(20)",
    "in a dictionary of its own": "import os; os.environ = {}; train(20)",
}


@pytest.mark.parametrize("code", CLEARS.values(), ids=CLEARS)
def test_a_program_that_clears_its_environment_is_seen(code: str, tmp_path: Path) -> None:
    _, seen = under_gnntop(code, tmp_path)
    assert steps_of(seen) == 20


def test_a_program_that_has_replaced_the_finders_is_told_of_it(tmp_path: Path) -> None:
    code = "import sys; sys.meta_path[:] = [one for one in sys.meta_path if isinstance(one, type)]; train(20)"
    command = [str(GNNTOP), "run", "--plain", "--", sys.executable, "-c", TRAINS + code]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, timeout=120)
    assert done.returncode == 0
    assert b"sys.meta_path, where gnntop waits for torch, was replaced before torch was imported" in done.stderr


# As comet_ml's: for the modules that it changes it asks Python's own finder, and nobody else.
FIRST = """
import sys
from importlib.machinery import PathFinder
class First:
    def find_spec(self, name, path=None, target=None):
        return PathFinder.find_spec(name, path, target) if {it} else None
sys.meta_path.insert(0, First())
train(20)
"""


@pytest.mark.parametrize("it", ["name == 'torch'", "name.partition('.')[0] == 'torch'"], ids=["torch", "its parts too"])
def test_a_finder_that_finds_torch_first_hides_nothing(it: str, tmp_path: Path) -> None:
    _, seen = under_gnntop(FIRST.format(it=it), tmp_path)
    assert steps_of(seen) == 20


# A sandbox for code that nobody has read would end the process for files that it does not expect, as torch's own.
LOOKS = """
import os, sys
def hook(event, arguments):
    if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        os.write(1, b"%r\\n" % (arguments[0],))
sys.addaudithook(hook)
train(20)
os._exit(0)
"""


def test_an_audit_hook_hears_of_no_file_that_is_opened_for_writing(tmp_path: Path) -> None:
    opened, seen = under_gnntop(LOOKS, tmp_path)
    assert steps_of(seen) == 20
    assert opened
    assert "gnntop" not in opened


# From then on nothing can be opened in the program, and nothing of ours is open.
TAKES_ALL_NUMBERS = """
import os, resource, time
train(10)
time.sleep(0.3)
resource.setrlimit(resource.RLIMIT_NOFILE, (1200, 1200))
for number in range(3, 1200):
    while True:
        try:
            os.dup2(1, number)
            break
        except OSError:  # another thread opens a file under this number
            pass
train(100)
time.sleep(1.5)
"""


def test_a_program_that_takes_all_descriptors_has_an_end_that_says_what_is_not_recorded(tmp_path: Path) -> None:
    _, seen = under_gnntop(TAKES_ALL_NUMBERS, tmp_path)
    if steps_of(seen) < 110:
        assert "exit code 0; nothing was recorded in its last " in seen["session"]["end_reason"], seen["session"]


def test_a_training_whose_optimizer_stays_hides_no_step_of_the_next(tmp_path: Path) -> None:
    _, seen = under_gnntop("kept = [train(5), train(1), train(40)]", tmp_path)
    assert steps_of(seen) == 46


# What is hooked in a library that passes it on, and in a class that others inherit it from.
PICKLES = """
import functools, pickle, torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import BaseData
import accelerate, accelerate.utils, accelerate.utils.operations as operations
assert operations.send_to_device is accelerate.utils.send_to_device
pickle.dumps(functools.partial(accelerate.utils.send_to_device, device="cpu"))
for function in (Data.to, HeteroData.to):
    assert pickle.loads(pickle.dumps(function)) is function
BaseData.to = lambda *_: "mine"
assert Data().to("cpu") == "mine"
train(20)
"""


def test_functions_that_are_hooked_are_pickled_and_replaced_as_without_hooks(tmp_path: Path) -> None:
    _, seen = under_gnntop(PICKLES, tmp_path)
    assert steps_of(seen) == 20


FORBIDS_IMPORTS = """
import sys, torch, torch._dynamo
class Forbids:
    def find_spec(self, name, path=None, target=None):
        raise KeyboardInterrupt(name)
sys.meta_path.insert(0, Forbids())
train(20)
sys.meta_path.pop(0)
"""


def test_nothing_is_imported_after_torch(tmp_path: Path) -> None:
    _, seen = under_gnntop(FORBIDS_IMPORTS, tmp_path)
    assert steps_of(seen) == 20


RAISES = """
import torch
train(20)
class Endless(Exception):
    def __getattribute__(self, name):
        print("asked for", name)
        return super().__getattribute__(name)
    @property
    def exceptions(self):
        while True:
            yield Endless()
    @property
    def __context__(self):
        raise KeyboardInterrupt
raise Endless()
"""


def test_code_of_an_exceptions_class_does_not_run_for_us(tmp_path: Path) -> None:
    script = tmp_path / "raises.py"
    script.write_text(TRAINS + RAISES)
    alone = run([sys.executable, str(script)], tmp_path / "alone")
    under, _ = recorded([sys.executable, str(script)], tmp_path / "under")
    assert (alone.code, alone.out, alone.err) == (under.code, under.out, under.err)


COMPILED = """
import torch, torch._dynamo
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
@torch.compile(backend="eager")
def loss(x):
    value = model(x).square().sum()
    value.backward()
    return value
for _ in range(5):
    optimizer.zero_grad()
    loss(torch.ones(2, 4))
    optimizer.step()
print(torch._dynamo.utils.counters["frames"]["total"])
"""


def test_none_of_our_functions_is_compiled(tmp_path: Path) -> None:
    alone = run([sys.executable, "-c", TRAINS + COMPILED], tmp_path / "alone")
    frames, _ = under_gnntop(COMPILED, tmp_path / "under")
    assert frames == alone.out.decode()


TRACED = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))
script = torch.jit.script(model)
optimizer = torch.optim.SGD(script.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    script(torch.ones(4, 4)).sum().backward()
    optimizer.step()
print(torch.jit.trace(model, torch.ones(4, 4)).code)
"""


def test_a_graph_that_is_traced_has_nothing_of_ours(tmp_path: Path) -> None:
    alone = run([sys.executable, "-c", TRACED], tmp_path / "alone")
    under, _ = recorded([sys.executable, "-c", TRACED], tmp_path / "under")
    assert (alone.code, alone.out) == (under.code, under.out)
