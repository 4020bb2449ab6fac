"""Requests for a trace in a session's directory, as a stranger writes them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import subprocess
import time
from pathlib import Path

from tally import Tally
from under_test import Gnntop, wait_until

TRIES = 30
STEPS = 60
# Without torch a trace is refused: what counts here is that nothing waits, and that nothing else happens.
PROGRAM = f"""
import gnntop, sys, time
for _ in range({STEPS}):
    with gnntop.span("work"):
        time.sleep(0.03)
    gnntop.step()
"""
NAMES = ("request", "answer", "answer.new", "trace.json", "trace.json.tmp")
STEPS_ASKED = ("0", "5", "101", "1" * 4000, "-1", "1_0", "\u0665", "x", "", "5 5")


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Pipes and links in place of the files, requests without bound, askers that are gone."""
    tally = Tally(
        "requests for a trace that have no bound or no asker, and pipes in place of their files",
        "the program ends with its own code and all its steps are seen",
    )
    script = gnntop.home / "asked.py"
    script.write_text(PROGRAM)
    for _ in range(max(2, int(TRIES * share))):
        before = set(gnntop.sessions.glob("asked.py-*"))
        running = gnntop.start("run", "--plain", "--", "python3", script, stdout=subprocess.PIPE)
        if not wait_until(lambda before=before: len(_new(gnntop, before)) == 1, 20):
            tally.count("no session")
            continue
        session = _new(gnntop, before)[0]
        _ask(session, chance)
        code = _end(running)
        total = json.loads(gnntop.run("report", session, "--json").out)["steps"]["total"]
        tally.count(None if (code, total) == (0, STEPS) else f"ended {code} after {total} steps")
    return [tally]


def _end(running: subprocess.Popen[bytes]) -> int | None:
    """Its exit code; None if it waits for something."""
    try:
        return running.wait(timeout=30)
    except subprocess.TimeoutExpired:
        return None


def _new(gnntop: Gnntop, before: set[Path]) -> list[Path]:
    return [path for path in gnntop.sessions.glob("asked.py-*") if path not in before and (path / "live").exists()]


def _ask(session: Path, chance: random.Random) -> None:
    for name in chance.sample(NAMES, chance.randrange(len(NAMES))):
        with contextlib.suppress(OSError):
            kind = chance.randrange(3)
            if kind == 0:
                os.mkfifo(session / name)
            elif kind == 1:
                (session / name).symlink_to(session / "live")
            else:
                (session / name).mkdir()
    with contextlib.suppress(OSError), (session / "request.mine").open("w") as file:
        if chance.random() < 0.7:
            fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"trace 00000000000000aa {chance.choice(STEPS_ASKED)}\n")
        file.flush()
        (session / "request.mine").rename(session / "request")
        time.sleep(chance.uniform(0, 1))
