"""Programs that start gnntop themselves, such as notebooks: hooked by ``gnntop.start()``, once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import GNNTOP, REACH, REPOSITORY, environment, times

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

# Cells of a notebook: the model is there before gnntop is.
PROGRAM = """
import gc, json, types
import torch, gnntop
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.randn(320, 8), batch_size=16)
assert gnntop.start("notebook")
assert gnntop.start("again")
hooked = gc.get_referents(torch.autograd.backward)
assert types.FunctionType in map(type, hooked), "not hooked, or hooked twice"
for x in loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
print(json.dumps(gnntop.report()))
"""


@pytest.mark.parametrize("path", [REPOSITORY / "python", REACH["PYTHONPATH"]], ids=["alone", "under gnntop run"])
def test_a_program_that_starts_it_is_seen_with_its_phases(path: Path, tmp_path: Path) -> None:
    variables = environment(tmp_path) | REACH | {"PYTHONPATH": str(path), "GNNTOP_PROGRAM": str(GNNTOP)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=variables, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    seen: dict[str, Any] = json.loads(done.stdout)
    assert (seen["session"]["name"], seen["steps"]["total"]) == ("notebook", 20)
    assert {"data wait", "forward", "loss", "backward", "optimizer"} <= set(times(seen))


# The file for its answers hangs, as on a file system that does not answer.
HANGS = """
import os
os.mkfifo(os.path.join(os.environ["GNNTOP_ANSWERS"], str(os.getpid())))
from gnntop import _bootstrap
_bootstrap.install()
print("end")
"""


def test_hooks_are_installed_though_answers_cannot_be_written(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    own = {"GNNTOP_ANSWERS": str(answers), "PYTHONPATH": str(REPOSITORY / "python")}
    variables = environment(tmp_path / "sessions") | REACH | own
    done = subprocess.run([sys.executable, "-c", HANGS], env=variables, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"end\n", b"")


def test_no_python_waits_for_its_first_answer(tmp_path: Path) -> None:
    variables = environment(tmp_path / "sessions") | REACH | {"GNNTOP_ANSWERS": str(tmp_path)}
    starts = ["sh", "-c", 'mkfifo "$GNNTOP_ANSWERS/$$"; exec "$@"', "sh", sys.executable, "-c", "print('end')"]
    done = subprocess.run(starts, env=variables, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"end\n", b"")


# Forked after a training in the parent, as a daemon or the folds of a validation; so are the loader's workers.
FORKS = """
import os, torch
def train(loader):
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
train(torch.utils.data.DataLoader(torch.randn(320, 8), batch_size=16, num_workers=2))
child = os.fork()
if child == 0:
    {child}
    os._exit(0)
os.waitpid(child, 0)
print(child)
"""


@pytest.mark.parametrize("trains", [False, True])
def test_a_forked_child_that_trains_is_named(trains: bool, tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(FORKS.format(child="train(torch.randn(20, 1, 8))" if trains else "torch.ones(1)"))
    command = [GNNTOP, "run", "--plain", "--", "sh", "-c", f"exec {sys.executable} {script} > {tmp_path}/out"]
    variables = environment(tmp_path / "sessions") | REACH
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    child = (tmp_path / "out").read_text().strip()
    assert done.returncode == 0, done.stderr
    expected = (
        f"the Python of process {child} cannot be watched: a process that had trained or run a model has forked it"
    )
    assert (expected in done.stderr) == trains, done.stderr
    assert ("cannot be watched" in done.stderr) == trains, done.stderr
