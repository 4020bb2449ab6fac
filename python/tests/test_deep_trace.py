"""``gnntop trace`` of real trainings, and what becomes of torch's events."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from programs import GNNTOP, REACH, Ran, environment

from gnntop import _native
from gnntop.hooks import deep_trace

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


@needs_program
def test_a_withdrawn_trace_ends(tmp_path: Path) -> None:
    """Nobody waits any more: torch's profiler is stopped, and nothing is written."""
    training = Training(tmp_path)
    session = training.session()
    (session / "request.new").write_text("trace 00000000000000aa 100\n")
    (session / "request.new").rename(session / "request")
    for _ in range(600):
        if (session / "answer").exists():
            break
        time.sleep(0.05)
    assert (session / "answer").read_text().startswith("00000000000000aa began ")
    (session / "request").unlink()
    ran = training.trace("--steps", "2", "-o", "t.json")
    assert ran.returncode == 0, ran
    assert training.end().code == 0
    assert not (session / "trace.json").exists()


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
