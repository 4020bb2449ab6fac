"""Folders of any name, relative ones, and logs and folders that are removed or cannot be made."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

from pythons import STEPS
from tally import Tally
from under_test import Gnntop, Ran, wait_until

PLACES = 24
REMOVED = 16
SESSIONS = ("sessions", "./sessions", "x/../sessions", "sessions/", "link/sessions")
CACHES = ("cache", "a b", "a:b", ":", "a\nb", "caché", "c" * 200, "a;b", "'", "$HOME")
# It imports what its own PYTHONPATH has, and goes elsewhere before its first step.
GOES = f"""
import gnntop, os
import own
os.chdir("/")
for _ in range({STEPS}):
    gnntop.step()
"""


def attack_places(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """A relative directory for sessions, and a cache whose name PYTHONPATH may not take."""
    tally = Tally(
        "relative folders and names of any kind",
        "the program's own modules are found, and all its steps are seen where they were asked for",
    )
    for number in range(max(3, int(PLACES * share))):
        folder = gnntop.home / f"places-{number}"
        (folder / "path").mkdir(parents=True)
        (folder / "x").mkdir()
        (folder / "link").symlink_to(".")
        (folder / "path/own.py").touch()
        (folder / "program.py").write_text(GOES)
        env = {
            "GNNTOP_DIR": chance.choice(SESSIONS),
            "XDG_CACHE_HOME": str(folder / chance.choice(CACHES)),
            "PYTHONPATH": str(folder / "path"),
        }
        ran = gnntop.run("run", "--plain", "--", "python3", "program.py", cwd=folder, env=env)
        reports = [gnntop.run("report", path, "--json").out for path in (folder / "sessions").glob("program.py-*")]
        seen = [json.loads(report)["steps"]["total"] for report in reports]
        wrong = None if (ran.code, seen) == (0, [STEPS]) else f"{env}: ended {ran.code}, steps {seen}: {ran.err!r}"
        tally.count(ran.wrong() or wrong)
        shutil.rmtree(folder)
    return [tally]


def attack_removed(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Logs and directories that somebody removes, or that cannot be made."""
    tally = Tally(
        "logs and directories removed or unusable", "the log is made again, or the last lines say what is gone"
    )
    for number in range(max(4, int(REMOVED * share))):
        directory = gnntop.home / f"removed-{number}"
        attack = (_remove_log, _remove_log_at_once, _remove_all, _unusable)[number % 4]
        tally.count(attack(gnntop, chance, directory))
        shutil.rmtree(directory, ignore_errors=True)
    return [tally]


# Ends when it may, with a last line and an exit code by which that line is shown.
PRINTS = "until [ -e go ]; do echo line; sleep 0.0{pause}; done; echo the-end; exit 3"
BEGUN = "until [ -e $DIR/*.run ]; do sleep 0.05; done; sleep 0.3"
MADE = "until [ -e $DIR/*.log ]; do :; done"


def _printing(gnntop: Gnntop, chance: random.Random, directory: Path, remove: str) -> Ran:
    """Runs a program that prints while something is removed, and once more after that."""
    go = gnntop.home / "go"
    go.unlink(missing_ok=True)
    script = PRINTS.format(pause=chance.randint(1, 5))
    watcher = subprocess.Popen(["sh", "-c", f"{remove}; sleep 0.3; touch {go}"], env={"DIR": str(directory)})
    ran = gnntop.run("run", "--plain", "--", "sh", "-c", script, env={"GNNTOP_DIR": str(directory)})
    watcher.wait()
    return ran


def _remove_log(gnntop: Gnntop, chance: random.Random, directory: Path) -> str | None:
    ran = _printing(gnntop, chance, directory, f"{BEGUN}; rm $DIR/*.log")
    logs = [log.read_text() for log in directory.glob("*.log")]
    is_whole = len(logs) == 1 and "this log was removed" in logs[0] and logs[0].endswith("the-end\n")
    return ran.wrong() or (None if ran.code == 3 and is_whole else f"ended {ran.code}: {logs!r:.300}, {ran.err!r}")


def _remove_log_at_once(gnntop: Gnntop, chance: random.Random, directory: Path) -> str | None:
    """Maybe before the collector has opened it."""
    ran = _printing(gnntop, chance, directory, f"{MADE}; rm $DIR/*.log")
    logs = [log.read_text() for log in directory.glob("*.log")]
    is_whole = len(logs) == 1 and logs[0].endswith("the-end\n")
    return ran.wrong() or (None if ran.code == 3 and is_whole else f"ended {ran.code}: {logs!r:.300}, {ran.err!r}")


def _remove_all(gnntop: Gnntop, chance: random.Random, directory: Path) -> str | None:
    ran = _printing(gnntop, chance, directory, f"{BEGUN}; rm -rf $DIR")
    there = wait_until(lambda: any("the-end" in log.read_text() for log in directory.glob("*.log")), 5)
    is_said = b"which was removed" in ran.err
    return ran.wrong() or (None if ran.code == 3 and (there or is_said) else f"ended {ran.code}: {ran.err!r}")


def _unusable(gnntop: Gnntop, chance: random.Random, directory: Path) -> str | None:
    directory.write_text("in the way")
    unusable = chance.choice((str(directory), f"{directory}/below", "/proc/1/gnntop"))
    code = chance.randint(0, 9)
    options, script = ("--plain", "--interval", "100ms"), f"sleep 0.5; exit {code}"
    ran = gnntop.run("run", *options, "--", "sh", "-c", script, env={"GNNTOP_DIR": unusable})
    why = f"nothing can be published in {unusable}"
    said, shown = ran.err.decode(errors="replace").count(why), ran.out.decode(errors="replace").splitlines()
    # No line advises what cannot help.
    is_so = (ran.code, said) == (code, 2) and all(why in line for line in shown if "hardware only" in line)
    directory.unlink()
    return ran.wrong() or (None if is_so else f"{unusable}: ended {ran.code}: {ran.err!r}, {shown}")
