#!/usr/bin/env python3
"""How honest `gnntop prove` is with real programs: how often it distinguishes a program and itself, and which slow-downs it finds.

    scripts/prove-pairs.py target/release/gnntop [--pairs 200] [--minutes 20] [--slower 0,0.02] [--output results.json]

The program takes about a second: 300 steps of two phases that hash. It is compared with itself until 200 pairs have been
measured, and in turn with the same program whose steps take 2, 5 or 10 % more work. Every experiment is a `gnntop prove --json`
of its own, of at most 12 pairs, as a person would run it. The machine stays as it is: what else runs there is the noise.

Few experiments say little about a rule that errs once in twenty times. So the rule is also applied to 10,000 experiments made of the
pairs of the program with itself, in which it is drawn which run of a pair is the candidate's. `--again FILE` does that alone.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PROGRAM = """
import gnntop, hashlib, sys
work = round(4000 * float(sys.argv[1]))
for step in range(300):
    with gnntop.span('forward'):
        hashlib.pbkdf2_hmac('sha256', b'a', b'b', work)
    with gnntop.span('backward'):
        hashlib.pbkdf2_hmac('sha256', b'a', b'b', 2 * work)
    gnntop.step()
"""
PLANNED = ((6, 1), (12, 2))
"""At how many pairs they are looked at, and the ranks of the interval: those of `analysis/src/comparison/pairs.rs`."""
VERDICTS = ("faster", "slower", "no-difference", "not-enough")


def prove(gnntop: str, program: Path, slower: float, within: str) -> dict:
    """One experiment: its verdict, with the ratios of its pairs."""

    def side(work: float) -> str:
        return f"{sys.executable} {program} {work}"

    sides = ["--baseline", side(1.0), "--candidate", side(1.0 + slower)]
    command = [gnntop, "prove", "--json", "--within", within, *sides]
    began, load = time.monotonic(), os.getloadavg()[0]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode not in (0, 3, 4):
        sys.exit(f"gnntop prove failed with {ended.returncode}: {ended.stderr}")
    result = json.loads(ended.stdout)
    return {
        "slower": slower,
        "verdict": result["verdict"],
        "ratio": result["ratio"],
        "interval": result["interval"],
        "ratios": [pair["per_s"][1] / pair["per_s"][0] for pair in result["pairs"]],
        "again": result["pairs_run_again"],
        "seconds": round(time.monotonic() - began, 1),
        "load": load,
    }


def describe(slower: float, found: list[dict]) -> str:
    """One line: how many experiments had which verdict, and what the pairs vary by."""
    verdicts = Counter(one["verdict"] for one in found)
    ratios = sorted(ratio for one in found for ratio in one["ratios"])
    quarter = len(ratios) // 4
    what = "itself" if slower == 0 else f"{slower:.0%} more work"
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS)
    return (
        f"{what}: {len(found)} experiments, {len(ratios)} pairs ({sum(one['again'] for one in found)} more run again): {counts}; "
        f"median ratio {ratios[len(ratios) // 2]:.3f}, half of them from {ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f}"
    )


def is_distinguished(ratios: list[float], within: float) -> bool:
    """Whether the rule finds one side of these pairs faster."""
    for pairs, rank in PLANNED:
        ordered = sorted(ratios[:pairs])
        low, high = ordered[rank - 1], ordered[-rank]
        if low > 1 / (1 + within) and high < 1 + within:
            return False
        if low > 1 or high < 1:
            return True
    return False


def with_sides_drawn(found: list[dict], within: float) -> str:
    """How often the rule errs in experiments made of these pairs."""
    ratios, drawn, most = [ratio for one in found for ratio in one["ratios"]], random.Random(1), PLANNED[-1][0]
    wrong = 0
    for _ in range(10_000):
        begin = drawn.randrange(len(ratios) - most + 1)
        pairs = [ratio if drawn.random() < 0.5 else 1 / ratio for ratio in ratios[begin : begin + most]]
        wrong += is_distinguished(pairs, within)
    return f"sides drawn: of 10,000 experiments made of {len(ratios)} pairs in their order, {wrong / 100:.1f} % distinguish them"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gnntop", nargs="?", default="gnntop")
    parser.add_argument("--pairs", type=int, default=200, help="pairs of the program with itself")
    parser.add_argument("--minutes", type=float, default=20, help="no experiment begins after this time")
    parser.add_argument("--within", default="2%", help="what is given to prove")
    parser.add_argument("--output", type=Path, help="every experiment as JSON")
    parser.add_argument("--slower", default="0,0.02,0,0.05,0,0.1", help="the experiments of a round, by how much more work")
    parser.add_argument("--again", type=Path, nargs="+", help="look again at what --output has written; runs nothing")
    options = parser.parse_args()
    within = float(options.within.rstrip("%")) / 100
    if options.again:
        known = [one for path in options.again for one in json.loads(path.read_text())]
        for slower in sorted({one["slower"] for one in known}):
            print(describe(slower, [one for one in known if one["slower"] == slower]))
        return print(with_sides_drawn([one for one in known if one["slower"] == 0], within))
    slow_downs = [float(share) for share in options.slower.split(",")]
    found: dict[float, list[dict]] = {slower: [] for slower in sorted({0.0, *slow_downs})}
    began, turn = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GNNTOP_DIR"] = folder
        program = Path(folder, "hashing.py")
        program.write_text(PROGRAM)
        while time.monotonic() - began < 60 * options.minutes:
            if sum(len(one["ratios"]) for one in found[0.0]) >= options.pairs:
                break
            slower = slow_downs[turn % len(slow_downs)]
            turn += 1
            one = prove(options.gnntop, program, slower, options.within)
            found[slower].append(one)
            print(f"{slower:.0%}: {one['verdict']} {one['ratio']:.3f}, {len(one['ratios'])} pairs", file=sys.stderr)
            if options.output:
                options.output.write_text(json.dumps([one for all_of in found.values() for one in all_of]))
    for slower, experiments in found.items():
        if experiments:
            print(describe(slower, experiments))
    print(with_sides_drawn(found[0.0], within))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, {(time.monotonic() - began) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
