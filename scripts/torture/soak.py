"""A training with a viewer for hours: memory that does not grow."""

from __future__ import annotations

import time
from pathlib import Path

from pty_program import PtyProgram
from tally import Tally
from under_test import MIB, Gnntop

SETTLED_S = 120
MOST_GROWTH = 8 * MIB


def attack(gnntop: Gnntop, hours: float) -> Tally:
    """Watches a training at full rate; the viewer's memory after two minutes and at the end."""
    tally = Tally("a training with a viewer", f"after two minutes the viewer grows by at most {MOST_GROWTH // MIB} MiB")
    training = gnntop.start("train", "gcn", "--epochs", "1000000000")
    time.sleep(1)
    screen = PtyProgram(gnntop, "attach", str(training.pid), rows=40, columns=120)
    screen.watch(SETTLED_S)
    settled = _resident(screen.pid)
    until = time.monotonic() + hours * 3600 - SETTLED_S
    while time.monotonic() < until and training.poll() is None:
        screen.watch(10)
    grown = _resident(screen.pid) - settled
    tally.note = f"{hours} h, {settled / MIB:.1f} MiB and {grown / MIB:+.1f}"
    ended = None if training.poll() is None else f"the training ended with {training.returncode}"
    tally.count(ended or (None if grown <= MOST_GROWTH else f"it grew by {grown / MIB:.1f} MiB"))
    screen.type(b"q")
    code = screen.end(timeout_s=10)
    tally.count(None if code == 0 else f"the viewer ended with {code}")
    training.kill()
    training.wait()
    return tally


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
