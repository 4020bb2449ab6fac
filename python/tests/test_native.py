"""The native part itself, in a Python of its own: built-in functions, and ctypes where there are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
GNNTOP = Path(os.environ.get("GNNTOP_PROGRAM") or REPOSITORY / "target/debug/gnntop")
LIBRARY = GNNTOP.parent / "libgnntop_python.so"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"no {LIBRARY}: cargo build")

WITHOUT_BUILTINS = """
import ctypes
real = ctypes.PyDLL.__getattr__
def missing(library, name):
    if name == "gnntop_builtin":
        raise AttributeError(name)
    return real(library, name)
ctypes.PyDLL.__getattr__ = missing
"""

# Everything that is a built-in function, in a program that publishes.
PROGRAM = """
import contextlib, json, sys
import gnntop
from gnntop import _native
gnntop.start("native")
forward, loss = _native.phase("forward"), _native.phase("loss")
for number in range(3):
    assert _native.begin(forward) == 0
    assert _native.begin(forward) == 1
    assert _native.end_to(0) is None
    _native.stamp(5)
    _native.span_between(loss, 5, _native.NOW)
    assert _native.step() == number + 1
assert 0 < _native.now() <= _native.now()
with gnntop.span("one"), contextlib.ExitStack() as stack:
    stack.enter_context(gnntop.span("two"))
    assert _native.begin(forward) == 2
    _native.end()
try:
    with gnntop.span("one"):
        raise KeyError("own")
except KeyError:
    pass
assert _native.begin(forward) == 0, "a span was left open"
_native.end()
assert isinstance(gnntop.span("one"), gnntop.Span) and gnntop.span("one") is gnntop.span("one")
kind = type(_native.begin).__name__
_native.close()
print(kind)
"""

WRONG = """
import sys
from gnntop import _native
for call in (
    lambda: _native.begin("forward"),
    lambda: _native.begin(),
    lambda: _native.begin(1, 2),
    lambda: _native.begin(1 << 40),
    lambda: _native.begin(1 << 90),
    lambda: _native.end_to(None),
    lambda: _native.span_between(1, 2),
    lambda: _native.span_between(1, "2", 3),
    lambda: _native.now(1),
):
    try:
        call()
    except (TypeError, OverflowError):
        continue
    sys.exit("nothing was raised")
before = sys.getrefcount(None)
for _ in range(1000):
    _native.end()
assert sys.getrefcount(None) - before < 100, "references to None leak, or are lost"
print("ok")
"""


def python(code: str, directory: Path, **variables: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GNNTOP")}
    environment.update(
        PYTHONPATH=str(REPOSITORY / "python"), GNNTOP_NATIVE=str(LIBRARY), GNNTOP_DIR=str(directory / "sessions")
    )
    environment.update(variables)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("before", "kind"), [("", "builtin_function_or_method"), (WITHOUT_BUILTINS, "_FuncPtr")], ids=["builtins", "ctypes"]
)
def test_spans_and_steps_are_published_either_way(before: str, kind: str, tmp_path: Path) -> None:
    assert python(before + PROGRAM, tmp_path) == kind
    (session,) = (tmp_path / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=False)
    seen = json.loads(report.stdout)
    assert seen["steps"]["total"] == 3
    assert {"forward", "loss"} <= {phase["name"] for phase in seen["phases"]}


def test_wrong_arguments_raise_and_nothing_else_happens(tmp_path: Path) -> None:
    assert python(WRONG, tmp_path) == "ok"


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.999])
def test_a_library_that_was_cut_short_is_not_loaded(share: float, tmp_path: Path) -> None:
    whole = LIBRARY.read_bytes()
    (tmp_path / "cut.so").write_bytes(whole[: int(len(whole) * share)])
    code = "import gnntop; gnntop.step(); print(gnntop._native.problem)"
    assert "cut short" in python(code, tmp_path, GNNTOP_NATIVE=str(tmp_path / "cut.so"))


ENDS = [
    "os._exit(0)",
    "os.execv('/bin/true', ['true'])",
    "os.execlp('true', 'true')",
    "os.execle('/bin/true', 'true', {})",
]


@pytest.mark.parametrize("end", ENDS)
def test_steps_before_an_end_without_python_are_seen(end: str, tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    program = f"import gnntop, os\nfor _ in range(60): gnntop.step()\n{end}"
    python(program, tmp_path, GNNTOP_ANSWERS=str(tmp_path / "answers"))
    (session,) = (tmp_path / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
    assert json.loads(report.stdout)["steps"]["total"] == 60


def test_a_program_that_cannot_be_executed_raises_as_without_us(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    program = """
import gnntop, os, traceback
from gnntop.hooks import tracebacks
can_take_a_descriptor = os.execve in os.supports_fd
gnntop.step()
assert (os.execve in os.supports_fd) == can_take_a_descriptor
try:
    os.execvp("no such program", ["x"])
except FileNotFoundError as error:
    tracebacks.clean(error)
    print(error.errno, os.execv.__name__, gnntop.step(), "_endings" in traceback.format_exc())
"""
    assert python(program, tmp_path, GNNTOP_ANSWERS=str(tmp_path / "answers")) == "2 execv 2 False"


@pytest.mark.parametrize("hangs_before_its_first_step", [True, False])
def test_a_file_that_cannot_be_opened_holds_up_no_program(hangs_before_its_first_step: bool, tmp_path: Path) -> None:
    """As on a file system that hangs: a pipe without a reader is never open."""
    (tmp_path / "answers").mkdir()
    steps = ["gnntop.step()", "os.rename(pipe, pipe + '.d')\nos.mkfifo(pipe)"]
    first, second = reversed(steps) if hangs_before_its_first_step else steps
    program = f"""
import gnntop, os
pipe = os.environ["GNNTOP_ANSWERS"] + f"/{{os.getpid()}}.end"
open(pipe, "w").close()
{first}
{second}
print("end", flush=True)
os._exit(0)
"""
    assert python(program, tmp_path, GNNTOP_ANSWERS=str(tmp_path / "answers")) == "end"


@pytest.mark.parametrize("step", ["gnntop.step()", "_native.step_between(_native.NOW, _native.NOW)"])
def test_steps_while_nothing_can_be_published_are_counted(step: str, tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("no folder can be here")
    program = f"""
import gnntop, os, time
from gnntop import _native
gnntop.start()
numbers, give_up_at = [], time.monotonic() + 50
def steps_until(status):
    while _native.status() != status:
        assert time.monotonic() < give_up_at, _native.warning()
        time.sleep(0.001)
    for _ in range(5):
        numbers.append({step})
steps_until(_native.FAILED)
os.remove(os.environ["GNNTOP_DIR"])
steps_until(_native.PUBLISHING)
print(numbers, _native.flush())
"""
    assert python(program, tmp_path) == "[0, 0, 0, 0, 0, 6, 7, 8, 9, 10] 1"
    (session,) = (tmp_path / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
    seen = json.loads(report.stdout)
    assert seen["steps"]["total"] == 5
    assert "not recorded: what happened while nothing could be written" in seen["session"]["facts"]


def test_a_fact_of_the_program_is_its_own_whatever_it_is_called(tmp_path: Path) -> None:
    code = """
import gnntop
from gnntop import _native
gnntop.step()
_native.fact("framework", "PyTorch 77")
_native.fact("not recorded: x", "77")
_native.not_recorded("y", "7 or more")
gnntop.resumed(5)
_native.close()
print("end")
"""
    assert python(code, tmp_path) == "end"
    (session,) = (tmp_path / "sessions").iterdir()
    report = subprocess.run([GNNTOP, "report", session], capture_output=True, check=True, text=True).stdout
    lost = report.split("\nLost\n")[1].split("\n\n")[0]
    assert "not recorded: y: 7 or more" in lost, report
    assert "77" not in lost, report
    done = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
    facts = json.loads(done.stdout)["session"]["facts"]
    assert facts["framework"].startswith("Python "), facts
    assert facts["resumed after steps"] == "5", facts
