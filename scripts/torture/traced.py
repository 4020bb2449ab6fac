"""What programs do while `gnntop trace` is under way: they end as they would. Needs a Python with torch."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

from tally import Tally
from under_test import NO_TORCH, Gnntop, wait_until

TRIES = 24
ENDS_S = 120
# Trains until it is let go, which is when a trace has begun.
TRAINING = """
import os, sys, threading, time, torch
from pathlib import Path
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters())
def step():
    optimizer.zero_grad()
    model(torch.ones(4, 8)).square().mean().backward()
    optimizer.step()
def train():
    while not Path("{go}").exists():
        step()
        time.sleep(0.02)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) >> 8
{does}
"""
# What it does, and its exit code.
KINDS = {
    "ends": ("train()", 0),
    "raises": ("train()\nraise SystemExit(7)", 7),
    "ends by _exit": ("train()\nos._exit(8)", 8),
    "becomes another program": ("train()\nos.execv('/bin/sh', ['sh', '-c', 'exit 9'])", 9),
    "profiles": (
        "train()\nwith torch.profiler.profile() as own: step()\n"
        "raise SystemExit(5 * any('addmm' in event.key for event in own.key_averages()))",
        5,
    ),
    "profiles by a schedule": (
        "seen = []\nplan = torch.profiler.schedule(wait=200, warmup=1, active=2)\n"
        "with torch.profiler.profile(schedule=plan, on_trace_ready=seen.append) as own:\n"
        "    for _ in range(210): step(); own.step(); time.sleep(0.01)\nraise SystemExit(len(seen))",
        1,
    ),
    "trains on threads": (
        "threads = [threading.Thread(target=train) for _ in range(3)]\nfor thread in threads: thread.start()\n"
        "train()\nfor thread in threads: thread.join()\nraise SystemExit(4)",
        4,
    ),
    "ends its thread": (
        "thread = threading.Thread(target=train)\nthread.start()\nthread.join()\nstep()\nraise SystemExit(3)",
        3,
    ),
    "validates": (
        "train()\nbefore = resident()\nmodel.eval()\ngive_up_at = time.monotonic() + 60\nwith torch.no_grad():\n"
        "    while torch.autograd._profiler_enabled() and time.monotonic() < give_up_at: model(torch.ones(4, 8))\n"
        "raise SystemExit(6 if resident() < before + 1200 else 99)",
        6,
    ),
}


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Ends of all kinds, profilers, threads and a long validation in the middle of a trace."""
    tally = Tally(
        "ends, profilers, threads and a long validation inside a trace",
        "the program's own exit code, and at most 1.2 GiB more",
    )
    python = gnntop.torch_python()
    if python is None:
        tally.skipped = NO_TORCH
        return [tally]
    kinds = list(KINDS)
    chance.shuffle(kinds)
    for number in range(max(2, int(TRIES * share))):
        kind = kinds[number % len(kinds)]
        wrong = _try(gnntop, chance, python, number, kind)
        tally.count(wrong and f"{kind}: {wrong}")
    return [tally]


def _try(gnntop: Gnntop, chance: random.Random, python: Path, number: int, kind: str) -> str | None:
    does, code = KINDS[kind]
    script, go = gnntop.home / f"in-trace-{number}.py", gnntop.home / f"go-{number}"
    script.write_text(TRAINING.format(go=go, does=does))
    run = gnntop.start("run", "--plain", "--", python, script)
    sessions = f"{script.name}-*/00000000.gnntop"
    if not wait_until(lambda: any(path.stat().st_size > 2048 for path in gnntop.sessions.glob(sessions)), ENDS_S):
        return "the program published nothing"
    session = next(gnntop.sessions.glob(sessions)).parent
    asker = gnntop.start("trace", session, "--steps", "100", stdout=subprocess.PIPE)
    wait_until((session / "answer").exists, ENDS_S)
    time.sleep(chance.random())
    go.touch()
    try:
        ended = run.wait(timeout=ENDS_S)
        asker.communicate(timeout=ENDS_S)
    except subprocess.TimeoutExpired:
        return "somebody hangs"
    return None if ended == code else f"ended {ended}, not {code}"
