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
