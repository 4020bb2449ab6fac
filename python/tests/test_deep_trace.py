"""``gnntop trace`` of real trainings, and what becomes of torch's events."""

from __future__ import annotations

import _thread
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import GNNTOP, REACH, Ran, environment

import gnntop
from gnntop import _native
from gnntop.hooks import deep_trace, trace_memory

needs_program = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

# Trains until its stdin ends, then so many steps more.
TRAINING = """
import select, sys, time
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
{before}
steps = 0
while not (select.select([sys.stdin], [], [], 0)[0] and not sys.stdin.read(1)):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    steps += 1
    time.sleep(0.002)
{after}
print(steps, torch.get_rng_state().sum().item())
"""


class Training:
    """A training under ``gnntop run``, until it is told to end."""

    def __init__(self, directory: Path, before: str = "", after: str = "") -> None:
        self.directory = directory
        directory.joinpath("train.py").write_text(TRAINING.format(before=before, after=after))
        self.variables = environment(directory / "sessions") | REACH
        self.recording = directory / "run.gnntop"
        files = {name: directory.joinpath(name).open("wb") for name in ("out", "err")}
        # Without `gnntop run`, which gives the program no stdin: the hooks are all that is needed.
        self.process = subprocess.Popen(
            [sys.executable, "train.py"], cwd=directory, env=self.variables, stdin=subprocess.PIPE,
            stdout=files["out"], stderr=files["err"],
        )  # fmt: skip

    def session(self) -> Path:
        """Its session's directory, once there is one."""
        for _ in range(600):
            found = list(self.directory.glob("sessions/*/live"))
            if found:
                return found[0].parent
            time.sleep(0.1)
        raise AssertionError((self.directory / "err").read_text())

    def trace(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """``gnntop trace`` of it."""
        command = [str(GNNTOP), "trace", str(self.session()), "--within", "120s", *arguments]
        return subprocess.run(command, cwd=self.directory, env=self.variables, capture_output=True, text=True)

    def report(self) -> dict[str, Any]:
        """What its session shows."""
        command = [str(GNNTOP), "report", "--json", str(self.session())]
        done = subprocess.run(command, env=self.variables, capture_output=True, check=True)
        return dict(json.loads(done.stdout))

    def end(self) -> Ran:
        """Ends it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=120)
        return Ran(code, (self.directory / "out").read_bytes(), (self.directory / "err").read_bytes())


@needs_program
def test_a_running_training_is_traced(tmp_path: Path) -> None:
    """The trace has the steps asked for; the session has their operators, and figures without these steps."""
    training = Training(tmp_path)
    ran = training.trace("--steps", "3", "-o", "t.json")
    assert ran.returncode == 0, ran
    assert ran.stdout.startswith("3 steps, "), ran
    assert "aten::addmm" in ran.stdout, ran
    trace = json.loads((tmp_path / "t.json").read_text())
    steps = [event for event in trace["traceEvents"] if str(event.get("name", "")).startswith("ProfilerStep#")]
    numbers = [int(event["name"].partition("#")[2]) for event in steps]
    assert numbers == list(range(numbers[0], numbers[0] + 3))
    again = training.trace("--steps", "1", "-o", "u.json")
    assert again.returncode == 0, again
    ended = training.end()
    assert (ended.code, ended.err) == (0, b""), ended
    seen = training.report()
    done = int(ended.out.split()[0])
    # Each trace leaves out its steps and the next, in which the trace is written.
    assert (seen["steps"]["total"], seen["steps"]["reported"]) == (done, done - 6), seen["steps"]
    names = {span["name"] for span in seen["spans"]}
    assert {"aten::addmm", "Optimizer.step#Adam.step"} <= names, names
    calls = next(span["count"] for span in seen["spans"] if span["name"] == "aten::addmm")
    assert calls == 2 * 4
    assert not list(training.session().glob("[rt][re][qa]*")), "neither request nor trace is left"


@needs_program
def test_under_another_profiler_it_is_refused_and_the_program_goes_on(tmp_path: Path) -> None:
    """torch has one profiler at a time: ours gives way, and says so."""
    training = Training(
        tmp_path,
        before="profiler = torch.profiler.profile()\nprofiler.start()",
        after="profiler.stop()\nassert any('addmm' in event.key for event in profiler.key_averages())",
    )
    ran = training.trace("-o", "t.json")
    assert ran.returncode == 1, ran
    assert "cannot be traced: RuntimeError: the program already runs torch.profiler" in ran.stderr, ran
    assert not (tmp_path / "t.json").exists()
    ended = training.end()
    assert ended.code == 0, ended


@contextlib.contextmanager
def asking(session: Path, text: str) -> Iterator[None]:
    """Asks as ``gnntop trace`` does, and is gone afterwards as if killed."""
    with (session / "request.new").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(text)
        file.flush()
        (session / "request.new").rename(session / "request")
        yield


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError(is_so)


@needs_program
def test_what_a_killed_asker_leaves_is_removed(tmp_path: Path) -> None:
    training = Training(tmp_path)
    session = training.session()
    with asking(session, "trace 00000000000000aa 2\n"):
        wait_until((session / "trace.json").exists)
        wait_until(lambda: " done " in (session / "answer").read_text())
    wait_until(lambda: not (session / "trace.json").exists() and not (session / "answer").exists())
    assert training.end().code == 0


@needs_program
@pytest.mark.parametrize("steps", ["0", "101", "1" * 4000, "-1", "1_0", "\u0665", "x", ""])
def test_a_request_without_bounds_is_refused_and_a_pipe_blocks_nothing(steps: str, tmp_path: Path) -> None:
    training = Training(tmp_path)
    session = training.session()
    for name in ("answer", "answer.new", "trace.json", "trace.json.tmp"):
        os.mkfifo(session / name)
    with asking(session, f"trace 00000000000000aa {steps}\n"):
        wait_until((session / "answer").is_file)
        assert (session / "answer").read_text() == "00000000000000aa failed ValueError: a trace is of 1 to 100 steps\n"
    assert training.end().code == 0


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A session's directory, without a session; a profiler that does nothing."""
    functions = {"status": lambda: 1, "directory": lambda: str(tmp_path), "request": lambda: REQUEST}
    for name, function in functions.items():
        monkeypatch.setattr(_native, name, function)
    monkeypatch.setattr(deep_trace, "_profiler", lambda first: Profiler())
    monkeypatch.setattr(Profiler, "running", 0)
    monkeypatch.setattr(deep_trace, "_events", lambda profiler: [])
    monkeypatch.setattr(deep_trace, "publish", len)
    return tmp_path


REQUEST = "trace 00000000000000aa 50\n"


class Profiler:
    """Does nothing, and counts how many of it run."""

    running = 0

    def start(self) -> None:
        Profiler.running += 1

    def stop(self) -> None:
        Profiler.running -= 1

    def step(self) -> None:
        pass

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text("[]")


def test_a_trace_that_takes_much_memory_ends_before_its_time(native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([100, 200, 300, 1 << 60])
    monkeypatch.setattr(trace_memory, "_most_resident", lambda: 0)
    monkeypatch.setattr(trace_memory, "_resident", lambda: next(sizes))
    for step in range(7, 11):
        deep_trace.step_ended(step)
    assert (native / "answer").read_text() == "00000000000000aa done 8 10 0\n"
    assert (native / "trace.json").is_file()


def test_a_trace_ends_with_publishing_and_begins_anew_with_it(native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (7, 8):
        deep_trace.step_ended(step)
    assert Profiler.running == 1
    monkeypatch.setattr(_native, "status", lambda: _native.FAILED)
    deep_trace.step_ended(0)
    assert Profiler.running == 0, "nobody says when this ends, and torch keeps every operator"
    monkeypatch.setattr(_native, "status", lambda: _native.PUBLISHING)
    for step in range(30, 81):
        deep_trace.step_ended(step)
    assert (Profiler.running, (native / "answer").read_text()) == (0, "00000000000000aa done 31 80 0\n")


def test_a_trace_ends_with_its_session(native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[str] = []
    monkeypatch.setattr(_native, "answered", answered.append)
    deep_trace.step_ended(7)
    monkeypatch.setattr(_native, "status", lambda: _native.NOT_OPEN)
    deep_trace.step_ended(0)
    assert (Profiler.running, answered) == (0, [REQUEST]), "a later session has another asker"


def test_a_trace_has_so_many_steps_whatever_their_numbers(native: Path) -> None:
    deep_trace.step_ended(7)
    for _ in range(50):
        assert Profiler.running == 1
        deep_trace.step_ended(1)
    assert Profiler.running == 0


def test_steps_split_by_hand_look_for_a_request_while_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    for name, value in {"step": 0, "status": _native.FAILED, "asked": 1}.items():
        monkeypatch.setattr(_native, name, lambda value=value: value)
    monkeypatch.setattr(gnntop, "_is_split_by_hand", True)
    monkeypatch.setattr(deep_trace, "step_ended", seen.append)
    gnntop.step()
    assert seen == [0]


def test_whatever_torch_raises_is_answered_in_one_line(native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class BadError(Exception):
        def __str__(self) -> str:
            raise ValueError

    for error in (RuntimeError("half \ud800\nline"), SystemExit(3), BadError()):
        monkeypatch.setattr(deep_trace, "_profiler", raising(error))
        (native / "trace.json").write_text("half")
        deep_trace.step_ended(7)
        answer = (native / "answer").read_text()
        assert answer.startswith(f"00000000000000aa failed {type(error).__name__}"), answer
        assert answer.count("\n") == 1
        assert not (native / "trace.json").exists()


def raising(error: BaseException) -> Callable[[int], object]:
    def raise_it(first: int) -> object:
        raise error

    return raise_it


def test_the_memory_of_a_trace_has_a_bound() -> None:
    assert 0 < trace_memory._room() <= 1 << 30
    assert 1 << 20 < trace_memory._resident() <= trace_memory._most_resident()


def test_memory_within_a_step_may_be_what_the_program_had_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of a step are no operators of the trace; at its end they are gone."""
    mib, now = 1 << 20, [0]
    monkeypatch.setattr(trace_memory, "_LOOKS_NS", 0)
    monkeypatch.setattr(trace_memory, "_room", lambda: 800 * mib)
    monkeypatch.setattr(trace_memory, "_most_resident", lambda: 300 * mib)
    monkeypatch.setattr(trace_memory, "_resident", lambda: now[0])
    memory = trace_memory.Memory()
    seen = []
    for now[0] in (99 * mib, 101 * mib, 399 * mib, 401 * mib):
        seen.append((memory.lasts(), memory.is_passed()))
    assert seen == [(True, False), (False, False), (False, False), (False, True)]
    monkeypatch.setattr(trace_memory, "_most_resident", lambda: 9000 * mib)
    now[0] = 0
    memory = trace_memory.Memory()
    now[0] = 801 * mib
    assert memory.is_passed(), "whatever it had once"


VALIDATION = """
give_up_at = time.monotonic() + 60
while not torch.autograd._profiler_enabled() and time.monotonic() < give_up_at:
    model(torch.ones(4, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
assert torch.autograd._profiler_enabled()
resident = lambda: int(open("/proc/self/statm").read().split()[1]) >> 8
before = resident()
model.eval()
with torch.no_grad():
    while torch.autograd._profiler_enabled() and resident() < before + 1500:
        model(torch.ones(4, 8))
assert not torch.autograd._profiler_enabled(), "the trace goes on"
assert resident() < before + 1500, resident() - before
"""


@needs_program
def test_a_long_validation_ends_a_trace(tmp_path: Path) -> None:
    """No step ends in it, and torch keeps every operator: the program is to grow by a gigabyte at most."""
    training = Training(tmp_path, after=VALIDATION)
    session = training.session()
    with asking(session, "trace 00000000000000aa 1\n"):
        ended = training.end()
    assert (ended.code, ended.err) == (0, b""), ended


def test_a_thread_that_cannot_run_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where memory is scarce: `threading` waits for such a one for ever."""
    monkeypatch.setattr(_thread, "start_new_thread", lambda *_: 1)
    monkeypatch.setattr(threading, "_start_new_thread", lambda *_: 1)
    monkeypatch.setattr(deep_trace, "_PUBLISHING_S", 0.01, raising=False)
    monkeypatch.setattr(deep_trace, "_ticks", lambda: int)
    assert deep_trace.publish([Event("aten::linear", 10, 40)]) == 0


@needs_program
def test_a_withdrawn_trace_ends(tmp_path: Path) -> None:
    """Nobody waits any more: torch's profiler is stopped, and nothing is written."""
    training = Training(tmp_path)
    session = training.session()
    with asking(session, "trace 00000000000000aa 100\n"):
        wait_until((session / "answer").exists)
        assert (session / "answer").read_text().startswith("00000000000000aa began ")
    ran = training.trace("--steps", "2", "-o", "t.json")
    assert ran.returncode == 0, ran
    assert training.end().code == 0
    assert not (session / "trace.json").exists()


# What a program does while a trace of 100 slow steps is under way, and must survive.
IN_A_TRACE = {
    "ends": "",
    "raises": "raise SystemExit(7)",
    "profiles": """
with torch.profiler.profile() as own:
    model(torch.ones(4, 8))
assert any("addmm" in event.key for event in own.key_averages())
for _ in range(3):
    loss = model(torch.ones(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
""",
}


@needs_program
@pytest.mark.parametrize("what", IN_A_TRACE)
def test_a_program_survives_what_it_does_in_a_trace(what: str, tmp_path: Path) -> None:
    """torch's profiler would crash it: the trace ends first, and says why."""
    slow = "time.sleep = lambda _, sleep=time.sleep: sleep(0.1)"
    training = Training(tmp_path, before=slow, after=IN_A_TRACE[what])
    session = training.session()
    with asking(session, "trace 00000000000000aa 100\n"):
        wait_until((session / "answer").exists)
        ended = training.end()
    assert ended.code == (7 if what == "raises" else 0), ended
    assert ended.err == b"", ended


THREAD = """
import threading

def train(steps):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        model(torch.ones(4, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep({pause})

other = threading.Thread(target=train, args=[{steps}])
other.start()
"""


@needs_program
def test_where_several_threads_train_the_main_one_is_traced(tmp_path: Path) -> None:
    """Torch's library says on stderr that it is not its thread on any other, and only one can stop a trace."""
    before = "sleep = time.sleep\ntime.sleep = lambda s: sleep(10 * s)" + THREAD.format(pause="0", steps="1 << 60")
    stop = "def stop(): raise SystemExit\ntorch.optim.SGD.zero_grad = lambda self: stop()\nother.join()"
    training = Training(tmp_path, before=before, after=stop)
    session = training.session()
    for number in range(3):
        with asking(session, f"trace {number:016x} 5\n"):
            wait_until(lambda: any(word in said(session) for word in (" done ", " failed ")))
    ended = training.end()
    assert (ended.code, ended.err) == (0, b""), ended


@needs_program
def test_a_traced_thread_may_end(tmp_path: Path) -> None:
    training = Training(tmp_path, before=THREAD.format(pause="0.02", steps="250") + "other.join()")
    session = training.session()
    with asking(session, "trace 00000000000000aa 100\n"):
        wait_until(lambda: " began " in said(session))
        ended = training.end()
    assert ended.code == 0, ended
    assert b"\n" not in ended.err.rstrip(), "torch says that the thread is not its own, and no more"


def said(session: Path) -> str:
    """The newest answer."""
    with contextlib.suppress(OSError):
        return (session / "answer").read_text()
    return ""


class Event:
    """As torch tells of one."""

    def __init__(self, name: str, begin: int, ns: int, thread: int = 1, device: str = "CPU") -> None:
        self._values = (name, begin, ns, thread)
        self._device = type("DeviceType", (), {"name": device})

    def name(self) -> str:
        return self._values[0]

    def start_ns(self) -> int:
        return self._values[1]

    def duration_ns(self) -> int:
        return self._values[2]

    def start_thread_id(self) -> int:
        return self._values[3]

    def device_type(self) -> Any:
        return self._device

    def device_index(self) -> int:
        return 0

    def device_resource_id(self) -> int:
        return 7

    def is_async(self) -> bool:
        return self._values[0] == "async"


def test_each_thread_and_stream_has_a_track_with_inner_spans_first() -> None:
    """As a track of the session wants them: by their ends."""
    tracks = deep_trace.by_track(
        [
            Event("ProfilerStep#7", 0, 100, thread=3),
            Event("aten::linear", 10, 40, thread=3),
            Event("aten::addmm", 20, 30, thread=3),
            Event("aten::mm", 30, 10, thread=5),
            Event("gemm", 60, 20, device="CUDA"),
            Event("async", 0, 90, thread=3),
        ]
    )
    assert tracks == {
        ("operators", _native.OPERATORS): [(50, 20, "aten::addmm"), (50, 10, "aten::linear")],
        ("operators of thread 5", _native.OPERATORS): [(40, 30, "aten::mm")],
        ("GPU 0 stream 7", _native.STREAM): [(80, 60, "gemm")],
    }
