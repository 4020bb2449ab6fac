"""A disk that is full for a while: publishing goes on afterwards, and the report says what is missing."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import REACH, environment
from test_native import GNNTOP, LIBRARY, python

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"no {LIBRARY}: cargo build")

# Fills the disk, trains until gnntop says that it cannot write, makes room, and trains until it can.
PROGRAM = """
import glob, gnntop, os, time
def says():
    return open(glob.glob(f"{os.environ['GNNTOP_DIR']}/*/live")[0]).read()
def steps_until(done):
    global made
    give_up_at = time.monotonic() + 50
    while not done():
        with gnntop.span("work"): time.sleep(0.001)
        gnntop.step()
        made += 1
        assert time.monotonic() < give_up_at, says()
gnntop.step()
made = 1
gnntop._native.flush()
filler = open(f"{os.environ['GNNTOP_DIR']}/filler", "ab", buffering=0)
def is_full():
    try:
        while filler.write(bytes(512)): pass
    except OSError:
        pass
    return says().startswith("stopped")
steps_until(is_full)
print(gnntop._native.status() == gnntop._native.FAILED)
os.remove(filler.name)
filler.truncate(0)
steps_until(lambda: says().startswith("publishing"))
first = time.monotonic()
steps_until(lambda: time.monotonic() > first + 0.2)
print(gnntop._native.status() == gnntop._native.PUBLISHING, made)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small file system can be mounted: {done.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_without_room_from_the_start_is_named(small_disk: Path, tmp_path: Path) -> None:
    with (small_disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(bytes(512)):
            pass
    program = "import gnntop; [gnntop.step() for _ in range(50)]"
    command = [GNNTOP, "run", "--plain", "--", sys.executable, "-c", program]
    variables = environment(small_disk) | REACH
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "No space left" in done.stderr, done.stderr


def test_a_program_that_ends_before_the_next_try_is_whole(small_disk: Path, tmp_path: Path) -> None:
    program = PROGRAM[: PROGRAM.index("steps_until(lambda: says()")] + "gnntop._native.close()"
    assert python(program, tmp_path, GNNTOP_DIR=str(small_disk)) == "True"
    (session,) = (path for path in small_disk.iterdir() if path.is_dir())
    report = json.loads(subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True).stdout)
    assert report["session"]["state"] == "ended"
    assert "not recorded: what happened while nothing could be written" in report["session"]["facts"]


def test_publishing_goes_on_and_the_report_says_what_is_missing(small_disk: Path, tmp_path: Path) -> None:
    was_full, has_gone_on, made = python(PROGRAM, tmp_path, GNNTOP_DIR=str(small_disk)).split()
    assert (was_full, has_gone_on) == ("True", "True")
    (session,) = (path for path in small_disk.iterdir() if path.is_dir())
    report = json.loads(subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True).stdout)
    assert report["session"]["state"] == "ended"
    seen, missing = report["steps"]["total"], report["losses"]["missing_steps"]
    assert missing > 0
    assert seen + missing == int(made)
    text = subprocess.run([GNNTOP, "report", session], capture_output=True, check=True).stdout.decode()
    assert "not recorded: what happened while nothing could be written" in text, text
