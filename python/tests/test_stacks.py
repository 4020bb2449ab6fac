"""Where a training is when it takes too long or hangs, and which rank failed first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import GNNTOP, REACH, TORCHRUN, environment, recorded, report, run

pytestmark = [
    pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build"),
    pytest.mark.skipif(not (3, 11) <= sys.version_info < (3, 15), reason="stacks are read of Python 3.11 to 3.14"),
]

COLLATE = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader

calls = 0
def tokenize(batch):
    global calls
    calls += 1
    if calls % 40 == 0:
        time.sleep(0.4)
    return torch.stack(batch)

def collate(batch):
    return tokenize(batch)

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for batch in DataLoader(torch.randn(480, 8), batch_size=4, collate_fn=collate):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""

WORKERS = """
import os, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)

class Pictures(Dataset):
    def __len__(self):
        return 1200

    def __getitem__(self, index):
        if index == 1001:
            self.wait_for_disk()
        return torch.ones(8)

    def wait_for_disk(self):
        with open(sys.argv[1], "rb") as pipe:
            pipe.read()

def main():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loader = DataLoader(Pictures(), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[2])
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())

if __name__ == "__main__":
    main()
"""

HEAVY = """
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
torch.manual_seed(0)
table = torch.randn(700, 700)

def tokenize(batch):
    return torch.stack(batch) + (table @ table).mean()

def collate(batch):
    return tokenize(batch)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 1)

    def forward(self, x):
        return self.linear(x)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for batch in DataLoader(torch.randn(1200, 8), batch_size=4, collate_fn=collate):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""

RANKS = """
import os, sys, time
from datetime import timedelta
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def wait_for_disk():
    time.sleep(14)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 1)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if sys.argv[1] == "hang" and self.calls == 40 and dist.get_rank() == 1:
            wait_for_disk()
        return self.linear(x)

def meet(step):
    if sys.argv[1] == "barrier" and step == 40 and dist.get_rank() == 0:
        dist.barrier()

def load(step):
    if sys.argv[1] == "fail" and step == 20 and dist.get_rank() == 1:
        raise ValueError("bad graph")

def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for step in range(60):
        load(step)
        meet(step)
        optimizer.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        optimizer.step()

# The group is not destroyed, as in many programs.
main()
"""


def line(text: str) -> str:
    """The line of the ranks' script with this text, as it is told."""
    number = next(number for number, line in enumerate(RANKS.splitlines(), 1) if text in line)
    return f"train.py:{number}"


def ranks(what: str, directory: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Two ranks under gnntop, whose output is the program's."""
    script, recording = directory / "train.py", directory / "run.gnntop"
    script.write_text(RANKS)
    command = [str(GNNTOP), "run", "--plain", "--record", str(recording), "--", *TORCHRUN, str(script), what]
    variables = environment(directory / "sessions") | REACH
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300), recording


def test_a_slow_collate_is_named_and_the_losses_stay_the_same(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(COLLATE)
    alone = run([sys.executable, str(script)], tmp_path / "alone")
    watched, recording = recorded([sys.executable, str(script)], tmp_path / "watched")
    assert (watched.code, watched.out, watched.err) == (0, alone.out, alone.err)
    seen = report(recording)
    places = dict(seen["stacks"]["places"])
    assert max(places, key=lambda place: places[place]) == "tokenize (train.py:12), under collate (train.py:16)"
    evidence = [line for finding in seen["findings"]["found"] for line in finding["evidence"]]
    assert any("taken there: in tokenize (train.py:12), under collate" in line for line in evidence), evidence


@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
def test_a_loader_worker_that_waits_is_named_with_its_line(tmp_path: Path, start: str) -> None:
    script, pipe = tmp_path / "train.py", tmp_path / "pipe"
    script.write_text(WORKERS)
    os.mkfifo(pipe)
    # Whoever reads the pipe waits until this closes it.
    disk = subprocess.Popen(["sh", "-c", f"while :; do exec 3> {pipe}; sleep 1.2; exec 3>&-; sleep 0.2; done"])
    try:
        watched, recording = recorded([sys.executable, str(script), str(pipe), start], tmp_path / "watched")
    finally:
        disk.kill()
        disk.wait()
    # Alone, too, Python sometimes finds at its end that a worker has not removed a semaphore: 2 of 12 times.
    said = [line for line in watched.err.splitlines() if b"resource_tracker" not in line]
    assert (watched.code, said) == (0, [])
    seen = report(recording)
    where = "Pictures.wait_for_disk (train.py:20), under Pictures.__getitem__ (train.py:15)"
    assert dict(seen["stacks"]["places"]).get(where, 0) >= 2, seen["stacks"]
    of_workers = [stack for stack, _ in seen["stacks"]["stacks"] if stack[-1] == "loader worker"]
    # The system call comes first, where the kernel reports it.
    assert [stack for stack in of_workers if "wait_for_disk" in "".join(stack[:2])], of_workers
    evidence = [line for finding in seen["findings"]["found"] for line in finding["evidence"]]
    assert any(f"of loader workers taken there: in {where}" in line for line in evidence), evidence


def test_stacks_over_the_whole_run_say_where_the_time_goes(tmp_path: Path) -> None:
    script, recording = tmp_path / "train.py", tmp_path / "run.gnntop"
    script.write_text(HEAVY)
    alone = run([sys.executable, str(script)], tmp_path / "alone")
    watching = (str(GNNTOP), "run", "--plain", "--stacks", "100", "--record", str(recording), "--")
    watched = run([sys.executable, str(script)], tmp_path / "watched", watching)
    assert (watched.code, watched.out, watched.err) == (0, alone.out, alone.err)
    sampled = report(recording)["sampled_stacks"]
    place = next(place for place, _ in sampled["places"] if not place.startswith("("))
    assert place == "tokenize (train.py:11), under collate (train.py:14)", sampled
    phases = dict(sampled["phases"])
    assert max(phases, key=lambda phase: phases[phase]) == "data wait", sampled
    phase, frames, _ = next(stack for stack in sampled["stacks"] if stack[1][:1] == ["tokenize (train.py:11)"])
    assert (phase, frames[-1]) == ("data wait", "<module> (train.py:26)")
    assert sampled["unread"] <= sampled["taken"] / 10, sampled


# The loop wants the interpreter after each sleep; another thread has it for 5 ms at a time, if it does.
INTERPRETER = """
import sys, threading, time, gnntop
def refresh():
    number = 0
    while not done.is_set():
        number += 1 if sys.argv[1] == "holds" else time.sleep(0.001) or 1
done = threading.Event()
thread = threading.Thread(target=refresh)
thread.start()
for _ in range(100):
    with gnntop.phase("forward"):
        for _ in range(4):
            time.sleep(0.001)
    gnntop.step()
done.set()
thread.join()
"""


@pytest.mark.parametrize("other", ["holds", "sleeps"])
def test_the_thread_that_holds_the_interpreter_is_named(other: str, tmp_path: Path) -> None:
    script, recording = tmp_path / "train.py", tmp_path / "run.gnntop"
    script.write_text(INTERPRETER)
    watching = (str(GNNTOP), "run", "--plain", "--stacks", "200", "--record", str(recording), "--")
    watched = run([sys.executable, str(script), other], tmp_path / "watched", watching)
    assert watched.code == 0, watched.err
    seen = report(recording)
    found = [finding for finding in seen["findings"]["found"] if finding["kind"] == "interpreter"]
    named = ["times it was in refresh (train.py:" in finding["evidence"][0] for finding in found]
    assert named == ([True] if other == "holds" else []), seen["sampled_stacks"]


# Without torch; what is read of it is in the program's own functions.
SAMPLED = """
import sys, time, gnntop
sys.setrecursionlimit(1 << 20)
def work():
    begin = time.monotonic()
    while time.monotonic() - begin < 0.02:
        pass
def deep(depth):
    work() if depth == 0 else deep(depth - 1)
for _ in range(60):
    with gnntop.phase("forward"):
        {call}
    gnntop.step()
"""
LONG = "f" * 5000


@pytest.mark.parametrize(
    ("before", "call", "place"),
    [
        ("", "deep(1500)", "work (train.py:7), under deep (train.py:9)"),
        ("", "deep(20000)", "work (train.py:7), under deep (train.py:9)"),
        ("", f"exec('def {LONG}(): work()'); locals()['{LONG}']()", "work (train.py:7), under <module> (train.py:12)"),
        ("x = 1\n" * 40_000, "work()", "work (train.py:40007), under <module> (train.py:40012)"),
    ],
    ids=["recursion", "endless recursion", "long name", "long script"],
)
def test_a_frame_that_is_hard_to_read_loses_no_stack(before: str, call: str, place: str, tmp_path: Path) -> None:
    script, recording = tmp_path / "train.py", tmp_path / "run.gnntop"
    script.write_text(before + SAMPLED.format(call=call))
    watching = (str(GNNTOP), "run", "--plain", "--stacks", "100", "--record", str(recording), "--")
    watched = run([sys.executable, str(script)], tmp_path / "watched", watching)
    assert (watched.code, watched.out, watched.err) == (0, b"", b"")
    sampled = report(recording)["sampled_stacks"]
    assert sampled["unread"] <= sampled["taken"] / 10, sampled
    places = [found for found, _ in sampled["places"] if "work (" in found]
    assert place in [found.replace(":6)", ":7)").replace(":40006)", ":40007)") for found in places], places
    assert all(len(frames) <= 66 for _, frames, _ in sampled["stacks"])


# By its filter of system calls, process_vm_readv ends the program.
FILTERED = """
import ctypes, gnntop, platform, struct, time
system = ctypes.CDLL(None)
word = lambda code, yes, no, k: struct.pack("HBBI", code, yes, no, k)
forbidden, seccomp = {{"x86_64": (310, 317), "aarch64": (270, 277)}}[platform.machine()]
def restrict():
    kept = ctypes.create_string_buffer(
        word(0x20, 0, 0, 0) + word(0x15, 0, 1, forbidden) + word(6, 0, 0, 0x80000000) + word(6, 0, 0, 0x7fff0000)
    )
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(kept)))
    assert system.prctl(38, 1, 0, 0, 0) == 0 and system.syscall(seccomp, 1, 1, program) == 0
def work(seconds):
    time.sleep(seconds)
if {first}: restrict()
for number in range(60):
    if number == 20 and not {first}: restrict()
    with gnntop.phase("forward"):
        work(1.2 if number == 40 else 0.02)
    gnntop.step()
print("end")
"""


@pytest.mark.parametrize("first", [False, True], ids=["later", "from the start"])
def test_a_filter_of_system_calls_ends_no_program_and_stacks_are_read(first: bool, tmp_path: Path) -> None:
    script, recording = tmp_path / "train.py", tmp_path / "run.gnntop"
    script.write_text(FILTERED.format(first=first))
    watching = (str(GNNTOP), "run", "--plain", "--stacks", "50", "--record", str(recording), "--")
    watched = run([sys.executable, str(script)], tmp_path / "watched", watching)
    assert (watched.code, watched.out, watched.err) == (0, b"end\n", b"")
    seen = report(recording)
    assert any("work (train.py:13)" in place for place in dict(seen["stacks"]["places"])), seen["stacks"]
    sampled = seen["sampled_stacks"]
    assert sampled["taken"] > max(20, 10 * sampled["unread"]), sampled


def test_a_rank_that_the_others_wait_for_is_named_with_its_line(tmp_path: Path) -> None:
    done, _ = ranks("hang", tmp_path)
    assert done.returncode == 0, done.stderr
    hang = next((line for line in done.stdout.splitlines() if "no progress" in line), "")
    for words in ("rank 1", f"wait_for_disk ({line('time.sleep')})", f"main ({line('.backward()')})"):
        assert words in hang, done.stdout


def test_a_barrier_that_one_rank_leaves_out_names_both_lines(tmp_path: Path) -> None:
    done, recording = ranks("barrier", tmp_path)
    assert done.returncode == 1, "gloo gives up after its time limit"
    hang = next((line for line in done.stdout.splitlines() if "no progress" in line), "")
    for words in ("barrier", f"meet ({line('dist.barrier()')})", f"main ({line('.backward()')})"):
        assert words in hang, done.stdout
    assert report(recording)["session"]["died_of"] in ("peer-gone", "collective-timeout"), done.stderr


def test_ranks_that_leave_their_group_to_the_process_end_as_without_us(tmp_path: Path) -> None:
    done, recording = ranks("well", tmp_path)
    assert done.returncode == 0, done.stderr
    assert report(recording)["session"]["died"] is None


def test_the_rank_that_failed_first_is_told_from_those_that_torchrun_ended(tmp_path: Path) -> None:
    done, recording = ranks("fail", tmp_path)
    assert done.returncode == 1
    session = report(recording)["session"]
    assert session["died_of"] == "exception", done.stderr
    ended = f"rank 1 of torchrun train.py raised an exception: ValueError: bad graph, in load, {line('raise')}"
    for words in (ended, "torchrun reported"):
        assert words in session["died"], session
        assert words in done.stderr, done.stderr
