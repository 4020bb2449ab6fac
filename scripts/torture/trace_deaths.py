"""Death inside a trace: of the program, or of the `gnntop trace` that waits for it. Needs a Python with torch."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from tally import Tally
from under_test import NO_TORCH, Gnntop, wait_until

TRIES = 8
ENDS_S = 60
TRAINING = """
import time, torch
from pathlib import Path
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters())
while not Path("{end}").exists():
    optimizer.zero_grad()
    model(torch.ones(4, 8)).square().mean().backward()
    optimizer.step()
    time.sleep(0.01)
"""


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """SIGKILL of one of the two while a trace is asked for, taken or written."""
    tally = Tally(
        "death inside a trace", "the other one ends well; the session opens, and `clean` removes all that is left"
    )
    python = gnntop.torch_python()
    if python is None:
        tally.skipped = NO_TORCH
        return [tally]
    for number in range(max(1, int(TRIES * share))):
        tally.count(_try(gnntop, chance, python, number))
    return [tally]


def _try(gnntop: Gnntop, chance: random.Random, python: Path, number: int) -> str | None:
    script, end = gnntop.home / "traced.py", gnntop.home / f"traced-{number}"
    script.write_text(TRAINING.format(end=end))
    before = set(_sessions(gnntop))
    run = gnntop.start("run", "--plain", "--", python, script)
    if not wait_until(lambda: bool(_sessions(gnntop) - before), ENDS_S):
        return "the program published nothing"
    (session,) = _sessions(gnntop) - before
    pid = session.name.split("-")[-2]
    asker = gnntop.start("trace", pid, "--steps", str(chance.randint(1, 50)), stdout=subprocess.PIPE)
    time.sleep(chance.random() * 3)
    is_program = chance.random() < 0.5
    os.kill(int(pid) if is_program else asker.pid, signal.SIGKILL)
    end.touch()
    wrong = None
    try:
        asker.communicate(timeout=ENDS_S)
        code = run.wait(timeout=ENDS_S)
        if code != (128 + signal.SIGKILL if is_program else 0):
            wrong = f"the program ended with {code}"
        elif is_program and asker.returncode not in (0, 1):
            wrong = f"`gnntop trace` ended with {asker.returncode}"
    except subprocess.TimeoutExpired:
        wrong = f"{'`gnntop trace`' if is_program else 'the program'} hangs after the other's death"
    report = gnntop.run("report", session)
    wrong = wrong or report.wrong() or (None if report.code == 0 else f"the session does not open: {report.err!r}")
    removed = gnntop.run("clean", "--older", "0s")
    left = session.exists() and [path.name for path in session.iterdir()]
    return wrong or (f"`clean` leaves {left}: {removed.err!r}" if left else None)


def _sessions(gnntop: Gnntop) -> set[Path]:
    return {path.parent for path in gnntop.sessions.glob("*/00000000.gnntop") if path.stat().st_size > 2048}
