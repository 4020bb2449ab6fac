"""Surroundings in which programs are started, or that they make for themselves: each runs as it does alone."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

from tally import Tally
from under_test import Gnntop, Limits, Ran, wait_until

FILTERS = 12
FEW_FILES = 12
STACKS = 12
COMMANDS = 40
REMOVED = 12
STEPS = 60
# Standard input, output and error; the session's file; and what is open for a moment.
OWN_FILES = 7
# Longer arguments and variables than this are refused by the system.
LONGEST_VARIABLE = 131_000


def attack_filters(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Programs that have the system end them for calls which they do not expect."""
    tally = Tally("programs that filter their system calls", "the program's own end, and stacks are seen")
    if not (3, 11) <= sys.version_info < (3, 15):
        tally.skipped = "stacks are read of Python 3.11 to 3.14"
        return [tally]
    for _ in range(max(2, int(FILTERS * share))):
        script = FILTERED.format(steps=STEPS, seed=chance.randrange(1 << 30), kind=chance.choice(("ends", "refuses")))
        tally.count(_sampled(gnntop, script))
    return [tally]


FILTERED = """
import ctypes, gnntop, random, struct, time
chance = random.Random({seed})
system = ctypes.CDLL(None)
# process_vm_readv and writev, perf_event_open, ptrace, kcmp, bpf and userfaultfd, by their numbers on this machine.
CALLS = {{"x86_64": [310, 311, 298, 101, 312, 321, 323], "aarch64": [270, 271, 241, 117, 272, 280, 282]}}
def restrict():
    word = lambda code, yes, no, k: struct.pack("HBBI", code, yes, no, k)
    calls = CALLS.get(__import__("os").uname().machine, [])
    action = {{"ends": 0x80000000, "refuses": 0x00050001}}["{kind}"]
    filter = word(0x20, 0, 0, 0) + b"".join(word(0x15, len(calls) - at, 0, n) for at, n in enumerate(calls))
    filter += word(6, 0, 0, 0x7fff0000) + word(6, 0, 0, action)
    kept = ctypes.create_string_buffer(filter)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(filter) // 8, ctypes.addressof(kept)))
    assert system.prctl(38, 1, 0, 0, 0) == 0
    assert system.syscall({{"x86_64": 317, "aarch64": 277}}[__import__("os").uname().machine], 1, 1, program) == 0
at = chance.randrange({steps} // 2)
for number in range({steps}):
    if number == at:
        restrict()
    with gnntop.phase("forward"):
        time.sleep(0.8 if number == at + 1 else 0.02)
    gnntop.step()
"""


def _sampled(gnntop: Gnntop, script: str) -> str | None:
    program, record = gnntop.home / "filtered.py", gnntop.home / "filtered.gnntop"
    program.write_text(script)
    options = ("--plain", "--stacks", "100", "--record", record, "--force")
    ran = gnntop.run("run", *options, "--", "python3", program, timeout_s=60)
    if ran.wrong() or ran.code != 0:
        return ran.wrong() or f"ended {ran.code}: {ran.err!r}"
    report = json.loads(gnntop.run("report", record, "--json").out)
    sampled = report["sampled_stacks"] or {"taken": 0, "unread": 0}
    seen = (report["steps"]["total"], sampled["taken"] > 2 * sampled["unread"])
    return None if seen == (STEPS, True) else f"{seen[0]} steps; {sampled['taken']} stacks, {sampled['unread']} unread"


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


def attack_removed(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Logs and directories that somebody removes, or that cannot be made."""
    tally = Tally(
        "logs and directories removed or unusable", "the log is made again, or the last lines say what is gone"
    )
    for number in range(max(3, int(REMOVED * share))):
        directory = gnntop.home / f"removed-{number}"
        tally.count((_remove_log, _remove_all, _unusable)[number % 3](gnntop, chance, directory))
        shutil.rmtree(directory, ignore_errors=True)
    return [tally]


# Ends when it may, with a last line and an exit code by which that line is shown.
PRINTS = "until [ -e go ]; do echo line; sleep 0.0{pause}; done; echo {last}; exit 3"


def _printing(gnntop: Gnntop, chance: random.Random, directory: Path, remove: str, last: str) -> Ran:
    """Runs a program that prints while something is removed, and once more after that."""
    go = gnntop.home / "go"
    go.unlink(missing_ok=True)
    script = PRINTS.format(pause=chance.randint(1, 5), last=last)
    watcher = subprocess.Popen(
        ["sh", "-c", f"until [ -e {directory}/*.run ]; do sleep 0.05; done; sleep 0.3; {remove}; sleep 0.3; touch {go}"]
    )
    ran = gnntop.run("run", "--plain", "--", "sh", "-c", script, env={"GNNTOP_DIR": str(directory)})
    watcher.wait()
    return ran


def _remove_log(gnntop: Gnntop, chance: random.Random, directory: Path) -> str | None:
    ran = _printing(gnntop, chance, directory, f"rm {directory}/*.log", "the-end")
    logs = [log.read_text() for log in directory.glob("*.log")]
    is_whole = len(logs) == 1 and "this log was removed" in logs[0] and logs[0].endswith("the-end\n")
    return ran.wrong() or (None if ran.code == 3 and is_whole else f"ended {ran.code}: {logs!r:.300}, {ran.err!r}")


def _remove_all(gnntop: Gnntop, chance: random.Random, directory: Path) -> str | None:
    ran = _printing(gnntop, chance, directory, f"rm -rf {directory}", "the-end")
    there = wait_until(lambda: any("the-end" in log.read_text() for log in directory.glob("*.log")), 5)
    is_said = b"which was removed" in ran.err
    return ran.wrong() or (None if ran.code == 3 and (there or is_said) else f"ended {ran.code}: {ran.err!r}")


def _unusable(gnntop: Gnntop, chance: random.Random, directory: Path) -> str | None:
    directory.write_text("in the way")
    unusable = chance.choice((str(directory), f"{directory}/below", "/proc/1/gnntop"))
    code = chance.randint(0, 9)
    ran = gnntop.run("run", "--plain", "--", "sh", "-c", f"exit {code}", env={"GNNTOP_DIR": unusable})
    said = ran.err.decode(errors="replace").count(f"nothing can be published in {unusable}")
    directory.unlink()
    return ran.wrong() or (None if (ran.code, said) == (code, 2) else f"{unusable}: ended {ran.code}: {ran.err!r}")
