"""Recordings with holes, recorders that are killed while they shorten one, and recordings that nothing can replace."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

from kills import of_run
from tally import Tally
from under_test import MIB, Gnntop, wait_until

HOLES = 60
KEPT = 12
REPLACED = 12
READS = (["report", "FILE"], ["report", "FILE", "--exact"], ["export", "FILE", "--to", "ndjson"], ["list", "--all"])
LEAST_KEPT = "16MiB"
COPY = ".shorter.unfinished"
# Fills that within seconds.
MANY = """
import gnntop
while True:
    for _ in range(1000):
        with gnntop.span("work"): pass
    gnntop.step()
"""


def attack_holes(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Files of up to a terabyte that take no room, as recordings and as segments."""
    tally = Tally("recordings and segments with holes", "every command ends within 30 s and names the damage")
    session = gnntop.sessions / "hole-1-00000000"
    session.mkdir(mode=0o700)
    (session / "live").touch()
    for _ in range(max(3, int(HOLES * share))):
        data, file = chance.choice(gnntop.recordings).read_bytes(), session / "00000000.gnntop"
        at = chance.randrange(len(data) // 2)
        with file.open("wb") as opened:
            opened.write(data[:at])
            opened.seek(chance.choice((4 * MIB, 1 << 33, 1 << 40)), os.SEEK_CUR)
            opened.write(data[at:])
        command = [str(file) if word == "FILE" else word for word in chance.choice(READS)]
        ran = gnntop.run(*command)
        is_said = command[0] == "list" or b"damage" in ran.out + ran.err or ran.code != 0
        tally.count(ran.wrong() or (None if is_said else f"{command} says nothing of a hole at {at}"))
    shutil.rmtree(session)
    return [tally]


def attack_kept(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """SIGKILL of a recorder that shortens its recording all the time."""
    tally = Tally("SIGKILL of `run --record F --keep`", "F opens, and the next command removes what else was left")
    script = gnntop.home / "many.py"
    script.write_text(MANY)
    for number in range(max(2, int(KEPT * share))):
        tally.count(_kill_keeping(gnntop, chance, script, gnntop.home / f"keeping-{number}"))
    return [tally]


def _kill_keeping(gnntop: Gnntop, chance: random.Random, script: Path, folder: Path) -> str | None:
    folder.mkdir()
    record = folder / f"{folder.name}.gnntop"
    gnntop.start("run", "--plain", "--record", record, "--keep", LEAST_KEPT, "--", "python3", script)
    if not wait_until(lambda: bool(list(folder.glob(f"*{COPY}"))), 60):
        return "it shortened nothing"
    time.sleep(chance.random() / 4)
    for process in of_run(record):
        os.kill(process, signal.SIGKILL)
    gnntop.end_all()
    left = sorted(path for path in folder.iterdir() if not path.name.endswith(COPY))
    report = gnntop.run("report", *left)
    wrong = report.wrong() or (None if report.code == 0 and len(left) == 1 else f"{left}: {report.err!r}")
    for copy in folder.glob(f"*{COPY}"):
        os.utime(copy, (0, 0))  # a new one may be in use
    gnntop.run("clean", "--older", "0s", cwd=folder)
    copies = list(folder.glob(f"*{COPY}"))
    return wrong or (f"{copies} are left" if copies else None)


def attack_replaced(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """`run --record F --force` of programs that do not begin, record nothing, or are killed at once."""
    tally = Tally("`run --record F --force` with nothing to record", "F stays, or is a recording")
    record = gnntop.home / "replaced.gnntop"
    for _ in range(max(2, int(REPLACED * share))):
        record.write_bytes(b"old")
        program = chance.choice((["no-such-program"], ["true"], ["sh", "-c", "kill -9 $$"], ["sh", "-c", "sleep 0.3"]))
        ran = gnntop.run("run", "--plain", "--record", record, "--force", "--", *program)
        is_there = record.read_bytes() == b"old" or gnntop.run("report", record).code == 0
        tally.count(ran.wrong() or (None if is_there else f"{program} leaves {record.stat().st_size} bytes"))
    return [tally]
