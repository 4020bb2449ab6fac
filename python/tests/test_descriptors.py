"""A program that closes every descriptor and opens its own files under their numbers: they stay its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_native import GNNTOP, LIBRARY, REPOSITORY, python

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"no {LIBRARY}: cargo build")

CLOSES = """
import gnntop, os, resource, time
from gnntop import _native
resource.setrlimit(resource.RLIMIT_NOFILE, (MANY, MANY))
def steps(count):
    for _ in range(count):
        with gnntop.span("work"): time.sleep(0.001)
        gnntop.step()
steps(20)
rings = [_native.worker_ring(f"worker {number}")[0] for number in range(20)]
time.sleep(0.1)
for round in range(3):
    os.closerange(3, 4096)
    names = ["DIRECTORY/%s-%s" % (round, number) for number in range(MANY - 60)]
    files = [os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR) for name in names]
    for file in files: os.write(file, b"weights")
    steps(20)
    for ring in rings: _native.worker_close(ring)
    END
    assert all(os.fstat(file).st_size == 7 for file in files)
    for file in files: os.close(file)
print("end")
"""


def opened(directory: Path) -> list[bytes]:
    return [file.read_bytes() for file in directory.iterdir()]


def code(directory: Path, end: str = "", limit: int = 200) -> str:
    """With few numbers, the program gets each that was ours."""
    directory.mkdir()
    return CLOSES.replace("DIRECTORY", str(directory)).replace("END", end).replace("MANY", str(limit))


def test_files_stay_the_programs_and_all_steps_are_seen(tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"
    assert python(code(directory), tmp_path) == "end"
    assert opened(directory) == [b"weights"] * 3 * 140
    (session,) = (tmp_path / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
    seen = json.loads(report.stdout)
    assert (seen["steps"]["total"], seen["session"]["state"]) == (80, "ended")


FEW = """
import gnntop, os, resource, time
def restrict(): resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
if {first}: restrict()
gnntop.start()
if not {first}: restrict()
def steps():
    for _ in range(60):
        gnntop.step()
        time.sleep(0.005)
steps()
files = []
try:
    while True: files.append(os.open("/dev/null", os.O_RDONLY))
except OSError: print(len(files))
for file in files: os.close(file)
steps()
"""


@pytest.mark.parametrize("first", [True, False])
def test_a_program_that_may_open_few_files_has_nearly_all_of_them(first: bool, tmp_path: Path) -> None:
    # Three are open in each program; ours are the session's file, and up to three for a moment.
    assert int(python(FEW.format(first=first), tmp_path)) >= 20 - 3 - 4
    (session,) = (tmp_path / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
    assert json.loads(report.stdout)["steps"]["total"] == 120


@pytest.mark.parametrize("limit", [200, 1024])
def test_a_crash_writes_into_no_file_of_the_program(limit: int, tmp_path: Path) -> None:
    directory, answers = tmp_path / "checkpoints", tmp_path / "answers"
    answers.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GNNTOP")}
    environment |= {"PYTHONPATH": str(REPOSITORY / "python"), "GNNTOP_NATIVE": str(LIBRARY)}
    environment |= {"GNNTOP_DIR": str(tmp_path / "sessions"), "GNNTOP_ANSWERS": str(answers)}
    command = [sys.executable, "-c", code(directory, "os.kill(os.getpid(), 11)", limit)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == -11, done.stderr
    assert set(opened(directory)) == {b"weights"}


def test_os_exit_is_noted_though_all_was_closed(tmp_path: Path) -> None:
    directory, answers = tmp_path / "checkpoints", tmp_path / "answers"
    answers.mkdir()
    python(code(directory, "os._exit(0)"), tmp_path, GNNTOP_ANSWERS=str(answers))
    assert set(opened(directory)) == {b"weights"}
    assert b"os._exit" in b"".join(opened(answers))
