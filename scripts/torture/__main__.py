"""Attacks gnntop, and prints what it withstood: see scripts/torture.sh."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import appearances
import directories
import disks
import folders
import frames
import hanging
import inside
import kills
import many
import mutants
import owners
import pythons
import recordings
import screens
import soak
import soak_python
import sockets
import starts
import terminals
import trace_deaths
import traced
import traces
import trainings
import versions
from tally import Tally, print_table
from under_test import Gnntop

REPOSITORY = Path(__file__).resolve().parents[2]
# Each takes what to attack, a source of chance, and how much is to be tried: 1 for all, less for a part.
ATTACKS = {
    "mutants": mutants.attack,
    "holes": recordings.attack_holes,
    "kept recordings": recordings.attack_kept,
    "replaced recordings": recordings.attack_replaced,
    "screens": screens.attack,
    "directories": directories.attack,
    "full disk": disks.attack_full,
    "full for a while": disks.attack_full_for_a_while,
    "limits": disks.attack_limits,
    "kills": kills.attack,
    "owners": owners.attack,
    "hanging disk": hanging.attack,
    "versions": versions.attack,
    "terminals": terminals.attack_closing,
    "signals": terminals.attack_signals,
    "sockets": sockets.attack,
    "damaged cache": pythons.attack_cache,
    "module names": pythons.attack_names,
    "environments": pythons.attack_environments,
    "requests": traces.attack,
    "names and values": pythons.attack_limits,
    "descriptors": inside.attack_descriptors,
    "early ends": inside.attack_early_ends,
    "rings": inside.attack_rings,
    "threads and marks": many.attack,
    "interrupted": trainings.attack_interrupted,
    "sequences": trainings.attack_sequences,
    "filters": frames.attack_filters,
    "frames": frames.attack_frames,
    "few files": starts.attack_few_files,
    "small stacks": starts.attack_stacks,
    "commands": starts.attack_commands,
    "own files": starts.attack_own_files,
    "places": folders.attack_places,
    "removed": folders.attack_removed,
    "trace deaths": trace_deaths.attack,
    "traced programs": traced.attack,
    "appearances": appearances.attack,
}
QUICK = 0.06


def main() -> int:
    """Runs the requested attacks. Returns 1 if one of them succeeded."""
    # In the background of a script it is ignored, and so it would be in what is attacked.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="scripts/torture.sh", description=(__doc__ or "").strip())
    parser.add_argument("--quick", action="store_true", help="a small part, always the same")
    parser.add_argument(
        "--only", choices=ATTACKS, action="append", help="this attack alone; can be given several times"
    )
    parser.add_argument("--seed", type=int, help="makes the tries of an earlier run again; printed by every run")
    parser.add_argument(
        "--soak", type=float, metavar="HOURS", help="only this long a training with a viewer, and --only"
    )
    parser.add_argument("--soak-python", type=float, metavar="HOURS", help="the same with a PyTorch training")
    parser.add_argument("--python", type=Path, help="a Python with torch; without it that of scripts/python-env.sh")
    parser.add_argument(
        "--gnntop", type=Path, default=REPOSITORY / "target/release/gnntop", help="the program to attack"
    )
    parser.add_argument("--old", type=Path, help="another version of gnntop, to be used on the same sessions")
    arguments = parser.parse_args()
    seed = 1 if arguments.quick else arguments.seed if arguments.seed is not None else time.time_ns() % 1_000_000
    print(f"seed {seed}, {arguments.gnntop}", flush=True)
    tallies = []
    with tempfile.TemporaryDirectory(prefix="torture-") as home:
        gnntop = Gnntop(
            arguments.gnntop.resolve(),
            Path(home),
            REPOSITORY / "recordings",
            old=arguments.old,
            python=arguments.python,
        )
        is_soak = arguments.soak or arguments.soak_python
        for name in arguments.only or ([] if is_soak else ATTACKS):
            tallies += run(name, gnntop, random.Random(f"{seed} {name}"), QUICK if arguments.quick else 1)
        if arguments.soak:
            tallies.append(soak.attack(gnntop, arguments.soak))
        if arguments.soak_python:
            tallies.append(soak_python.attack(gnntop, arguments.soak_python, arguments.python))
    print_table(tallies)
    return int(any(tally.failures for tally in tallies))


def run(name: str, gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Runs one attack, and ends what is left of it before the next."""
    began = time.monotonic()
    try:
        tallies = ATTACKS[name](gnntop, chance, share)
    finally:
        gnntop.end_all()
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return tallies


sys.exit(main())
