"""Training runs killed at any moment: what was published until then opens."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

from tally import Tally
from under_test import Gnntop, wait_until

KILLS = 60


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """SIGKILL of a training run, and of the keeper that records one."""
    killed = Tally("SIGKILL of a training", "its session opens, undamaged, to the last moments")
    keepers = Tally("SIGKILL of `gnntop run` and its keeper", "what was recorded opens")
    lost = []
    for _ in range(max(2, int(KILLS * share))):
        wrong, lost_ms = _kill_training(gnntop, chance)
        killed.count(wrong)
        lost.append(lost_ms)
        keepers.count(_kill_keeper(gnntop, chance))
    killed.note = f"at most {max(lost):.0f} ms of it lost"
    return [killed, keepers]


def _kill_training(gnntop: Gnntop, chance: random.Random) -> tuple[str | None, float]:
    child = gnntop.start("train", "gcn", "--epochs", "1000000")
    if not wait_until(lambda: bool(_sessions(gnntop, child.pid)), 20):
        return "it published nothing", 0
    time.sleep(0.3 + chance.random() * 1.5)
    child.kill()
    killed_at_ns = time.monotonic_ns()
    child.wait()
    (session,) = _sessions(gnntop, child.pid)
    wrong, last_ns = _opened(gnntop, session)
    return wrong, (killed_at_ns - last_ns) / 1e6 if last_ns else 0.0


def _kill_keeper(gnntop: Gnntop, chance: random.Random) -> str | None:
    record = gnntop.home / f"kept-{time.time_ns()}.gnntop"
    run = gnntop.start("run", "--plain", "--record", record, "--", gnntop.path, "train", "gcn", "--epochs", "1000000")
    if not wait_until(lambda: any(path.stat().st_size > 4096 for path in gnntop.home.glob(f"{record.name}*")), 20):
        return "nothing was recorded"
    time.sleep(chance.random())
    for process in of_run(record):
        os.kill(process, signal.SIGKILL)
    run.wait()
    left = max(gnntop.home.glob(f"{record.name}*"), key=lambda path: path.stat().st_size)
    wrong, _ = _opened(gnntop, left)
    gnntop.end_all()
    return wrong


def of_run(record: Path) -> list[int]:
    """The processes with this recording in their command: `gnntop run` and its keeper."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if record.name.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _sessions(gnntop: Gnntop, pid: int) -> list[Path]:
    return [path.parent for path in gnntop.sessions.glob(f"*-{pid}-*/00000000.gnntop") if path.stat().st_size > 2048]


def _opened(gnntop: Gnntop, session: Path) -> tuple[str | None, int]:
    """What is wrong with a session or a recording, and when its last step ended, on the monotonic clock."""
    whole = gnntop.home / "whole.gnntop"
    recorded: list[str | Path] = ["record", session, "--last", "1h", "-o", whole, "--force"]
    for words in (recorded, ["export", whole, "--to", "ndjson"]):
        ran = gnntop.run(*words)
        if ran.wrong() or ran.code != 0 or b"damage" in ran.err:
            return ran.wrong() or f"{session.name}: {ran.err!r}", 0
    steps = [event["end_ns"] for event in map(json.loads, ran.out.splitlines()) if event["kind"] == "step"]
    return (None, max(steps)) if steps else (f"{session.name}: no steps", 0)
