#!/usr/bin/env python3
"""Runs other tools, and gnntop, on the same six slow trainings, and on one without a fault to see what a step costs.

usage: scripts/alternatives.py [--output FOLDER] [--rounds 5] [--gnntop PROGRAM] [--only TOOL]... [--training NAME]...
           [says] [cost]

    says    each tool on each training: FOLDER/TRAINING-TOOL.txt has the whole output of the tool
    cost    the plain training alone and under each tool, in turn: the median time of a step, of each round's median

Run it with a Python that has torch and the tools (py-spy, train-doctor, trainmeter, traceml-ai, by pip); a tool that is
not installed is skipped, and said. The trainings are python/tests/mistakes, the results in docs/alternatives.md. A tool
that needs lines in the program gets a copy that has them: these lines are all that differs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
MISTAKES = REPOSITORY / "python/tests/mistakes"
SLOW = ["slow_collate", "starved", "leak", "collects", "saves", "slow_rank"]
BIN = Path(sys.executable).parent
LIMIT_S = 180

# A step of about a millisecond; what its steps took goes to $TIMES, again and again: some tools end the program early.
PLAIN = """
import os, statistics, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(96000, 64), torch.randn(96000, 1)), batch_size=64)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
times = [time.perf_counter()]
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    times.append(time.perf_counter())
    if len(times) % 100 == 1:
        took = [after - before for before, after in zip(times[20:], times[21:])]
        open(os.environ["TIMES"], "w").write(str(statistics.median(took)))
"""

# Samples of each innermost frame, of py-spy's "FRAME;FRAME;FRAME COUNT".
INNERMOST = """awk -F ';' '{n = split($NF, w, " "); c = w[n]; sub(/ [0-9]+$/, "", $NF); t[$NF] += c}
END {for (f in t) print t[f], f}'"""


@dataclass
class Tool:
    """The command that starts a program under a tool, how its result is printed, and the lines that a program needs."""

    name: str
    # The command for a program's own, and a folder for what the tool writes.
    start: Callable[[list[str], Path], list[str]]
    # Prints what it found; else it has printed that itself.
    show: Callable[[Path], list[str]] | None = None
    # Lines before the loop, at the head of its body (which is then indented once more), at its end, and after the loop.
    before: str = ""
    around: str = ""
    ending: str = ""
    after: str = ""
    needs: str = ""

    def adapted(self, program: str) -> str:
        """The program with the lines that this tool needs."""
        if not self.before:
            return program
        lines = program.splitlines()
        (at,) = (number for number, line in enumerate(lines) if line.startswith("for ") and "oader" in line)
        end = next((n for n in range(at + 1, len(lines)) if lines[n] and not lines[n].startswith(" ")), len(lines))
        body = [*lines[at + 1 : end], *([f"    {self.ending}"] if self.ending else [])]
        if self.around:
            body = [f"    {self.around}", *textwrap.indent("\n".join(body), "    ").splitlines()]
        return "\n".join([*lines[:at], self.before, lines[at], *body, self.after, *lines[end:]]) + "\n"


def tools(gnntop: Path) -> list[Tool]:
    """All tools that this script can run."""
    profiler = "torch.profiler.profile(schedule=torch.profiler.schedule(wait=200, warmup=5, active=40))"
    return [
        Tool("alone", lambda command, _: command),
        Tool(
            "gnntop",
            lambda command, to: [str(gnntop), "run", "--plain", "--record", f"{to}/a.gnntop", "--", *command],
            lambda to: [str(gnntop), "report", f"{to}/a.gnntop"],
        ),
        Tool(
            "traceml",
            lambda command, _: [
                str(BIN / "traceml"),
                *["run", "--finalize-timeout-sec", "5"],
                *["--nproc-per-node", "2" if "torchrun" in command[0] else "1", command[-1]],
            ],
            before="import traceml_ai as traceml\ntraceml.init()",
            around="with traceml.trace_step(model):",
            needs="traceml",
        ),
        Tool(
            "train-doctor",
            lambda command, to: [str(BIN / "train-doctor"), "profile", "--out", f"{to}/runs", "--", *command],
            needs="train-doctor",
        ),
        Tool(
            "trainmeter",
            lambda command, _: [str(BIN / "tm"), "--no-web", "--", *command],
            lambda _: [str(BIN / "tm"), "passport"],
            needs="tm",
        ),
        Tool(
            "torch.profiler",
            lambda command, _: command,
            before=f"profiler = {profiler}\nprofiler.start()",
            ending="profiler.step()",
            after='profiler.stop()\nprint(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))',
        ),
        Tool(
            "py-spy",
            lambda command, to: [
                str(BIN / "py-spy"),
                *["record", "--subprocesses", "--format", "raw", "-o", f"{to}/raw", "--"],
                *command,
            ],
            lambda to: ["bash", "-c", f"{INNERMOST} {to}/raw | sort -rn | head -15"],
            needs="py-spy",
        ),
    ]


def environment(folder: Path) -> dict[str, str]:
    """One thread, and sessions and settings of each tool in a folder of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GNNTOP")}
    mine = {"GNNTOP_DIR": f"{folder}/sessions", "TIMES": f"{folder}/times", "OMP_NUM_THREADS": "1"}
    return {**inherited, **mine, "PATH": f"{BIN}:{os.environ['PATH']}"}


def run(tool: Tool, program: str, ranks: int, folder: Path) -> str:
    """Everything that a tool prints of a program, while it runs and afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    script = folder / "train.py"
    script.write_text(tool.adapted(program))
    command = [sys.executable, str(script)]
    if ranks > 1:
        command = [str(BIN / "torchrun"), "--standalone", "--nproc-per-node", str(ranks), str(script)]
    said = printed(tool.start(command, folder), folder)
    return said + (printed(tool.show(folder), folder) if tool.show else "")


def printed(command: list[str], folder: Path) -> str:
    """What a command prints to either stream, with its exit code if it is not 0."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, cwd=folder, env=environment(folder), timeout=LIMIT_S, text=True, **pipes)  # type: ignore[call-overload]
    except subprocess.TimeoutExpired as error:
        return f"{(error.stdout or b'').decode()}\n[stopped after {LIMIT_S} s]\n"
    return done.stdout + (f"[exit code {done.returncode}]\n" if done.returncode else "")


def say(chosen: list[Tool], trainings: list[str], output: Path) -> None:
    """Each tool on each slow training."""
    for training in trainings:
        program = (MISTAKES / f"{training}.py").read_text()
        for tool in chosen[1:]:
            said = run(tool, program, 2 if training == "slow_rank" else 1, output / "work")
            (output / f"{training}-{tool.name}.txt").write_text(said)
            print(f"{training} {tool.name}: {len(said.splitlines())} lines", flush=True)


def cost(chosen: list[Tool], output: Path, rounds: int) -> None:
    """The plain training under each tool, in turn."""
    taken: dict[str, list[float]] = {tool.name: [] for tool in chosen}
    for number in range(rounds):
        for tool in chosen if number % 2 == 0 else reversed(chosen):
            said = run(tool, PLAIN, 1, output / "work")
            times = output / "work/times"
            if times.exists():
                taken[tool.name].append(1e6 * float(times.read_text()))
            else:
                print(f"{tool.name} left no times:\n{said[-1000:]}")
    for name, values in taken.items():
        if values:
            more = [with_it - alone for with_it, alone in zip(values, taken["alone"], strict=False)]
            spread = f"{min(values):.0f} .. {max(values):.0f}"
            print(f"{name}: {statistics.median(values):.0f} us a step ({spread}), {statistics.median(more):+.0f} us")


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("what", nargs="*", choices=["says", "cost"], default=["says", "cost"])
    parser.add_argument("--output", type=Path, default=Path("alternatives"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gnntop", type=Path, default=REPOSITORY / "target/release/gnntop")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--training", action="append", choices=SLOW)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    chosen = []
    for tool in tools(arguments.gnntop.resolve()):
        if tool.needs and not shutil.which(tool.needs, path=str(BIN)):
            print(f"skipped: {tool.name} is not installed")
        elif not arguments.only or tool.name in [*arguments.only, "alone"]:
            chosen.append(tool)
    if "says" in arguments.what:
        say(chosen, arguments.training or SLOW, arguments.output.resolve())
    if "cost" in arguments.what:
        cost(chosen, arguments.output.resolve(), arguments.rounds)


if __name__ == "__main__":
    main()
