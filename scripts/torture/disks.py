"""Disks that fill, and limits that are too small: the program continues and ends as it would alone."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tally import Tally
from under_test import MIB, Gnntop, Limits, Ran

FULL_DISKS = 20
FULL_FOR_A_WHILE = 8
LIMITED = 60
TRAINING = "train gcn --steps 60"
PACKAGE = Path(__file__).resolve().parents[2] / "python"


def attack_full(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Sessions, recording and log on a disk that is full sooner or later."""
    tally = Tally(
        "full disk under sessions, log and recording", "the training ends with its own code; what is on the disk opens"
    )
    for _ in range(max(1, int(FULL_DISKS * share))):
        with _small_disk(chance.choice((16, 64, 128, 256, 512, 1024))) as disk:
            if isinstance(disk, str):
                tally.skipped = disk
                break
            record = disk / "a.gnntop"
            ran = _train(gnntop, ["--record", str(record)], None, {"GNNTOP_DIR": str(disk / "sessions")})
            tally.count(_ended_well(gnntop, ran))
            for left in disk.glob("a.gnntop*"):
                if left.stat().st_size > 4096:
                    report = gnntop.run("report", left)
                    tally.count(report.wrong() or (None if report.code == 0 else f"{left.name}: {report.err!r}"))
    return [tally]


def attack_full_for_a_while(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """A disk that is full for a moment, once or twice, under a Python program."""
    tally = Tally("disk that is full for a while", "publishing goes on; the report says what is missing")
    for _ in range(max(1, int(FULL_FOR_A_WHILE * share))):
        with _small_disk(chance.choice((128, 256, 512))) as disk:
            if isinstance(disk, str):
                tally.skipped = disk
                break
            times = [round(chance.uniform(0.1, 1.5), 2) for _ in range(chance.randint(1, 2))]
            env = {"GNNTOP_DIR": str(disk), "PYTHONPATH": str(PACKAGE), "GNNTOP_NATIVE": str(gnntop.library())}
            script = FILLS.format(times=times)
            ran = subprocess.run(["python3", "-c", script], env={**gnntop.env, **env}, capture_output=True, check=False)
            wrong = None if ran.returncode == 0 else ran.stderr.decode()[-300:]
            for session in [path for path in disk.iterdir() if path.is_dir()]:
                report = gnntop.run("report", session).out.decode()
                said = "ended" in report and "not recorded: what happened while" in report
                wrong = wrong or (None if said else f"after {times} s: {report[-500:]!r}")
            tally.count(wrong)
    return [tally]


FILLS = """
import gnntop, os, time, glob
folder = os.environ["GNNTOP_DIR"]
def says():
    return open(glob.glob(folder + "/*/live")[0]).read()
def steps(is_over):
    give_up_at = time.monotonic() + 60
    while not is_over():
        gnntop.step()
        time.sleep(0.001)
        assert time.monotonic() < give_up_at, says()
gnntop.step()
gnntop._native.flush()
for seconds in {times}:
    filler = open(folder + "/filler", "ab", buffering=0)
    def is_full():
        try:
            while filler.write(bytes(512)): pass
        except OSError: pass
        return says().startswith("stopped")
    steps(is_full)
    until = time.monotonic() + seconds
    steps(lambda: time.monotonic() > until)
    os.remove(filler.name)
    filler.close()
    steps(lambda: says().startswith("publishing"))
    until = time.monotonic() + 0.3
    steps(lambda: time.monotonic() > until)
"""


def attack_limits(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Limits on the size of files, on open files and on memory."""
    tally = Tally("limits on files, open files and memory", "the training ends with its own code")
    for number in range(max(3, int(LIMITED * share))):
        limits = [
            Limits(file_size=chance.choice((4, 20, 100, 1000)) * 1024),
            Limits(open_files=chance.randint(24, 64)),
            Limits(address_space=chance.randint(1024, 2048) * MIB),
        ][number % 3]
        record = gnntop.home / f"limited-{number}.gnntop"
        tally.count(_ended_well(gnntop, _train(gnntop, ["--record", str(record)], limits, {})))
    return [tally]


def _train(gnntop: Gnntop, options: list[str], limits: Limits | None, env: dict[str, str]) -> Ran:
    """A training loop under `gnntop run`, which writes down its own exit code; limits apply to it and to gnntop."""
    (gnntop.home / "code").unlink(missing_ok=True)
    script = f"{gnntop.path} {TRAINING}; code=$?; echo $code > {gnntop.home}/code; exit $code"
    return gnntop.run("run", "--plain", *options, "--", "sh", "-c", script, limits=limits, env=env, timeout_s=60)


def _ended_well(gnntop: Gnntop, ran: Ran) -> str | None:
    code = gnntop.home / "code"
    ended = code.read_text().strip() if code.exists() else "without an end"
    if ended in ("0", ""):  # it could not write the code down under its own limit
        return ran.wrong()
    return f"the training ended {ended}: {ran.err.decode(errors='replace')[-300:]}"


@contextmanager
def _small_disk(kib: int) -> Iterator[Path | str]:
    """A file system in memory of this size, or why there is none."""
    with tempfile.TemporaryDirectory() as directory:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs", directory]
        mounted = subprocess.run(mount, capture_output=True, check=False) if os.geteuid() == 0 else None
        if mounted is None or mounted.returncode != 0:
            yield "only root can mount a small disk" if mounted is None else mounted.stderr.decode().strip()
            return
        try:
            yield Path(directory)
        finally:
            subprocess.run(["umount", "-l", directory], check=False)
