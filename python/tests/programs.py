"""Training programs and what is seen of them: run alone, under ``gnntop run``, and reported on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOPS = Path(__file__).parent / "loops"
REPOSITORY = Path(__file__).resolve().parents[2]
GNNTOP = Path(os.environ.get("GNNTOP_PROGRAM") or REPOSITORY / "target/debug/gnntop")

# How the hooks get into a program that is started under a gnntop that does not carry them.
REACH = {
    "PYTHONPATH": str(REPOSITORY / "python/gnntop/bootstrap"),
    "GNNTOP_NATIVE": str(GNNTOP.parent / "libgnntop_python.so"),
}

# Starts a script on two ranks, which meet at a port of their own.
TORCHRUN = [str(Path(sys.executable).parent / "torchrun"), "--standalone", "--nproc-per-node", "2"]


@dataclass
class Ran:
    """How a program ended, and what it said."""

    code: int
    out: bytes
    err: bytes


def environment(sessions: Path) -> dict[str, str]:
    """The environment of a program that publishes into this folder, if it does: one thread, the same hashes."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GNNTOP")}
    return {**inherited, "GNNTOP_DIR": str(sessions), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def run(command: list[str], directory: Path, prefix: tuple[str, ...] = ()) -> Ran:
    """Runs a command with its output in files: under ``gnntop run`` stdout and stderr would become one log."""
    directory.mkdir(parents=True, exist_ok=True)
    redirected = ["sh", "-c", f'exec "$@" >{directory}/out 2>{directory}/err', "sh", *command]
    variables = environment(directory / "sessions") | (REACH if prefix else {})
    done = subprocess.run([*prefix, *redirected], env=variables, capture_output=True, timeout=300)
    said = (directory / "err").read_bytes()
    # torch's own log lines begin with the time and the process: W1122 12:12:57.241000 14052
    said = re.sub(rb"(?m)^([VIWE]\d{4}) [\d:.]+ \d+ ", rb"\1 ", said)
    return Ran(done.returncode, (directory / "out").read_bytes(), said)


def report(recording: Path) -> dict[str, Any]:
    done = subprocess.run([GNNTOP, "report", "--json", recording], capture_output=True, check=True)
    return json.loads(done.stdout)


def recorded(command: list[str], directory: Path) -> tuple[Ran, Path]:
    """The command under gnntop, and its recording."""
    recording = directory / "run.gnntop"
    return run(command, directory, (str(GNNTOP), "run", "--plain", "--record", str(recording), "--")), recording


def steps_of(seen: dict[str, Any]) -> int:
    """The steps of a report."""
    return int(seen["steps"]["total"])


def times(seen: dict[str, Any]) -> dict[str, int]:
    """The time of each phase and of the gap, in nanoseconds."""
    return {phase["name"]: phase["total_ns"] for phase in seen["phases"] if phase["name"] not in ("period", "step")}


def assert_tiled(seen: dict[str, Any]) -> None:
    """Phases and gap add up to the time that the steps took, within 1 %."""
    whole = seen["steps"]["tiled_ns"]
    assert abs(sum(times(seen).values()) - whole) <= whole / 100
