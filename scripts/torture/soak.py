"""A training run with a viewer for hours: memory grows until the tables are full, and no more."""

from __future__ import annotations

import time
from pathlib import Path

from pty_program import PtyProgram
from tally import Tally
from under_test import MIB, Gnntop

SETTLED_S = 120
# The viewer's tables of steps and readings are full by then, and have taken this much (docs/reliability.md).
FULL_S = 50 * 60
TABLES = 96 * MIB
MOST_GROWTH = 8 * MIB


def attack(gnntop: Gnntop, hours: float) -> Tally:
    """Watches a run at full rate: the viewer's memory until its tables are full, and after that."""
    expected = f"a viewer grows by {TABLES // MIB} MiB until its tables are full, and {MOST_GROWTH // MIB} MiB more"
    tally = Tally("a training with a viewer", expected)
    training = gnntop.start("train", "gcn", "--epochs", "1000000000")
    time.sleep(1)
    screen = PtyProgram(gnntop, "attach", str(training.pid), rows=40, columns=120)
    began = time.monotonic()
    seen = [(0.0, 0)]
    while training.poll() is None and seen[-1][0] < hours * 3600:
        screen.watch(min(10, max(1, hours * 3600 - seen[-1][0])))
        seen.append((time.monotonic() - began, _resident(screen.pid)))
    ended = None if training.poll() is None else f"the training ended with {training.returncode}"
    tally.count(ended or _growth(seen, SETTLED_S, TABLES) or _growth(seen, FULL_S, MOST_GROWTH))
    tally.note = f"{seen[-1][0] / 3600:.2f} h, at the end {seen[-1][1] / MIB:.1f} MiB"
    screen.type(b"q")
    code = screen.end(timeout_s=10)
    tally.count(None if code == 0 else f"the viewer ended with {code}")
    training.kill()
    training.wait()
    return tally


def _growth(seen: list[tuple[float, int]], after_s: float, at_most: int) -> str | None:
    """Returns how much memory grew after this time, if that is too much."""
    later = [resident for at_s, resident in seen if at_s >= after_s]
    grown = max(later) - later[0] if later else 0
    return f"after {after_s:.0f} s it grew by {grown / MIB:.1f} MiB" if grown > at_most else None


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
