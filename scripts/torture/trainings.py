"""PyTorch programs that do what trainings seldom do: they end and print as they do alone, and all steps are seen."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

from pythons import watched
from tally import Tally
from under_test import NO_TORCH, Gnntop

INTERRUPTED = 16
SEQUENCES = 24
TURNS = 60
# Steps that are not seen, at most: of optimizers that are made before the first step, the first one's (docs/python.md).
MOST_LOST = {"made first": 7}

TRAINS = """
import random, sys, time, torch
from torch import nn
from torch.utils.data import DataLoader
chance = random.Random({seed})
torch.manual_seed({seed})
torch.set_num_threads(1)
def made():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    return model, chance.choice((torch.optim.SGD, torch.optim.Adam))(model.parameters(), lr=0.01, foreach=False)
def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item().hex()
"""


def attack_interrupted(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Exceptions of signals' handlers, other threads, tracers and profilers, wherever the program is."""
    tally = Tally("exceptions that are raised in a training from outside", "the program gets each of them")
    python = gnntop.torch_python()
    if python is None:
        tally.skipped = NO_TORCH
        return [tally]
    for number in range(max(4, int(INTERRUPTED * share))):
        by = list(RAISES)[number % len(RAISES)]
        program = (TRAINS + USES + RAISES[by] + TURN).format(seed=chance.randrange(1 << 30), by=by, turns=TURNS)
        wrong = watched(gnntop, program, "lost 0\n", python=python, steps=None, timeout_s=120)
        tally.count(wrong and f"{by}: {wrong}")
    return [tally]


USES = """
class Late(Exception): pass
model, optimizer = made()
loader = DataLoader([torch.ones(3, 4)] * 3, batch_size=None)
def work():
    scaler = torch.amp.GradScaler("cpu")
    for x in loader:
        model.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        scaler.step(optimizer)
        scaler.update()
work()
time.sleep(0.2)
"""
TRACED = """
def late(*_):
    global left
    left -= 1
    if left == 0: raise Late
    return late
def prepare():
    global left
    left = chance.randrange(3, 900)
    sys.set{by}(late)
def is_raised(): return left <= 0
def tidy(): sys.set{by}(None)
"""
# Each has one exception raised, says whether that has been tried, and tidies up.
RAISES = {
    "signal": """
import signal
def late(*_): raise Late
signal.signal(signal.SIGALRM, late)
def prepare(): signal.setitimer(signal.ITIMER_REAL, 0.0005 + chance.random() * 0.004)
def is_raised(): return signal.getitimer(signal.ITIMER_REAL)[0] == 0
def tidy(): pass
""",
    "thread": """
import ctypes, threading
raise_in, here = ctypes.pythonapi.PyThreadState_SetAsyncExc, ctypes.c_ulong(threading.get_ident())
def prepare():
    global timer
    timer = threading.Timer(chance.random() * 0.004, lambda: raise_in(here, ctypes.py_object(Late)))
    timer.start()
def is_raised(): return not timer.is_alive()
def tidy(): timer.join()
""",
    "trace": TRACED,
    "profile": TRACED,
}
TURN = """
lost = 0
for _ in range({turns}):
    try:
        prepare()
        give_up_at = 0
        while not give_up_at or time.monotonic() < give_up_at:
            work()
            if is_raised() and not give_up_at: give_up_at = time.monotonic() + 0.1
        lost += 1
    except Late: pass
    tidy()
    torch.set_grad_enabled(True)  # which torch leaves off where it is raised in its own `finally`
print("lost", lost)
"""


def attack_sequences(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Trainings one after the other, whose optimizers are kept or not, or are made in each step."""
    tally = Tally(
        "trainings one after the other, and optimizers that are made in each step",
        "the program's own output, in its own time, and all steps are seen",
    )
    python = gnntop.torch_python()
    if python is None:
        tally.skipped = NO_TORCH
        return [tally]
    for number in range(max(3, int(SEQUENCES * share))):
        kind = list(KINDS)[number % len(KINDS)]
        count, length = chance.randint(2, 12), chance.randint(1, 30)
        text = KINDS[kind].format(count=count, length=length)
        program = TRAINS.format(seed=chance.randrange(1 << 30)) + text
        steps = range(count * length - MOST_LOST.get(kind, 0), count * length + 1)
        wrong = _compared(gnntop, python, program, steps)
        tally.count(wrong and f"{count} trainings of {length} steps, {kind}: {wrong}")
    return [tally]


KINDS = {
    "kept": """
kept = []
for _ in range({count}):
    kept.append(made())
    for x in torch.randn({length}, 3, 4): print(step(*kept[-1], x))
""",
    "not kept": """
for _ in range({count}):
    model, optimizer = made()
    for x in DataLoader(torch.randn({length}, 4), batch_size=1): print(step(model, optimizer, x))
""",
    "made in each step, among many objects": """
heap = [[] for _ in range(1_000_000)]
model = made()[0]
for x in torch.randn({count} * {length}, 3, 4): print(step(model, torch.optim.SGD(model.parameters(), lr=0.01), x))
""",
    "made first": """
for model, optimizer in [made() for _ in range({count})]:
    for x in torch.randn({length}, 3, 4): print(step(model, optimizer, x))
""",
}


def _compared(gnntop: Gnntop, python: Path, program: str, steps: range) -> str | None:
    """What is other than without gnntop; it may take three times as long, and 20 s more."""
    script, began = gnntop.home / "alone.py", time.monotonic()
    script.write_text(program)
    alone = subprocess.run([python, script], env=gnntop.env, capture_output=True, text=True, check=False)
    within_s = 20 + 3 * (time.monotonic() - began)
    return watched(gnntop, program, alone.stdout, python=python, steps=steps, timeout_s=within_s)
