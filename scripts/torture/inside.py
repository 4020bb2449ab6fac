"""Python programs with a session that treat what gnntop has inside them as their own, or end at once."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

from tally import Tally
from under_test import Gnntop

PACKAGE = Path(__file__).resolve().parents[2] / "python"
DESCRIPTORS = 40
EARLY_ENDS = 40
RINGS = 20
# What is recorded is on its way to the disk for two milliseconds, longer on a busy machine; `os._exit` and `exec` wait.
MOST_STEPS_LOST = 30
STEPS = 60


def attack_descriptors(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Programs that close all descriptors, or single ones, and open their own files under the same numbers."""
    tally = Tally(
        "descriptors closed and taken by the program", "its files have its own bytes, stay open, and all steps are seen"
    )
    for number in range(max(3, int(DESCRIPTORS * share))):
        files = gnntop.home / f"files-{number}"
        files.mkdir()
        most = chance.choice((120, 200, 400, 1024))
        script = CLOSES.format(seed=chance.randrange(1 << 30), most=most, files=str(files), steps=STEPS)
        ended = _run(gnntop, script, files.with_suffix(".d"))
        wrong = None if ended[0] == 0 else f"ended {ended[0]}: {ended[1]}"
        changed = [file.name for file in files.iterdir() if file.read_bytes() != file.name.encode() * 9]
        tally.count(wrong or (f"changed: {changed}" if changed else _steps(gnntop, files.with_suffix(".d"), STEPS, 0)))
        shutil.rmtree(files)
    return [tally]


CLOSES = """
import gnntop, os, random, resource, time
from gnntop import _native
chance = random.Random({seed})
resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))
gnntop.step()
files, left = {{}}, {steps} - 1
while left:
    for _ in range(min(left, chance.randint(1, 9))):
        gnntop.step()
        left -= 1
        time.sleep(0.003)
    kind = chance.randrange(4)
    if kind == 0:
        _native.worker_ring("worker")
    elif kind == 1:
        os.closerange(3, 4096)
        files.clear()
    elif kind == 2:
        # Those of the program, and any others.
        for number in chance.sample(range(3, {most}), 30):
            files.pop(number, None)
            try: os.close(number)
            except OSError: pass
    # Room is left for what opens a file for a moment.
    while len(files) < {most} - 40:
        name = str(chance.randrange(1 << 60))
        file = os.open("{files}/" + name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.write(file, name.encode() * 9)
        files[file] = name
        if chance.random() < 0.05: break
for file, name in files.items():
    assert os.fstat(file).st_size == len(name) * 9
    assert os.readlink("/proc/self/fd/%d" % file) == "{files}/" + name
_native.close()
"""


def attack_early_ends(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Programs that end without a word soon after their first step."""
    tally = Tally("programs that end within 100 ms", f"all steps are seen, but {MOST_STEPS_LOST} after a signal")
    answers = gnntop.home / "answers"
    answers.mkdir()
    for number in range(max(3, int(EARLY_ENDS * share))):
        end = chance.choice(("os._exit(0)", "os.kill(os.getpid(), 9)", "os.abort()", "os.execv('/bin/true', ['true'])"))
        is_python = "_exit" in end or "exec" in end
        most_lost, pause = (0, chance.choice((0, 0.001))) if is_python else (MOST_STEPS_LOST, 0.001)
        steps = chance.randint(40, 90)
        script = f"import gnntop, os, time\nfor _ in range({steps}):\n    gnntop.step()\n    time.sleep({pause})\n{end}"
        directory = gnntop.home / f"early-{number}"
        _run(gnntop, script, directory, GNNTOP_ANSWERS=str(answers))
        tally.count(_steps(gnntop, directory, steps, most_lost))
    return [tally]


def attack_rings(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Workers that write anything into the memory that they share with their parent."""
    tally = Tally("nonsense in the ring of a worker", "the program ends as it would, and all its own steps are seen")
    for number in range(max(2, int(RINGS * share))):
        directory = gnntop.home / f"rings-{number}"
        ended = _run(gnntop, NONSENSE.format(seed=chance.randrange(1 << 30), steps=STEPS), directory)
        wrong = None if ended[0] == 0 else f"ended {ended[0]}: {ended[1]}"
        tally.count(wrong or _steps(gnntop, directory, STEPS, 0))
    return [tally]


NONSENSE = """
import gnntop, mmap, os, random, time
from gnntop import _native
chance = random.Random({seed})
gnntop.step()
handle, address = _native.worker_ring("worker")
process, number, _ = address.split(":")
memory = mmap.mmap(os.open("/proc/%s/fd/%s" % (process, number), os.O_RDWR), 0)
child = os.fork()
if child == 0:
    _native.worker_attach(address)
    name = _native.span_name("work")
    while True:
        for _ in range(50):
            _native.span_at(name, chance.randrange(1 << 64), chance.randrange(1 << 64))
        for _ in range(chance.randint(0, 20)):
            # Not the first two words, by which the parent knows the ring.
            at = chance.choice((chance.randrange(16, 400), chance.randrange(16, len(memory) - 64)))
            memory[at:at + 8] = chance.choice((bytes(8), b"\\xff" * 8, chance.randbytes(8)))
for _ in range({steps} - 1):
    gnntop.step()
    time.sleep(0.005)
os.kill(child, 9)
os.waitpid(child, 0)
_native.close()
"""


def _run(gnntop: Gnntop, script: str, directory: Path, **more: str) -> tuple[int, str]:
    """Runs a program that publishes into this directory; returns its exit code and the end of what it said."""
    own = {"GNNTOP_DIR": str(directory), "PYTHONPATH": str(PACKAGE), "GNNTOP_NATIVE": str(gnntop.library()), **more}
    command = ["python3", "-c", script]
    try:
        ran = subprocess.run(command, env={**gnntop.env, **own}, capture_output=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return -1, "it did not end"
    return ran.returncode, ran.stderr.decode(errors="replace")[-300:]


def _steps(gnntop: Gnntop, directory: Path, steps: int, most_lost: int) -> str | None:
    """What is wrong with the steps that were seen of a program."""
    (session,) = directory.iterdir()
    report = gnntop.run("report", session, "--json")
    total = json.loads(report.out)["steps"]["total"] if report.code == 0 else 0
    return None if steps - most_lost <= total <= steps else f"{total} of {steps} steps were seen"
