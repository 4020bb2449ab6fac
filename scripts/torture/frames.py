"""Sampled stacks of programs that are hard to read: they run as they do alone, and their stacks are seen."""

from __future__ import annotations

import json
import random
import sys

from tally import Tally
from under_test import Gnntop

FILTERS = 12
FRAMES = 24
STEPS = 60
UNSUPPORTED = "" if (3, 11) <= sys.version_info < (3, 15) else "stacks are read of Python 3.11 to 3.14"


def attack_filters(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Programs that have the system end them for calls which they do not expect."""
    tally = Tally("programs that filter their system calls", "the program's own end, and stacks are seen")
    tally.skipped = UNSUPPORTED
    for _ in range(0 if UNSUPPORTED else max(2, int(FILTERS * share))):
        script = FILTERED.format(steps=STEPS, seed=chance.randrange(1 << 30), kind=chance.choice(("ends", "refuses")))
        tally.count(_sampled(gnntop, script))
    return [tally]


FILTERED = """
import ctypes, gnntop, random, struct, time
chance = random.Random({seed})
system = ctypes.CDLL(None)
# process_vm_readv and writev, perf_event_open, ptrace, kcmp, bpf and userfaultfd, by their numbers on this machine.
CALLS = {{"x86_64": [310, 311, 298, 101, 312, 321, 323], "aarch64": [270, 271, 241, 117, 272, 280, 282]}}
def restrict():
    word = lambda code, yes, no, k: struct.pack("HBBI", code, yes, no, k)
    calls = CALLS.get(__import__("os").uname().machine, [])
    action = {{"ends": 0x80000000, "refuses": 0x00050001}}["{kind}"]
    filter = word(0x20, 0, 0, 0) + b"".join(word(0x15, len(calls) - at, 0, n) for at, n in enumerate(calls))
    filter += word(6, 0, 0, 0x7fff0000) + word(6, 0, 0, action)
    kept = ctypes.create_string_buffer(filter)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(filter) // 8, ctypes.addressof(kept)))
    assert system.prctl(38, 1, 0, 0, 0) == 0
    assert system.syscall({{"x86_64": 317, "aarch64": 277}}[__import__("os").uname().machine], 1, 1, program) == 0
at = chance.randrange({steps} // 2)
for number in range({steps}):
    if number == at:
        restrict()
    with gnntop.phase("forward"):
        time.sleep(0.8 if number == at + 1 else 0.02)
    gnntop.step()
"""


def _sampled(gnntop: Gnntop, script: str) -> str | None:
    program, record = gnntop.home / "filtered.py", gnntop.home / "filtered.gnntop"
    program.write_text(script)
    options = ("--plain", "--stacks", "100", "--record", record, "--force")
    ran = gnntop.run("run", *options, "--", "python3", program, timeout_s=60)
    if ran.wrong() or ran.code != 0:
        return ran.wrong() or f"ended {ran.code}: {ran.err!r}"
    report = json.loads(gnntop.run("report", record, "--json").out)
    sampled = report["sampled_stacks"] or {"taken": 0, "unread": 0}
    seen = (report["steps"]["total"], sampled["taken"] > 2 * sampled["unread"])
    return None if seen == (STEPS, True) else f"{seen[0]} steps; {sampled['taken']} stacks, {sampled['unread']} unread"


def attack_frames(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Frames of all kinds inside each other, thousands of them, with names and lines of any length."""
    tally = Tally("frames without end and with names of any length", "the program's own end, and stacks are seen")
    tally.skipped = UNSUPPORTED
    for _ in range(0 if UNSUPPORTED else max(3, int(FRAMES * share))):
        tally.count(_sampled(gnntop, NESTED.format(steps=STEPS, seed=chance.randrange(1 << 30))))
    return [tally]


NESTED = """
import gnntop, random, sys, time
chance = random.Random({seed})
sys.setrecursionlimit(100_000)
def deep(call, depth): return deep(call, depth - 1) if depth else call()
def compiled(call):
    name, file = chance.choice("fé") * chance.choice((1, 300, 5000)), "/f" * chance.choice((1, 3000)) + ".py"
    text = "\\n" * chance.choice((0, 70_000)) + "def " + name + "(call): return call()"
    found = {{}}
    exec(compile(text, file, "exec"), found)
    return lambda: found[name](call)
def generated(call):
    def generator(): yield call()
    return lambda: next(generator())
def awaited(call):
    async def coroutine(): call()
    def run():
        try: coroutine().send(None)
        except StopIteration: pass
    return run
def sorting(call): return lambda: sorted([0], key=lambda _: call())
def recursive(call):
    depth = chance.choice((10, 100, 1000, 5000))
    return lambda: deep(call, depth)
call = lambda: time.sleep(0.06)
for _ in range(chance.randint(1, 8)):
    call = chance.choice((compiled, generated, awaited, sorting, recursive))(call)
for _ in range({steps}):
    with gnntop.phase("forward"):
        call()
    gnntop.step()
"""
