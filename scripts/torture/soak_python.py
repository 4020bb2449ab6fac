"""A PyTorch training with all that gnntop can do to it, for hours: memory and descriptors stay what they are."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from pty_program import PtyProgram
from tally import Tally
from under_test import MIB, Gnntop, wait_until

EVERY_S = 30
# The viewer grows until its tables are full (docs/reliability.md); everything else is full by a fourth of the time.
MOST_GROWTH = 8 * MIB
VIEWER_GROWTH = 96 * MIB
ADDRESS = "127.0.0.1:19464"
NICE = 10
PROGRAM = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 16000
    def __getitem__(self, row):
        return torch.full((64,), float(row % 7)), torch.tensor([float(row % 5)])

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Rows(), batch_size=32, num_workers=4, persistent_workers=True, shuffle=True)
until, steps, epoch = time.monotonic() + float(sys.argv[1]), 0, 0
while time.monotonic() < until:
    epoch += 1
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        steps += 1
        time.sleep(0.005)
    print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
open(sys.argv[2], "w").write(str(steps))
"""


@dataclass
class Reading:
    """What a process had at a time."""

    at_s: float
    resident: int
    descriptors: int


def attack(gnntop: Gnntop, hours: float, python: Path) -> Tally:
    """Runs it at low priority with stacks, a bounded recording, a viewer and a scraper, then counts its steps."""
    expected = (
        f"from half of the time on no process grows by {MOST_GROWTH // MIB} MiB, the viewer at most by "
        f"{VIEWER_GROWTH // MIB} MiB in all, no descriptor more, and every step is seen"
    )
    tally = Tally(
        "a PyTorch training with four workers, stacks, a bounded recording, a viewer and a scraper",
        expected,
    )
    os.nice(NICE)
    program, recording, made = (gnntop.home / name for name in ("soak.py", "soak.gnntop", "made"))
    program.write_text(PROGRAM)
    options = ["--plain", "--stacks", "20", "--record", recording, "--keep", "16MiB"]
    run = gnntop.start("run", *options, "--", python, program, str(hours * 3600), made)
    # A session has a size as soon as its program has loaded torch.
    if not wait_until(lambda: b"iB" in gnntop.run("list", "--live").out, 60):
        tally.count("the program did not start")
        return tally
    server = gnntop.start("serve", "--metrics", ADDRESS)
    viewer = PtyProgram(gnntop, "attach", rows=40, columns=120)
    seen, scrapes = _watch(gnntop, viewer, run, hours * 3600)
    for role, readings in sorted(seen.items()):
        tally.count(_growth(role, readings))
    viewer.type(b"q")
    code = viewer.end(timeout_s=30)
    tally.count(None if code == 0 else f"the viewer ended with {code}")
    server.kill()
    code = run.wait(timeout=600)
    tally.count(None if code == 0 else f"`gnntop run` ended with {code}")
    tally.count(_losses(gnntop, recording, int(made.read_text())))
    tally.note = f"{scrapes:,} scrapes"
    print_readings(seen)
    return tally


def _watch(
    gnntop: Gnntop, viewer: PtyProgram, run: subprocess.Popen[bytes], seconds: float
) -> tuple[dict[str, list[Reading]], int]:
    """Reads what each process has, until the program ends, and scrapes the server meanwhile."""
    began, scrapes = time.monotonic(), 0
    seen: dict[str, list[Reading]] = defaultdict(list)
    # The last reading is before the end, when the workers stop one by one.
    while run.poll() is None and time.monotonic() - began < seconds - EVERY_S:
        viewer.watch(EVERY_S)
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://{ADDRESS}/metrics", timeout=10) as answer,
        ):
            scrapes += b"gnntop_steps" in answer.read()
        for role, pid in _processes(gnntop):
            with contextlib.suppress(OSError):
                seen[role].append(_reading(pid, time.monotonic() - began))
    return seen, scrapes


def _processes(gnntop: Gnntop) -> list[tuple[str, int]]:
    """All processes that were started from here, by what they do."""
    mark = f"GNNTOP_TORTURE={gnntop.home}".encode()
    found: list[tuple[str, int]] = []
    workers = 0
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):
            if mark not in (process / "environ").read_bytes().split(b"\0"):
                continue
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0] == os.fsencode(gnntop.path):
                found.append((words[1].decode(), int(process.name)))
            elif any(role == "program" for role, _ in found):
                found.append((f"worker {workers}", int(process.name)))
                workers += 1
            else:
                found.append(("program", int(process.name)))
    return found


def _reading(pid: int, at_s: float) -> Reading:
    """What a process has now."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return Reading(at_s, int(status["VmRSS"].split()[0]) * 1024, len(os.listdir(f"/proc/{pid}/fd")))


def _growth(role: str, readings: list[Reading]) -> str | None:
    """What a process took more in the second half of the time, if that is too much."""
    quarter, half = len(readings) // 4, len(readings) // 2
    if not quarter:
        return f"{role}: too few readings"
    before, after = readings[quarter:half], readings[half:]
    grown = max(r.resident for r in after) - max(r.resident for r in before)
    more = max(r.descriptors for r in after) - max(r.descriptors for r in before)
    if grown > (VIEWER_GROWTH if role in ("attach", "serve") else MOST_GROWTH):
        return f"{role} grew by {grown / MIB:.1f} MiB"
    # A batch of a loader travels through descriptors: their number varies by what is on its way.
    if more > (40 if role.startswith(("program", "worker")) else 0):
        return f"{role} has {more} descriptors more"
    return None


def _losses(gnntop: Gnntop, recording: Path, made: int) -> str | None:
    """What the recording says is missing, and steps that the program counted and the recording did not."""
    report = json.loads(gnntop.run("report", recording, "--json", timeout_s=300).out)
    lost = {name: value for name, value in report["losses"].items() if value and name != "untiled_ns"}
    steps = report["steps"]["total"]
    if steps != made or lost:
        return f"the program made {made:,} steps, the report has {steps:,}; losses: {lost}"
    return None


def print_readings(seen: dict[str, list[Reading]]) -> None:
    """A table in Markdown: memory and descriptors of each process over the time."""
    print("\n| process | at | resident | descriptors |\n|---|---|---|---|")
    for role, readings in sorted(seen.items()):
        for reading in (readings[len(readings) * share // 100 - 1] for share in (10, 25, 50, 75, 100)):
            print(
                f"| {role} | {reading.at_s / 60:.0f} min | {reading.resident / MIB:.1f} MiB | {reading.descriptors} |"
            )
