"""Training scripts that know nothing of gnntop, run alone and under ``gnntop run``: the program must not notice.

They train with the real libraries of the environment that scripts/python-env.sh makes. Its Python runs these tests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LOOPS = Path(__file__).parent / "loops"
REPOSITORY = Path(__file__).resolve().parents[2]
GNNTOP = Path(os.environ.get("GNNTOP_PROGRAM") or REPOSITORY / "target/debug/gnntop")

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")


# How the hooks get into a program that is started under a gnntop that does not carry them.
REACH = {
    "PYTHONPATH": str(REPOSITORY / "python/gnntop/bootstrap"),
    "GNNTOP_NATIVE": str(GNNTOP.parent / "libgnntop_python.so"),
}


@dataclass
class Ran:
    """How a program ended, and what it said."""

    code: int
    out: bytes
    err: bytes


def run(command: list[str], directory: Path, prefix: tuple[str, ...] = ()) -> Ran:
    """Runs a command with its output in files: under ``gnntop run`` stdout and stderr would become one log."""
    directory.mkdir(parents=True, exist_ok=True)
    redirected = ["sh", "-c", f'exec "$@" >{directory}/out 2>{directory}/err', "sh", *command]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GNNTOP")}
    environment.update(GNNTOP_DIR=str(directory / "sessions"), OMP_NUM_THREADS="1", PYTHONHASHSEED="0")
    if prefix:
        environment.update(REACH)
    done = subprocess.run([*prefix, *redirected], env=environment, capture_output=True, timeout=300)
    said = (directory / "err").read_bytes()
    # torch's own log lines begin with the time and the process: W1122 12:12:57.241000 14052
    said = re.sub(rb"(?m)^([VIWE]\d{4}) [\d:.]+ \d+ ", rb"\1 ", said)
    return Ran(done.returncode, (directory / "out").read_bytes(), said)


def both(loop: str, arguments: list[str], directory: Path) -> tuple[Ran, Ran, Path]:
    """The loop alone and under gnntop, and the recording of that."""
    command = [sys.executable, str(LOOPS / f"{loop}.py"), *arguments]
    recording = directory / "run.gnntop"
    alone = run(command, directory / "alone")
    watched = run(command, directory / "watched", (str(GNNTOP), "run", "--plain", "--record", str(recording), "--"))
    return alone, watched, recording


def report(recording: Path) -> dict[str, Any]:
    done = subprocess.run([GNNTOP, "report", "--json", recording], capture_output=True, check=True)
    return json.loads(done.stdout)


# Loop, arguments, steps, phases that must be there.
PLAIN = ("data wait", "forward", "loss", "backward", "optimizer")
FULL_BATCH = PLAIN[1:]
CASES = [
    ("plain", [], 20, (*PLAIN, "validation")),
    ("micro_batches", [], 10, PLAIN),
    ("gan", [], 25, PLAIN),
    ("lbfgs", [], 20, FULL_BATCH),
    ("scaler", [], 20, PLAIN),
    ("raises", [], 12, PLAIN),
    ("recovers", [], 17, PLAIN),
    ("manual", [], 70, ("backward",)),
    ("full_batch", [], 40, (*FULL_BATCH, "validation")),
    ("workers", ["fork"], 20, (*PLAIN, "validation")),
    ("workers", ["fork", "persistent"], 20, (*PLAIN, "validation")),
    ("workers", ["spawn"], 20, (*PLAIN, "validation")),
    ("workers", ["forkserver"], 20, (*PLAIN, "validation")),
    ("iterable", [], 20, PLAIN),
    ("pyg_graphs", [], 20, (*PLAIN, "transfer")),
    ("pyg_neighbors", ["0"], 20, (*PLAIN, "sample", "gather")),
    ("pyg_neighbors", ["2"], 20, PLAIN),
    ("lightning_fit", [], 20, (*PLAIN, "transfer", "validation")),
    ("trainer", [], 20, (*PLAIN, "transfer", "validation", "checkpoint")),
    ("accelerated", [], 10, (*PLAIN, "transfer")),
    ("compiled", ["model"], 20, PLAIN),
    ("compiled", ["fullgraph"], 20, ("data wait", "forward", "backward", "optimizer")),
    ("compiled", ["module"], 20, PLAIN),
    pytest.param(
        "compiled",
        ["step"],
        20,
        ("data wait", "forward", "backward", "optimizer"),
        marks=pytest.mark.xfail(reason="torch.compile compiles the optimizer's hooks away: steps are not seen"),
    ),
    ("compiled", ["inductor"], 20, PLAIN),
]


def steps_of(seen: dict[str, Any]) -> int:
    return int(seen["steps"]["total"])


def times(seen: dict[str, Any]) -> dict[str, int]:
    """The time of each phase and of the gap, in nanoseconds."""
    return {phase["name"]: phase["total_ns"] for phase in seen["phases"] if phase["name"] != "step"}


@pytest.mark.parametrize(("loop", "arguments", "steps", "phases"), CASES)
def test_the_program_does_not_notice_and_is_seen(
    loop: str, arguments: list[str], steps: int, phases: tuple[str, ...], tmp_path: Path
) -> None:
    alone, watched, recording = both(loop, arguments, tmp_path)
    assert (watched.code, watched.out.decode(), watched.err.decode()) == (
        alone.code,
        alone.out.decode(),
        alone.err.decode(),
    )
    seen = report(recording)
    assert steps_of(seen) == steps
    assert set(phases) <= set(times(seen))
    whole = seen["steps"]["tiled_ns"]
    assert abs(sum(times(seen).values()) - whole) <= whole / 100
