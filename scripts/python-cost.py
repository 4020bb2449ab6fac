#!/usr/bin/env python3
"""What gnntop costs a PyTorch training, beside the same training alone and under TraceML, in turn.

usage: scripts/python-cost.py [--rounds 9] [--gnntop target/release/gnntop] [--loops mlp pna gcn]

    mlp   five-layer MLP, batch 64, DataLoader of a TensorDataset, one thread: about 0.3 ms a step
    pna   64-layer PNA of PyG on batches of small graphs
    gcn   PyG's GCN on one graph of the size of Cora, eager; gcn-compiled: by torch.compile
    span  `with gnntop.span(...)` in a loop that does nothing else

Each round runs every way once, in an order that turns. A run tells the median of its steps, the first quarter left
out. Printed: the median over rounds, its quartiles, and what each way adds to the step alone, by round. Run with the
Python of scripts/python-env.sh, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
TRAININGS = REPOSITORY / "python/benches/trainings.py"


def main() -> None:
    """Measures the loops that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--gnntop", type=Path, default=REPOSITORY / "target/release/gnntop"
    )
    parser.add_argument("--loops", nargs="+", default=["mlp", "pna", "gcn", "span"])
    arguments = parser.parse_args()
    for loop in arguments.loops:
        measure(loop, arguments.rounds, ways(loop, arguments.gnntop))


def ways(loop: str, gnntop: Path) -> dict[str, list[str]]:
    """The ways to start a loop, by what they are called."""
    command = [sys.executable, str(TRAININGS), loop]
    found = {
        "alone": command,
        "gnntop run": [str(gnntop), "run", "--plain", "--", *command],
    }
    traceml = shutil.which(
        "traceml", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    if traceml and loop == "mlp":
        found["traceml run"] = [traceml, "run", str(TRAININGS), "--args", "mlp-traceml"]
    return found


def measure(loop: str, rounds: int, commands: dict[str, list[str]]) -> None:
    """Runs all ways in turn and prints what they took."""
    taken: dict[str, list[float]] = {way: [] for way in commands}
    order = list(commands)
    for _ in range(rounds):
        for way in order:
            taken[way].append(step_us(commands[way]))
        order = order[1:] + order[:1]
    print(f"\n{loop}: {rounds} rounds")
    for way, values in taken.items():
        added = [
            value - alone for value, alone in zip(values, taken["alone"], strict=True)
        ]
        shares = [
            100 * more / alone
            for more, alone in zip(added, taken["alone"], strict=True)
        ]
        line = f"  {way:12} {statistics.median(values):10.1f} us a step ({quartiles(values)})"
        if way != "alone":
            line += f"   +{statistics.median(added):.1f} us ({quartiles(added)})  {statistics.median(shares):+.2f} %"
        print(line, flush=True)


def quartiles(values: list[float]) -> str:
    """First and third quartile."""
    low, _, high = statistics.quantiles(values, n=4)
    return f"{low:.1f} .. {high:.1f}"


def step_us(command: list[str]) -> float:
    """Runs a training and gives what it says that its steps took."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith("GNNTOP")
        }
        environment.update(
            RESULT=str(result), OMP_NUM_THREADS="1", GNNTOP_DIR=f"{folder}/sessions"
        )
        done = subprocess.run(
            command, env=environment, capture_output=True, cwd=folder, check=False
        )
        if not result.exists():
            sys.exit(
                f"{' '.join(command)} gave no result:\n{done.stderr.decode()[-2000:]}"
            )
        return float(json.loads(result.read_text())["median_us"])


if __name__ == "__main__":
    main()
