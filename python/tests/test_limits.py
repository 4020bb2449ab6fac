"""More names, threads and nesting than there is room for, and values of any kind: no exception, no loss in silence."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_native import GNNTOP, LIBRARY, python

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"no {LIBRARY}: cargo build")

OTHERS = "(more names than gnntop keeps)"


def seen(code: str, directory: Path) -> dict[str, Any]:
    """The report of a program that trains, and says how it ends."""
    assert python(f"import gnntop, sys, time, threading\ngnntop.step()\n{code}\nprint('end')", directory) == "end"
    (session,) = (directory / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
    return json.loads(report.stdout)


def test_a_phase_beyond_the_table_keeps_the_time_out_of_the_gap(tmp_path: Path) -> None:
    code = """
for number in range(5000):
    gnntop.span(f"name {number}")
with gnntop.phase("one more"):
    time.sleep(0.2)
gnntop.step()
"""
    phases = {phase["name"]: phase["total_ns"] for phase in seen(code, tmp_path)["phases"]}
    assert phases[OTHERS] >= 200_000_000, phases


@pytest.mark.parametrize("kind", ["span", "phase", "counter", "mark"])
def test_names_beyond_the_table_are_recorded_under_one(kind: str, tmp_path: Path) -> None:
    call = {
        "counter": "gnntop.counter(f'{number}', 1.0)",
        "mark": "gnntop.mark(f'{number}')",
    }.get(kind, f"gnntop.{kind}(f'{{number}}').__enter__(); gnntop.{kind}(f'{{number}}').__exit__(None, None, None)")
    code = f"for number in range(6000):\n    {call}\n    if number % 500 == 0: time.sleep(0.05)\ngnntop.step()"
    seen(code, tmp_path)
    (session,) = (tmp_path / "sessions").iterdir()
    events = subprocess.run([GNNTOP, "export", session, "--to", "ndjson"], capture_output=True, check=True).stdout
    assert events.count(OTHERS.encode()) > 3500


@pytest.mark.parametrize("off", [False, True])
def test_names_and_values_of_any_kind_are_taken_or_dropped(off: bool, tmp_path: Path) -> None:
    code = """
import gnntop
class Bad:
    def __str__(self): raise ValueError("own")
    __float__ = __index__ = __int__ = __repr__ = __str__
    __hash__ = None
texts = ["", "a\\0b", "a\\nb", "\\ud800", "\\udfff x", "x" * (1 << 20), "é" * 500_000]
names = [*texts, b"bytes", None, 5, 1.5, [], {}, Bad()]
values = [None, True, 1 << 80, float("nan"), float("inf"), "1", b"", [], Bad(), 1j]
gnntop.start(Bad())
for name in names:
    with gnntop.span(name), gnntop.phase(name): pass
    gnntop.mark(name)
    for value in values:
        gnntop.counter(name, value)
        gnntop.mark(name, value)
for value in values:
    gnntop.step(epoch=value)
    gnntop.resumed(value)
print("end")
"""
    assert python(code, tmp_path, **({"GNNTOP": "0"} if off else {})) == "end"


@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "ValueError", "GeneratorExit"])
def test_names_whose_own_code_raises_are_taken(kind: str, tmp_path: Path) -> None:
    code = f"""
import gnntop
class Said:
    def __str__(self): raise {kind}("own")
class Hashed(str):
    def __hash__(self): raise {kind}("own")
class Compared(str):
    def __eq__(self, other): raise {kind}("own")
    __hash__ = str.__hash__
    __str__ = Said.__str__
gnntop.span("same"), gnntop.phase("same"), gnntop.mark("same"), gnntop.counter("same", 1)
for name in (Said(), Hashed("same"), Compared("same")):
    with gnntop.span(name), gnntop.phase(name): gnntop.mark(name)
    gnntop.counter(name, 1)
print("end")
"""
    assert python(code, tmp_path) == "end"


def test_what_a_handler_of_a_signal_raises_in_a_call_reaches_the_program(tmp_path: Path) -> None:
    code = """
import gnntop, signal
class Late(Exception): pass
def handler(*_): raise Late
signal.signal(signal.SIGUSR1, handler)
class Name(str):
    def __hash__(self): signal.raise_signal(signal.SIGUSR1)
class Number:
    def __int__(self): signal.raise_signal(signal.SIGUSR1)
    __float__ = __int__
reached = 0
for call in (
    lambda: gnntop.span(Name()),
    lambda: gnntop.phase(Name()),
    lambda: gnntop.counter(Name(), 1),
    lambda: gnntop.mark(Name()),
    lambda: gnntop.resumed(Number()),
    lambda: gnntop.counter("number", Number()),
    lambda: gnntop.mark("number", Number()),
    lambda: gnntop.denormals(Number()),
):
    try:
        call()
    except Late:
        reached += 1
print(reached)
"""
    assert python(code, tmp_path) == "8"


@pytest.mark.parametrize("before", ["", "gnntop.step()"])
def test_a_program_that_empties_the_table_of_modules_sees_no_error(before: str, tmp_path: Path) -> None:
    code = f"""
import gnntop, os, sys
{before}
everything = dict(sys.modules)
sys.modules.clear()
for _ in range(3):
    with gnntop.span("a"), gnntop.phase("b"): gnntop.step(epoch=1)
gnntop.counter("c", "x"), gnntop.mark("d", 1), gnntop.resumed(3), gnntop.denormals(1), gnntop.start()
sys.modules.update(everything)
print("end")
"""
    reach = {"PYTHONPATH": str(Path(__file__).parents[1] / "gnntop/bootstrap")}
    assert python(code, tmp_path, **reach) == "end"


def test_what_no_table_has_room_for_is_counted_and_said(tmp_path: Path) -> None:
    code = """
import contextlib
with contextlib.ExitStack() as deep:
    for _ in range(100):
        deep.enter_context(gnntop.span("deep"))
def work():
    for _ in range(10):
        with gnntop.span("work"): pass
for _ in range(12):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
gnntop.counter("reward", "much")
gnntop.step()
gnntop._native.close()
"""
    facts = seen(code, tmp_path)["session"]["facts"]
    assert {fact: count for fact, count in facts.items() if fact.startswith("not recorded")} == {
        "not recorded: spans nested too deep": "36",
        "not recorded: events of threads without a track": "40",
        "not recorded: counters whose value is no number": "1 or more",
    }


def test_names_of_a_worker_beyond_its_table_are_recorded_under_one(tmp_path: Path) -> None:
    code = """
import os
from gnntop import _native
handle, address = _native.worker_ring("worker")
if os.fork() == 0:
    _native.worker_attach(address)
    for number in range(100):
        _native.mark(_native.mark_name(f"mark {number}"))
    gnntop.denormals(1)
    os._exit(0)
os.wait()
time.sleep(0.2)
"""
    assert seen(code, tmp_path)["losses"]["dropped_events"] == 0
    (session,) = (tmp_path / "sessions").iterdir()
    events = subprocess.run([GNNTOP, "export", session, "--to", "ndjson"], capture_output=True, check=True).stdout
    assert (events.count(b'"mark '), events.count(OTHERS.encode())) == (60, 41)


@pytest.mark.parametrize(
    ("end", "lost"),
    [
        ("gnntop.step(); _native.close()", "88"),
        ("gnntop.step(); _native.flush(); os._exit(0)", "88"),
        ("if os.fork() == 0: gnntop.step(); _native.close(); os._exit(0)\nos.wait()", None),
    ],
    ids=["closed", "killed", "the parent's"],
)
def test_events_before_the_session_that_had_no_room_are_counted(end: str, lost: str | None, tmp_path: Path) -> None:
    code = f"""
import gnntop, os
from gnntop import _native
for number in range(2136):
    _native.mark(_native.mark_name("early"))
{end}
"""
    python(code, tmp_path)
    (session,) = (tmp_path / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True).stdout
    facts = json.loads(report)["session"]["facts"]
    assert dict(facts).get("not recorded: the oldest events before the session") == lost


def test_events_that_a_thread_kept_for_a_track_it_never_got_are_counted(tmp_path: Path) -> None:
    code = """
import gnntop, threading
from gnntop import _native
def work():
    for _ in range(7):
        _native.mark(_native.mark_name("early"))
thread = threading.Thread(target=work)
thread.start()
thread.join()
_native.mark(_native.mark_name("early"))
gnntop.step()
_native.close()
print("end")
"""
    assert python(code, tmp_path) == "end"
    (session,) = (tmp_path / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True).stdout
    facts = json.loads(report)["session"]["facts"]
    assert dict(facts).get("not recorded: events of threads without a track") == "7"


def test_what_one_session_lacks_is_not_said_of_the_next(tmp_path: Path) -> None:
    code = """
for _ in range(4):
    gnntop.counter("a", "x")
gnntop._native.close()
time.sleep(1.1)
gnntop.start("second")
gnntop.step()
gnntop.counter("a", "x")
"""
    assert python(f"import gnntop, time\ngnntop.start('first')\n{code}\nprint('end')", tmp_path) == "end"
    facts = {}
    for session in (tmp_path / "sessions").iterdir():
        done = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
        seen = json.loads(done.stdout)["session"]
        facts[seen["name"]] = dict(seen["facts"]).get("not recorded: counters whose value is no number")
    assert facts == {"first": "4 or more", "second": "1 or more"}
