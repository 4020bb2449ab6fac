#!/usr/bin/env bash
# The startup cost under `gnntop run` of a Python program that never imports torch: the environment of such a program,
# with and without, in turn. Prints the median of each and the difference, in milliseconds. The target is 15.
#
#   scripts/python-startup.sh [ROUNDS]
#
# PYTHON  the interpreter (default python3)
set -euo pipefail
cd "$(dirname "$0")/.."
"${PYTHON:-python3}" - "${1:-40}" "$PWD/python" <<'END'
import os
import statistics
import sys
import tempfile
import time

rounds, package = int(sys.argv[1]), sys.argv[2]
plain = {name: value for name, value in os.environ.items() if not name.startswith(("GNNTOP", "PYTHONPATH"))}
with tempfile.TemporaryDirectory() as answers:
    watched = {**plain, "PYTHONPATH": f"{package}/gnntop/bootstrap", "GNNTOP_ANSWERS": answers, "GNNTOP_LAUNCH": "x"}

    def start(environment: dict[str, str], code: str) -> tuple[float, float]:
        begin = time.perf_counter()
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], environment)
        _, status, usage = os.wait4(pid, 0)
        assert status == 0, code
        return (time.perf_counter() - begin) * 1000, (usage.ru_utime + usage.ru_stime) * 1000

    for title, code in (("pass", "pass"), ("import gnntop", "import gnntop")):
        both = {"without": plain, "with": watched}
        if title != "pass":
            both["without"] = {**plain, "PYTHONPATH": package}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in both}
        for environment in both.values():
            start(environment, code)  # what is compiled once
        for _ in range(rounds):
            for name, environment in both.items():
                times[name].append(start(environment, code))
        for at, word in enumerate(("wall", "CPU")):
            without, with_us = (statistics.median(taken[at] for taken in times[name]) for name in both)
            print(f"{title}, {word}: without {without:.1f} ms, with {with_us:.1f} ms, {with_us - without:+.1f} ms")
END
