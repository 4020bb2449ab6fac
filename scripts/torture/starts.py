"""Surroundings in which programs are started, or that they make for themselves: each runs as it does alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

from tally import Tally
from under_test import Gnntop, Limits

FEW_FILES = 12
STACKS = 12
COMMANDS = 40
OWN_WRITTEN = 24
STEPS = 60
# Standard input, output and error; the session's file; and what is open for a moment.
OWN_FILES = 7
# Longer arguments and variables than this are refused by the system.
LONGEST_VARIABLE = 131_000


def attack_few_files(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Programs that may have few files open, from the start or later on."""
    tally = Tally("limits of 20 to 63 open files", "the program can open all but four of them, and all steps are seen")
    for number in range(max(2, int(FEW_FILES * share))):
        limit, first = chance.randint(20, 63), chance.random() < 0.5
        directory = gnntop.home / f"few-{number}"
        own = {"GNNTOP_DIR": str(directory), "GNNTOP_NATIVE": str(gnntop.library())}
        script = FEW.format(limit=limit, least=limit - OWN_FILES, first=first, steps=STEPS)
        env = {**gnntop.env, **own, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "python")}
        ran = subprocess.run(["python3", "-c", script], env=env, capture_output=True, check=False, timeout=60)
        wrong = None if ran.returncode == 0 else ran.stderr.decode(errors="replace")[-300:]
        if not wrong:
            sessions = list(directory.iterdir()) if directory.exists() else []
            total = json.loads(gnntop.run("report", sessions[0], "--json").out)["steps"]["total"] if sessions else 0
            wrong = None if total == STEPS else f"{total} of {STEPS} steps were seen"
        tally.count(wrong and f"{limit}: {wrong}")
    return [tally]


FEW = """
import gnntop, os, resource, time
def restrict(): resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))
if {first}: restrict()
gnntop.start()
if not {first}: restrict()
def steps(count):
    for _ in range(count):
        gnntop.step()
        time.sleep(0.005)
steps({steps} // 2)
files = []
try:
    while True: files.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
assert len(files) >= {least}, len(files)
for file in files: os.close(file)
steps({steps} // 2)
"""


def attack_stacks(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Small stacks, which `gnntop run` passes on and does with itself."""
    tally = Tally("limits of 128 KiB to 2 MiB on the stack", "the program has the limit, and ends with its own code")
    for _ in range(max(2, int(STACKS * share))):
        kib, code = chance.randint(128, 2048) & ~3, chance.randint(0, 99)
        script = f'test "$(ulimit -s)" = {kib} && exit {code}; exit 100'
        ran = gnntop.run("run", "--plain", "--", "sh", "-c", script, limits=Limits(stack=kib * 1024))
        tally.count(ran.wrong() or (None if ran.code == code else f"{kib} KiB: ended {ran.code}, not {code}"))
    return [tally]


def attack_commands(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Commands that a shell starts or refuses, in surroundings that leave no room for more."""
    tally = Tally("commands of any kind", "the exit code that a shell gives")
    folder = gnntop.home / "commands"
    for _ in range(max(4, int(COMMANDS * share))):
        folder.mkdir()
        name, env = _command(folder, chance), {}
        if chance.random() < 0.3:
            env["PYTHONPATH"] = "/x" * (chance.randint(LONGEST_VARIABLE - 400, LONGEST_VARIABLE) // 2)
        alone = subprocess.run(
            ["sh", "-c", '"$@"; exit $?', "sh", name, "3"], cwd=folder, env={**gnntop.env, **env}, capture_output=True
        )
        ran = gnntop.run("run", "--plain", "--", name, "3", cwd=folder, env=env)
        wrong = (
            None if ran.code == alone.returncode else f"{name}: ended {ran.code}, not {alone.returncode}: {ran.err!r}"
        )
        tally.count(ran.wrong() or wrong)
        shutil.rmtree(folder)
    return [tally]


def attack_own_files(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """What gnntop writes besides sessions: its own lines, a recording into a pipe, answers without a folder."""
    tally = Tally(
        "limits on gnntop's own lines, temporary directories that cannot be used, pipes as recordings",
        "the program's exit code; a pipe that nothing reads is refused",
    )
    folder = gnntop.home / "own-files"
    folder.mkdir()
    (folder / "file").touch()
    os.mkfifo(folder / "pipe")
    for _ in range(max(3, int(OWN_WRITTEN * share))):
        code, kind = chance.randrange(1, 99), chance.choice(("lines", "temporary", "pipe"))
        program = ("--", "sh", "-c", f"sleep {chance.random() * 2}; exit {code}")
        if kind == "lines":
            limits = Limits(file_size=chance.randrange(200))
            with (folder / "lines").open("wb") as lines:
                ended = gnntop.start("run", "--plain", *program, limits=limits, stdout=lines.fileno()).wait(timeout=60)
            wrong = None if ended == code else f"ended {ended}, not {code}"
        elif kind == "temporary":
            unusable = chance.choice(("/nonexistent", str(folder / "file"), "/proc", "", "relative"))
            ran = gnntop.run("run", "--plain", *program, env={"TMPDIR": unusable})
            wrong = ran.wrong() or (None if ran.code == code else f"{unusable}: ended {ran.code}, not {code}")
        else:
            ran = gnntop.run("run", "--plain", "--record", folder / "pipe", *program)
            wrong = ran.wrong() or (None if ran.code == 1 and b"nothing reads" in ran.err else f"not refused: {ran}")
        tally.count(wrong and f"{kind}: {wrong}")
    return [tally]


def _command(folder: Path, chance: random.Random) -> str:
    """Makes a command; returns its name."""
    command, kind = folder / "command", chance.randrange(7)
    text = ("#!/bin/sh\n" if kind == 0 else "#!/nowhere/sh\n" if kind == 1 else "") + "exit $(($1 + 4))\n"
    if kind == 2:
        command.mkdir()
    elif kind != 3:
        command.write_text(text)
        command.chmod(0o644 if kind == 4 else 0o755)
    return chance.choice(("./command", str(command))) if kind != 5 else "no-such-command"
