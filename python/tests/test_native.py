"""The native part itself, in a Python of its own: built-in functions, and ctypes where there are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


# A library that is hooked by native code: a loader and an optimizer, without torch.
WATCHED = """
import copy, gc, inspect, pickle, signal, sys, weakref
from gnntop import _native
from gnntop.hooks import batches, loop, patching

class Loader:
    left = 3
    def __iter__(self):
        return self
    def __next__(self):
        "The next batch."
        if not self.left:
            raise StopIteration
        self.left -= 1
        return [self.left]

class Optimizer:
    def zero_grad(self, set_to_none: bool = True) -> str:
        "Frees gradients."
        return f"zero {set_to_none}"
    def step(self, closure=None):
        _native.optimizer_before(self, (self,), {"closure": closure})
        if closure is not None:
            closure()
        _native.optimizer_after(self, (self,), {})

def backward(*losses, inputs=None):
    if inputs == "bad":
        raise ValueError(inputs)
    return losses

class Module:
    training = True
    def _call_impl(self, x, *, scale=1):
        return x * scale
    _compiled_call_impl = None
    def __call__(self, *args, **kwargs):
        call = self._compiled_call_impl or self._call_impl
        return call(*args, **kwargs)

loop.install()
this = sys.modules[__name__]
plain = backward
patching.watch(Loader, "__next__", _native.FETCH)
patching.watch(Optimizer, "zero_grad", _native.ZERO_GRAD)
patching.watch(this, "backward", _native.BACKWARD)
"""

LIKE_THE_FUNCTION = """
assert list(inspect.signature(Optimizer().zero_grad).parameters) == ["set_to_none"]
assert (backward.__name__, Loader.__next__.__doc__) == ("backward", "The next batch.")
assert inspect.isfunction(backward) and (backward.__code__, repr(backward)) == (plain.__code__, repr(plain))
backward.own = 1
assert plain.own == 1 and vars(backward) is vars(plain) and not hasattr(backward, "__wrapped__")
assert pickle.loads(pickle.dumps(backward)) is backward is copy.deepcopy(backward)
assert Optimizer().zero_grad() == "zero True" and Optimizer().zero_grad(set_to_none=False) == "zero False"
assert [batch for batch in Loader()] == [[2], [1], [0]]
assert backward(1, 2) == (1, 2)
for wrong in ({"inputs": "bad"}, {"unknown": 1}):
    try:
        backward(**wrong)
    except (ValueError, TypeError) as error:
        assert error.__context__ is None
    else:
        sys.exit("nothing was raised")
call_impl = Module._call_impl
patching.watch(Module, "_call_impl", _native.OF_ROOTS)
module, other = Module(), Module()
assert [_native.add_root(module, False), _native.add_root(module, False)] == [1, 0]
assert Module._call_impl is other._call_impl.__func__ is call_impl is not module._call_impl.__func__
assert vars(module) == {} and (module(2), module(2, scale=3), other(2, scale=4)) == (2, 6, 8)
module._call_impl = lambda x: "own"
assert module(2) == "own"
del module._call_impl
for _ in range(100):  # as many roots as there is no room for, had those before not gone
    assert _native.add_root(Module(), False) == 1
module._compiled_call_impl = _native.Hooked(lambda x: -x, _native.FORWARD, weakref.ref(module))
assert module(2) == -2
gone = weakref.ref(module)
module._compiled_call_impl = _native.Hooked(module._call_impl, _native.FORWARD, gone)
del module
gc.collect()
assert gone() is None, "a module that its hook's function refers to is never freed"
assert sum(type(o) is _native.Hooked for o in gc.get_objects()) == 4
before = sys.getrefcount(None), sys.getrefcount(plain), sys.getrefcount(_native.Hooked)
for _ in range(1000):
    backward(1)
    Optimizer().zero_grad()
    weakref.ref(_native.Hooked(plain, _native.BACKWARD, None))
after = sys.getrefcount(None), sys.getrefcount(plain), sys.getrefcount(_native.Hooked)
assert all(abs(b - a) < 100 for a, b in zip(before, after)), (before, after)
raw = _native.Hooked.__new__(_native.Hooked)
wrong = [lambda: _native.Hooked(), lambda: _native.Hooked(1, 2, 3, 4), lambda: _native.Hooked(plain, "1", None)]
wrong += [raw, lambda: setattr(raw, "a", 1), lambda: pickle.dumps(raw), lambda: _native.fields()]
for call in wrong:
    try:
        call()
    except (TypeError, AttributeError):
        continue
    sys.exit("nothing was raised")
print("ok")
"""

# What reads the arguments of calls that log: once for calls inside one another, and no part of the program.
READ = """
class Logger:
    def log(self, data, step=None):
        return self.write(data=data)
    def write(self, data):
        return len(data)

seen = []
def read(*args, **kwargs):
    seen.append((args[1:], kwargs))
def stop(*_args, **_kwargs):
    raise SystemExit(5)
name = _native.OF_ROOTS - _native.span_name("log")
signature = inspect.signature(Logger.log)
patching.watch(Logger, "log", name, read)
patching.watch(Logger, "write", name, read)
logger = Logger()
assert inspect.signature(Logger.log) == signature and pickle.loads(pickle.dumps(Logger.log)) is Logger.log
assert (logger.log({"loss": 1.0}), logger.log(step=3, data={})) == (1, 0)
assert seen == [(({"loss": 1.0},), {}), ((), {"step": 3, "data": {}})], seen
try:
    logger.log(None)
except TypeError as error:
    assert error.__context__ is None
assert logger.write([1]) == 1 and seen[-1] == (([1],), {}), "a call that raised is over"
Other = type("Other", (), {"log": lambda self: seen.append("called")})
patching.watch(Other, "log", name, stop)
try:
    Other().log()
except SystemExit as error:
    assert error.code == 5 and seen[-1] != "called", "what a signal raises reaches the program"
assert logger.write([1, 2]) == 2 and seen[-1] == (([1, 2],), {})
before = sys.getrefcount(None), sys.getrefcount(read)
for _ in range(1000):
    logger.log({})
    seen.clear()
after = sys.getrefcount(None), sys.getrefcount(read)
assert all(abs(b - a) < 100 for a, b in zip(before, after)), (before, after)
print("ok")
"""

STEPS = """
optimizer = Optimizer()
for batch in Loader():
    optimizer.zero_grad()
    backward(batch)
    optimizer.step()
try:
    backward(inputs="bad")
except ValueError:
    pass
optimizer.step()
optimizer.step(lambda: backward(1))
print(_native.directory())
_native.close()
"""

# What a signal's handler raises while a hook runs is the program's; what our own code raises is not.
RAISES = """
class Batch:
    pass
def read(batch):
    raise KeyError("own")
batches.read_with(Batch, read)
batch = Batch()
def handle(*_):
    sys.exit(5)
signal.signal(signal.SIGUSR1, handle)
Other = type("Other", (), {"__next__": lambda self: batch})
patching.watch(Other, "__next__", _native.FETCH)
assert next(Other()) is batch, "what our code raises does not reach the program"
assert patching.broken == {"size of Batch": "KeyError: 'own'"}
_native.listen(_native.ON_OPEN, patching.guarded("handled", lambda _: signal.raise_signal(signal.SIGUSR1)))
try:
    backward(1)
except SystemExit as error:
    assert error.code == 5
else:
    sys.exit("the program's own exception was lost")
assert _native.work_begin(_native.BACKWARD) is not None, "work was left open"
print("ok")
"""

FORKED = """
import os, threading
optimizer = Optimizer()
backward(1)
optimizer.step()
if os.fork() == 0:
    assert _native.is_elsewhere() and _native.work_begin(_native.BACKWARD) is None
    assert _native.end_to(_native.work_begin(_native.SAMPLE)) is None, "a worker samples"
    os._exit(0)
assert os.wait()[1] == 0
def other():
    found.append((_native.is_here(), _native.work_begin(_native.BACKWARD)))
found = []
thread = threading.Thread(target=other)
thread.start()
thread.join()
assert found == [(0, 0)] and _native.is_here(), "it trains itself"
print("ok")
"""

# Without a GIL these run at the same time.
THREADS = """
import random, threading
patching.watch(Module, "_call_impl", _native.OF_ROOTS)
batches.read_with(Module, lambda batch: (1, 2, 3, 4, 5))
shared = [{"a": 1, "b": [Module()]}]
def work():
    for number in range(3000):
        module = Module()
        _native.add_root(module, False)
        assert module(2) == 2 and backward(number) == (number,)
        token = _native.work_begin(_native.FETCH)
        if token is not None:
            _native.fetch_end(token, shared)
        shared[0] = {"a": 1, "b": [module]}
        _native.fields(module)
        weakref.ref(_native.Hooked(plain, _native.BACKWARD, None))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
work()
for thread in threads: thread.join()
print("ok")
"""

# While one thread opens the session, the first backward pass of another begins, and it ends afterwards.
OPENING = """
import threading
begun, opened = threading.Event(), threading.Event()
def slow():
    begun.set()
    opened.wait()
patching.watch(this, "slow", _native.BACKWARD)
def train(first):
    optimizer = Optimizer()
    for differentiate in (first, backward, backward):
        differentiate()
        optimizer.step()
other = threading.Thread(target=train, args=(slow,))
def describe():
    other.start()
    begun.wait()
    return "two threads", {}
loop.describe = describe
loop.on_open.append(opened.set)
train(backward)
other.join()
print(_native.directory())
_native.close()
"""

LEFT_AND_JOINED = """
import torch
from gnntop import _joining, _native

def train():
    _joining.join()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    print(_native.directory())
    _joining.leave()

before = torch.autograd.backward, torch.optim.Optimizer.zero_grad
train()
assert (torch.autograd.backward, torch.optim.Optimizer.zero_grad) == before
train()
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


def test_what_native_code_calls_looks_and_acts_like_the_function(tmp_path: Path) -> None:
    assert python(WATCHED + LIKE_THE_FUNCTION, tmp_path) == "ok"


def test_arguments_of_calls_that_log_are_read_once_and_nobody_notices(tmp_path: Path) -> None:
    assert python(WATCHED + READ, tmp_path) == "ok"


def report_on(session: str | Path) -> dict[str, Any]:
    done = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
    return json.loads(done.stdout)


def test_steps_are_counted_by_native_code(tmp_path: Path) -> None:
    seen = report_on(python(WATCHED + STEPS, tmp_path))
    assert seen["steps"]["total"] == 5
    assert {"data wait", "backward", "optimizer"} <= {phase["name"] for phase in seen["phases"]}


def test_only_what_the_program_raises_reaches_it(tmp_path: Path) -> None:
    assert python(WATCHED + RAISES, tmp_path) == "ok"


def test_a_child_does_not_train_and_another_thread_does(tmp_path: Path) -> None:
    assert python(WATCHED + FORKED, tmp_path) == "ok"


def test_many_threads_may_call_what_is_hooked_at_once(tmp_path: Path) -> None:
    assert python(WATCHED + THREADS, tmp_path) == "ok"


def test_no_event_is_lost_of_a_thread_that_trains_while_another_opens_the_session(tmp_path: Path) -> None:
    facts = report_on(python(WATCHED + OPENING, tmp_path))["session"]["facts"]
    assert not [fact for fact in facts if fact.startswith("not recorded")], facts


def test_a_program_that_is_left_and_joined_again_is_seen_again(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    first, second = map(report_on, python(LEFT_AND_JOINED, tmp_path).split())
    for seen in (first, second):
        assert seen["steps"]["total"] == 3
        assert {"forward", "loss", "backward", "optimizer"} <= {phase["name"] for phase in seen["phases"]}
