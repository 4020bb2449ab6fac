"""Python programs under `gnntop run`: they end as they do alone, and are seen."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

from tally import Tally
from under_test import Gnntop, Ran

DAMAGES = 40
STEPS = 20
PROGRAM = f"""
import gnntop
for _ in range({STEPS}):
    with gnntop.span("work"):
        pass
    gnntop.step()
"""


def attack_cache(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Files of the package in the cache that a power failure has cut, emptied or removed."""
    tally = Tally(
        "damaged package in the cache", "the program ends with its own code and output, and all its steps are seen"
    )
    cache = gnntop.home / "cut-cache"
    for _ in range(max(3, int(DAMAGES * share))):
        wrong = _watched(gnntop, PROGRAM, "", XDG_CACHE_HOME=str(cache))
        files = sorted(path for path in cache.rglob("*") if path.is_file())
        for file in chance.sample(files, chance.randint(1, len(files))):
            _damage(file, chance)
        tally.count(wrong or _watched(gnntop, PROGRAM, "", XDG_CACHE_HOME=str(cache)))
        shutil.rmtree(cache)
    return [tally]


def _damage(file: Path, chance: random.Random) -> None:
    size = file.stat().st_size
    kind = chance.randrange(4)
    if kind == 0:
        file.unlink()
        return
    with file.open("r+b") as opened:
        if kind == 1:
            opened.truncate(chance.randint(0, size))
        else:
            opened.seek(chance.randrange(max(size, 1)))
            opened.write(bytes(4096) if kind == 2 else chance.randbytes(chance.randint(1, 4096)))


def _watched(gnntop: Gnntop, program: str, expected: str, **env: str) -> str | None:
    """Runs a program of `STEPS` steps with `gnntop run`; returns what was wrong with its end, its output or its steps."""
    script, record = gnntop.home / "program.py", gnntop.home / "python.gnntop"
    script.write_text(program)
    ran = gnntop.run("run", "--plain", "--record", record, "--force", "--", "python3", script, env=env)
    return ran.wrong() or _as_alone(gnntop, ran, expected) or _steps(gnntop, record)


def _as_alone(gnntop: Gnntop, ran: Ran, expected: str) -> str | None:
    log = max(gnntop.sessions.glob("*.log"), key=os.path.getmtime)
    said = log.read_text(errors="replace")
    return None if (ran.code, said) == (0, expected) else f"ended {ran.code}, wrote {said[-300:]!r}"


def _steps(gnntop: Gnntop, record: Path) -> str | None:
    total = json.loads(gnntop.run("report", record, "--json").out)["steps"]["total"]
    return None if total == STEPS else f"{total} of {STEPS} steps were seen"
