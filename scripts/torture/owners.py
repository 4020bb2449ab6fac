"""The processes between a program and its log, stopped or killed: the program prints and ends as it would alone."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

from tally import Tally
from under_test import Gnntop, wait_until

TRIES = 16
# Longer than the keeper waits before it reads in place of the collector.
HANGS_S = 60
PRINTS = "for i in $(seq {turns}); do head -c 30000 /dev/zero | tr '\\0' x; sleep 0.02; done; echo whole > {end}"


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """SIGSTOP and SIGKILL of the keeper or the collector of a program that prints."""
    tally = Tally("stopped and killed keepers and collectors", "a program that prints comes to its end")
    for number in range(max(2, int(TRIES * share))):
        tally.count(_try(gnntop, chance, gnntop.home / f"printed-{number}"))
    return [tally]


def _try(gnntop: Gnntop, chance: random.Random, end: Path) -> str | None:
    run = gnntop.start("run", "--plain", "--", "sh", "-c", PRINTS.format(end=end, turns=chance.randint(20, 100)))
    if not wait_until(lambda: len(_owners(gnntop, run.pid)) == 2, 20):
        return "the program has no keeper and collector"
    owners = _owners(gnntop, run.pid)
    victim, sent = chance.choice(sorted(owners)), chance.choice((signal.SIGSTOP, signal.SIGKILL))
    time.sleep(chance.random() / 2)
    os.kill(owners[victim], sent)
    wrong = None if wait_until(end.exists, HANGS_S) else f"{sent.name} of the {victim}: the program hung or ended"
    if sent == signal.SIGSTOP:
        os.kill(owners[victim], signal.SIGCONT)
    try:
        run.wait(timeout=30)
    except subprocess.TimeoutExpired:
        wrong = wrong or f"{sent.name} of the {victim}: `gnntop run` did not end"
    return wrong


def _owners(gnntop: Gnntop, run: int) -> dict[str, int]:
    """The keeper that a `gnntop run` has started, and its collector, once the program has an entry."""
    for entry in gnntop.sessions.glob("*.run"):
        try:
            keeper = json.loads(entry.read_text())["keeper"]
            if _parent(keeper) == run:
                processes = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
                found = [pid for pid in processes if _parent(pid) == keeper and b"\0collect\0" in _words(pid)]
                return {"keeper": keeper, **({"collector": found[0]} if found else {})}
        except (OSError, ValueError):
            continue
    return {}


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
