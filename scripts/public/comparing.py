"""Runs one program alone and under gnntop, and compares."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from catalogue import Program

HERE = Path(__file__).resolve().parent
BOOTSTRAP = HERE.parents[1] / "python/gnntop/bootstrap"
# What differs from run to run without gnntop, too: dates, times and rates.
CLOCKS = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:,.]+|\d*:?\d+:\d\d|'\w*(?:runtime|per_second)': '?[\d.e+-]+'?"
    r"|\d[\d.]*(?:±[\d.]+)? ?(?:it/s|s/it|[MG]B/s|ms|s|seconds?|hours)\b"
)
BAR = re.compile(r"\d%\||\x1b\[[AK]|\b(?:examples?|batch|B|it)/s\b")


@dataclass(frozen=True)
class Run:
    """How a program ended, and what it printed but for times."""

    exit_code: int
    out: str
    errors: str
    around: str
    """What gnntop itself printed."""

    @property
    def counted(self) -> int:
        """Optimizer steps, by the program's own count; -1 if it did not get to its end."""
        found = re.search(r"^counted (\d+)", self.out, re.MULTILINE)
        return int(found[1]) if found else -1


def without_clocks(text: str) -> str:
    """The text with one `#` for each time, and without progress bars, which are drawn when time has passed."""
    lines = [line.rstrip().rpartition("\r")[2] for line in text.splitlines()]
    kept = [" ".join(CLOCKS.sub("#", line).split()) for line in lines if not BAR.search(line)]
    return "\n".join(line for line in kept if line)


def run(command: list[str], folder: Path, **extra: str) -> Run:
    """Runs in an empty folder, on one thread; what it prints goes to files, since gnntop would keep it as a log."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "kept").mkdir(parents=True)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("GNNTOP", "PYTHON"))}
    variables |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "COLUMNS": "100"}
    variables |= {"HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "true"}
    # Where libraries keep settings and caches: what one run leaves there would change the next.
    variables |= dict.fromkeys(("HF_HOME", "PYSTOW_HOME", "YOLO_CONFIG_DIR"), f"{folder}/kept")
    done = subprocess.run(command, cwd=folder, env=variables | extra, capture_output=True, text=True, timeout=900)
    out, errors = (without_clocks((folder / name).read_text()) for name in ("printed.out", "printed.err"))
    return Run(done.returncode, out, errors, done.stdout + done.stderr)


def compare(name: str, program: Program, version: str, python: Path, gnntop: Path, native: Path) -> bool:
    """Runs a program both ways and prints its row; below it what differs, if it fails."""
    train = ["sh", "-c", 'exec "$@" >printed.out 2>printed.err', name, str(python), f"{HERE}/train_{name}.py"]
    with tempfile.TemporaryDirectory() as made:
        folder, recording = Path(made) / "training", f"{made}/a.gnntop"
        alone = run(train, folder)
        reach = {"PYTHONPATH": str(BOOTSTRAP), "GNNTOP_NATIVE": str(native), "GNNTOP_DIR": f"{made}/sessions"}
        watched = run([str(gnntop), "run", "--plain", "--record", recording, "--", *train], folder, **reach)
        asked = subprocess.run([gnntop, "report", recording, "--json"], capture_output=True)
    report = json.loads(asked.stdout) if asked.returncode == 0 else {"steps": {"total": None}, "phases": []}
    phases = [phase["name"] for phase in report["phases"] if phase["name"] not in ("gap", "period", "step")]
    seen = report["steps"]["total"]
    same = (alone.out, alone.errors) == (watched.out, watched.errors)
    passed = same and alone.exit_code == watched.exit_code == 0 and alone.counted == seen
    about = f"{program.package} {program.what}"
    output = "same" if same else "differs"
    print(f"| {about} | {version} | {program.source} | {alone.counted} | {seen} | {output} | {', '.join(phases)} |")
    if not passed:
        print(f"FAIL: exit codes {alone.exit_code} and {watched.exit_code}")
        print(differences(alone, watched) or alone.errors[-1000:], watched.around[-1000:], sep="\n")
    return passed


def differences(alone: Run, watched: Run) -> str:
    """The first lines that differ."""
    pairs = zip(
        (alone.out + "\n" + alone.errors).splitlines(), (watched.out + "\n" + watched.errors).splitlines(), strict=False
    )
    return "\n".join(f"alone:   {a}\nwatched: {b}" for a, b in [pair for pair in pairs if pair[0] != pair[1]][:5])
