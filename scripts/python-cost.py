#!/usr/bin/env python3
"""What gnntop costs a PyTorch training, beside the same training alone and under TraceML, in turn.

usage: scripts/python-cost.py [--rounds 40] [--launches 3] [--gnntop PROGRAM] [--stacks 20 | --stalls] [LOOP]...

    mlp            five-layer MLP, batch 64, DataLoader of a TensorDataset, one thread, some 0.3 ms a step
                   (two threads: it alone beside a thread that waits, as any process has that publishes)
    pna            64-layer PNA of PyG on batches of small graphs
    gcn            PyG's GCN on one graph of the size of Cora, eager
    gcn-compiled   the same by torch.compile
    toggled        the mlp in one process that gnntop joins and leaves in turn: what the hooks add to a step
    parts          the same for one kind of hook after the other; "none" is the noise
    traced         the mlp while `gnntop trace` traces 20 of its steps, ten times: its steps with and without
    stalled        no cost: how long after a stall has lasted 50 ms its stack is recorded
    span           a thousand empty `with gnntop.span(...)`: microseconds are nanoseconds of one
    profiled       no cost: each phase's time beside torch.profiler's record of it in the same steps; then the same
                   without gnntop, by a clock that is read where its hooks are: what differs there, too, is not its

With --stalls each loop runs alone, under `gnntop run`, and under `gnntop run --stall 0` (no stacks at stalls).
With --stacks N each loop runs alone, under `gnntop run`, and under `gnntop run --stacks N`; a turn then tells the
mean of its steps.

All ways to run a loop are started together and take turns of some steps, in the order ABC CBA, while the others wait:
each round compares neighbours in time. A turn tells the median of its steps and the memory of its process. Printed: the
median over rounds and its quartiles; what each way adds to the step alone, by round, with quartiles and the interval in
which the median lies with 95 %. Each launch is a new set of processes, which differ by chance. Run with the Python of
scripts/python-env.sh, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import IO, Any

REPOSITORY = Path(__file__).resolve().parents[1]
TRAININGS = REPOSITORY / "python/benches/trainings.py"
# Steps per turn, and warm-up turns.
STEPS = {"mlp": 250, "pna": 1, "gcn": 20, "gcn-compiled": 20, "span": 5}
WARM_UP = 3
PHASES = ("data wait", "zero_grad", "forward", "loss", "backward", "optimizer")
# Set in every process that this script starts and in those that they start.
MARK = f"GNNTOP_COST={uuid.uuid4()}"


def main() -> None:
    """Measures the requested loops."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "loops", nargs="*", metavar="LOOP", default=[*STEPS, "toggled", "parts", "traced", "stalled", "profiled"]
    )
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--gnntop", type=Path, default=REPOSITORY / "target/release/gnntop")
    parser.add_argument("--stacks", type=int, default=0, metavar="N")
    parser.add_argument("--stalls", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that child processes end, too
    for loop in arguments.loops:
        if loop == "profiled":
            compare_with_profiler(arguments.gnntop)
        elif loop == "toggled":
            measure_hooks(arguments.launches, arguments.gnntop)
        elif loop == "parts":
            measure_parts(arguments.gnntop)
        elif loop == "traced":
            measure_trace(arguments.gnntop)
        elif loop == "stalled":
            measure_stacks(arguments.gnntop)
        else:
            started = ways(loop, arguments.gnntop, arguments.stacks, arguments.stalls)
            measure(loop, arguments.rounds, arguments.launches, started)


# ---- processes that take turns -------------------------------------------------------------------------------------


class Runner:
    """A training program that waits for its turns."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.turns = folder / "turns"
        for end in ("go", "done"):
            os.mkfifo(f"{self.turns}.{end}")
        self.said = (folder / "said").open("wb")
        self.process = start(command, folder, self.said, TURNS=str(self.turns))
        self.go: IO[str]
        self.done: IO[str]

    def connect(self) -> None:
        """Waits for the training program, which opens the first pipe, then the second."""
        while True:
            try:
                self.go = os.fdopen(os.open(f"{self.turns}.go", os.O_WRONLY | os.O_NONBLOCK), "w")
                break
            except OSError:  # nobody reads it yet
                self.check()
                time.sleep(0.05)
        self.done = os.fdopen(os.open(f"{self.turns}.done", os.O_RDONLY))

    def check(self) -> None:
        """Ends the measurement where the training has ended."""
        if self.process.poll() is not None:
            sys.exit(f"{self.process.args!r} ended:\n{(self.turns.parent / 'said').read_text()[-2000:]}")

    def turn(self, steps: int) -> dict[str, Any]:
        """Makes it take this many steps."""
        print(steps, file=self.go, flush=True)
        answer = self.done.readline()
        if not answer:
            self.process.wait()
            self.check()
        return dict(json.loads(answer))

    def end(self) -> None:
        """Lets it end by itself, as its loop does without further requests."""
        self.go.close()
        self.done.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.said.close()


def start(command: list[str], folder: Path, said: IO[bytes], **extra: str) -> subprocess.Popen[bytes]:
    """Starts a command whose processes can be recognised by their environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GNNTOP")}
    name, _, value = MARK.partition("=")
    environment.update(
        {name: value, "OMP_NUM_THREADS": "1", "GNNTOP_DIR": f"{folder}/sessions"},
        **extra,
    )
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        cwd=folder,
    )


def end_leftovers() -> None:
    """Ends the processes that started commands have left running, such as TraceML's aggregator, and nothing else."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = MARK.encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if is_ours and int(entry.name) != os.getpid():
            os.kill(int(entry.name), signal.SIGKILL)


def ways(loop: str, gnntop: Path, stacks: int, stalls: bool) -> dict[str, list[str]]:
    """The ways to start a loop, by name; with this many stacks per second, if any, or without stacks at stalls."""
    command = [sys.executable, str(TRAININGS), loop]
    found = {
        "alone": command,
        "gnntop run": [str(gnntop.resolve()), "run", "--plain", "--", *command],
    }
    if stacks:
        found["with stacks"] = [str(gnntop.resolve()), "run", "--plain", "--stacks", str(stacks), "--", *command]
        return found
    if stalls:
        found["no stalls"] = [str(gnntop.resolve()), "run", "--plain", "--stall", "0", "--", *command]
        return found
    traceml = shutil.which("traceml", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if loop == "mlp":
        found["two threads"] = [sys.executable, str(TRAININGS), "mlp-threaded"]
    if traceml and loop == "mlp":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        options = ["--aggregator-port", port, "--finalize-timeout-sec", "5"]
        found["traceml run"] = [
            traceml,
            "run",
            *options,
            str(TRAININGS),
            "--args",
            "mlp-traceml",
        ]
    return found


# ---- costs ---------------------------------------------------------------------------------------------------------


def measure(loop: str, rounds: int, launches: int, started: dict[str, list[str]]) -> None:
    """Lets all ways take turns and prints what their steps took."""
    taken: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    for _ in range(launches):
        with tempfile.TemporaryDirectory() as folder:
            try:
                launch(Path(folder), loop, rounds, started, taken, memory)
            finally:
                end_leftovers()
    print(f"\n{loop}: {launches} launches of {rounds} rounds of {STEPS[loop]} steps")
    print_added(taken)
    for way, values in memory.items():
        line = f"  {way:12} {statistics.median(values) / 1024:10.1f} MiB resident"
        if way != "alone":
            more = [(value - without) / 1024 for value, without in zip(values, memory["alone"], strict=True)]
            line += "   " + ", ".join(f"{value:+.1f}" for value in more) + " MiB"
        print(line, flush=True)


def print_added(taken: dict[str, list[float]]) -> None:
    """Microseconds of a step each way, and what each way adds to the step alone in the same round."""
    alone = taken["alone"]
    for way, values in taken.items():
        line = f"  {way:12} {statistics.median(values):10.1f} us a step ({quartiles(values)})"
        if way != "alone":
            line += more_than(values, alone)
        print(line)
        if way == "with stacks":
            print(f"  {'':12} than gnntop run without them{more_than(values, taken['gnntop run'])}")


def more_than(values: list[float], others: list[float]) -> str:
    """How much longer these are than the others of the same rounds."""
    added = [value - without for value, without in zip(values, others, strict=True)]
    shares = [100 * more / without for more, without in zip(added, others, strict=True)]
    line = f"   {statistics.median(added):+.1f} us ({quartiles(added)}; median within {interval(added)})"
    return line + f"   {statistics.median(shares):+.2f} % ({quartiles(shares)}; {interval(shares)})"


def launch(
    folder: Path,
    loop: str,
    rounds: int,
    started: dict[str, list[str]],
    taken: dict[str, list[float]],
    memory: dict[str, list[float]],
) -> None:
    """One set of processes, from their start to their end."""
    runners = {}
    for way, command in started.items():
        place = folder / way.replace(" ", "-")
        place.mkdir()
        runners[way] = Runner(command, place)
    for runner in runners.values():
        runner.connect()
    for runner in runners.values():
        for _ in range(WARM_UP):
            runner.turn(STEPS[loop])
    # Few steps have a stack taken, and a median would not show them.
    usual = statistics.fmean if "with stacks" in started else statistics.median
    order, last = list(runners), {}
    for _ in range(rounds):
        for way in order:
            last[way] = runners[way].turn(STEPS[loop])
            taken.setdefault(way, []).append(usual(last[way]["times_ns"]) / 1000)
        order.reverse()
    for way, runner in runners.items():
        memory.setdefault(way, []).append(last[way]["rss_kib"])
        runner.end()


def measure_hooks(launches: int, gnntop: Path) -> None:
    """Prints what steps take while gnntop has joined a process and while it has left it, in neighbouring turns."""
    taken: dict[str, list[float]] = {"alone": [], "gnntop run": []}
    for _ in range(launches):
        with tempfile.TemporaryDirectory() as folder:
            turns = profile("toggled", Path(folder), [str(gnntop.resolve()), "run", "--plain", "--"])
        for way, values in taken.items():
            values += [statistics.median(times) / 1000 for times in turns[way]]
    print(f"\ntoggled: {launches} launches")
    print_added(taken)


def measure_parts(gnntop: Path) -> None:
    """Prints what each kind of hook adds to a step, by neighbouring turns with it and without it."""
    with tempfile.TemporaryDirectory() as folder:
        found = profile("parts", Path(folder), [str(gnntop.resolve()), "run", "--plain", "--"])
    print("\nparts: a step with each kind of hook, beside the same without it")
    for way, sides in found.items():
        added = [
            (with_ns - without_ns) / 1000 for with_ns, without_ns in zip(sides["with"], sides["without"], strict=True)
        ]
        print(f"  {way:16}  {statistics.median(added):+.1f} us ({quartiles(added)}; median within {interval(added)})")


def measure_trace(gnntop: Path) -> None:
    """Prints what steps take with and without a deep trace, and how long the program waits for it to begin and end."""
    program = str(gnntop.resolve())
    with tempfile.TemporaryDirectory() as folder:
        found = profile("traced", Path(folder), [program, "run", "--plain", "--"], PROGRAM=program)
    print("\ntraced: 10 traces of 20 steps")
    parts = {
        "alone": "a step without",
        "traced": "a traced step",
        "first": "the step in whose end it begins",
        "last": "the last one, with the writing of the trace",
    }
    for part, title in parts.items():
        values = [ns / 1000 for ns in found[part]]
        print(f"  {title}: {statistics.median(values):.1f} us ({quartiles(values)}), {len(values)} of them")
    print(f"  to look for a request, in every step: {found['asked'][0]} ns")


def measure_stacks(gnntop: Path) -> None:
    """Prints how long after a stall has lasted 50 ms its stack is recorded; within 20 ms is the target."""
    with tempfile.TemporaryDirectory() as folder:
        began, rows = recorded("stalled", Path(folder), str(gnntop.resolve()))
    taken = [int(row["start_ns"]) for row in rows if row["track"] == "stacks of train"]
    first = [min(ns for ns in taken if ns > stall) - stall for stall in began]
    late = [ns / 1e6 - 50 for ns in first]
    print(f"\nstalled: {len(late)} stalls, each with a stack")
    print(f"  after 50 ms: {statistics.median(late):+.1f} ms ({quartiles(late)}), at most {max(late):+.1f} ms")


def quartiles(values: list[float]) -> str:
    """First and third quartile."""
    low, _, high = statistics.quantiles(values, n=4)
    return f"{low:.1f} .. {high:.1f}"


def interval(values: list[float]) -> str:
    """The 95 % interval of the median: between two of the values, by the binomial distribution."""
    half = 0.98 * math.sqrt(len(values))
    low, high = math.floor(len(values) / 2 - half), math.ceil(len(values) / 2 + half)
    ordered = sorted(values)
    return f"{ordered[max(low, 0)]:+.2f} .. {ordered[min(high, len(values) - 1)]:+.2f}"


# ---- times beside torch.profiler's ---------------------------------------------------------------------------------


def compare_with_profiler(gnntop: Path) -> None:
    """Prints how far gnntop's phases are from torch.profiler's of the same steps; the target is 3 % or 20 us."""
    program = str(gnntop.resolve())
    with tempfile.TemporaryDirectory() as folder:
        watched, rows = recorded("profiled", Path(folder), program)
        alone = profile("profiled-stamped", Path(folder), [])
    print(f"\nphases beside torch.profiler's, {len(watched['records']['forward'])} steps, the first 10 left out")
    for phase in PHASES:
        ours, theirs = seen_by_gnntop(rows, phase), watched["records"][phase][10:]
        without = differences(alone["stamps"][phase][10:], alone["records"][phase][10:])
        print_difference(phase, differences(ours[10:], theirs), theirs, without)


def recorded(training: str, folder: Path, program: str) -> tuple[Any, list[dict[str, str]]]:
    """Runs a loop that writes its own result under gnntop; returns that, and the rows that gnntop recorded."""
    found = profile(training, folder, [program, "run", "--plain", "--record", "run.gnntop", "--"])
    command = [program, "export", "--to", "csv", "run.gnntop"]
    table = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return found, list(csv.DictReader(io.StringIO(table.stdout.decode())))


def profile(training: str, folder: Path, prefix: list[str], **extra: str) -> Any:
    """Runs a loop that writes its own result; returns its times, by the tool that measured them and by phase."""
    result = folder / training
    with (folder / "said").open("wb") as said:
        start(
            [*prefix, sys.executable, str(TRAININGS), training],
            folder,
            said,
            RESULT=str(result),
            **extra,
        ).wait()
    if not result.exists():
        sys.exit(f"no result:\n{(folder / 'said').read_text()[-2000:]}")
    return json.loads(result.read_text())


def seen_by_gnntop(rows: list[dict[str, str]], phase: str) -> list[float]:
    """Microseconds of a phase at each step. `zero_grad` and the optimizer's step are one phase, in turn."""
    name = "optimizer" if phase == "zero_grad" else phase
    found = [
        (int(row["start_ns"]), int(row["end_ns"])) for row in rows if (row["kind"], row["name"]) == ("phase", name)
    ]
    times = [(end - begin) / 1000 for begin, end in sorted(found)]
    return times[phase == "optimizer" :: 2] if name == "optimizer" else times


def differences(ours: list[float], theirs: list[float]) -> list[float]:
    """How much longer ours are."""
    return [own - there for own, there in zip(ours, theirs, strict=True)]


def print_difference(phase: str, off: list[float], theirs: list[float], without: list[float]) -> None:
    """Prints how much longer gnntop's times are, how much without gnntop, and how many are close."""

    def close(cost: float) -> int:
        return sum(1 for more, time in zip(off, theirs, strict=True) if abs(more - cost) <= max(20, 0.03 * time))

    usual, cost = statistics.median(theirs), statistics.median(without)
    share = 100 * statistics.median(off) / usual
    print(
        f"  {phase:10} {usual:8.1f} us; {statistics.median(off):+.1f} us ({quartiles(off)}), {share:+.1f} %",
        end="",
    )
    print(f"; {close(0)} of {len(off)} within 3 % or 20 us")
    print(f"{'':12} without gnntop {cost:+.1f} us ({quartiles(without)}); {close(cost)} within, that taken off")


if __name__ == "__main__":
    main()
