#!/usr/bin/env python3
"""Records the programs of python/tests/corpus, and scores what gnntop finds in them against their labels. With
`score --from recordings/unseen`, scores the recordings of python/tests/unseen; unseen2 and unseen3 likewise.

usage: scripts/corpus.py record [--gnntop PROGRAM] [--native LIBRARY] [--python PYTHON] [--to FOLDER] [NAME]...
       scripts/corpus.py score  [--gnntop PROGRAM] [--from FOLDER] [--lot seen|unseen] [--list]

A label is beside its recording, in the form of recordings/labelled, with more lines:

    run:      how it is recorded: options, then the program and its arguments (below)
    lot:      `seen` while the checks are written, or `unseen`: a third, by lot
    expect:   kinds that must be found; of `denormals|drift` one is enough
    also:     kinds that are true as well, and count neither way
    place:    KIND: PATTERN; PATTERN: all must be in one finding of this kind (or KIND|KIND), in any of its sentences
    verdict:  a pattern of the verdict's first part, if the cause is large enough to be first. Contention that is true
              as well (`also`) is passed over: it is the machine's
    says:     a pattern that must be in the report's text
    never:    a pattern that must not be
    machine:  written when recorded: cores that other programs used, and waits for memory and cores

Options of `run`: `stacks=N`, `ranks=N`, `cores=N` (affinity), `quota=CORES` (a control group's, needs root),
`beside=N` (programs that compute beside it), `import=csv|chrome` (the program writes a file, which is imported), and
variables of its environment, NAME=VALUE. Memory that was freed is kept, unless `malloc=default`.

The lot is drawn by hashing: a recording is unseen if SHA-256 of "39 FAMILY" is divisible by three; its family is the
name up to the first "-repaired", so that a mistake and its repair are in the same lot.

A recording whose training thread waited for a core 5 % of the time is no good, unless its label has `contention`: it is
recorded again. With root and version 1 of control groups the program comes before others on the machine.

Scoring is by `gnntop report --json`. The kinds in ALWAYS say what is true of any run. Those in MOMENTS do not count as
false while they are small (severity `note` or `minor`), nor that memory is reclaimed if the kernel says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from corpus_score import RECORDINGS, Label, labels, lot, print_faults, reported, score, summary, table

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAMS = REPOSITORY / "python/tests/corpus"
# The percentage of the time that the training thread may wait for a core.
WAITING = 5
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
GROUPS = Path("/sys/fs/cgroup")


def record_all(options: argparse.Namespace) -> None:
    """Records the named programs, or all, one at a time."""
    wanted = [label for label in labels(RECORDINGS) if not options.names or label.name in options.names]
    unknown = set(options.names) - {label.name for label in wanted}
    if unknown:
        sys.exit(f"no label: {', '.join(sorted(unknown))}")
    for label in wanted:
        began = time.monotonic()
        target = (options.to or RECORDINGS) / f"{label.name}.gnntop"
        for _ in range(options.takes):
            code, machine = record(label, options, target)
            share = waited(target, options.gnntop) if target.exists() else 0.0
            stolen = float(re.findall(r"(\d+) % stolen", machine)[0])
            if max(share, stolen) < WAITING or "contention" in label.words("expect") | label.words("also"):
                break
        machine += f", the training thread waited {share:.1f} % of the time for a core"
        if not options.to:
            label.write("lot", lot(label.name))
            label.write("machine", machine)
        size = target.stat().st_size if target.exists() else 0
        print(f"{label.name}: code {code}, {size} bytes, {time.monotonic() - began:.0f} s, {machine}", flush=True)


def record(label: Label, options: argparse.Namespace, target: Path) -> tuple[int, str]:
    """Records one program in a folder of its own; returns its exit code and what the machine did meanwhile."""
    words = label.one("run").split()
    place = next(k for k, word in enumerate(words) if word.endswith(".py"))
    settings = dict(word.split("=", 1) for word in words[:place])
    command = ["python", *words[place:]]
    if "ranks" in settings:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", settings["ranks"]]
        command = ["python", *torchrun, *words[place:]]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corpus-")))
        shutil.copytree(PROGRAMS, folder / "corpus", ignore=shutil.ignore_patterns("__pycache__"))
        taken = folder / "taken.gnntop"
        group = stack.enter_context(control_groups(settings.get("quota")))
        stack.enter_context(computing(int(settings.get("beside", 0)), group))
        if "import" in settings:
            whole = [*command, "written"]
        else:
            stacks = ["--stacks", settings["stacks"]] if "stacks" in settings else []
            program = [*(["taskset", "-c", f"0-{int(settings['cores']) - 1}"] if "cores" in settings else []), *command]
            whole = [str(options.gnntop), "run", "--plain", *stacks, "--record", str(taken), "--", *program]
        before = machine_times(group)
        done = subprocess.run(
            group.prefix + whole,
            cwd=folder / "corpus",
            env=environment(settings, folder, options),
            capture_output=True,
            timeout=300,
        )
        machine = others_between(before, machine_times(group))
        if "import" in settings:
            kind = ["import", settings["import"], str(folder / "corpus/written"), "-o", str(taken)]
            done = subprocess.run([options.gnntop, *kind], capture_output=True)
        if done.returncode != 0:
            sys.stderr.write(done.stdout.decode()[-3000:] + done.stderr.decode()[-3000:])
        if taken.exists():
            subprocess.run([options.gnntop, "record", "--force", "-o", target, taken], check=True, capture_output=True)
        return done.returncode, machine


def environment(settings: dict[str, str], folder: Path, options: argparse.Namespace) -> dict[str, str]:
    """What a program finds in its environment: one thread, a folder for its session, what its label gives."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GNNTOP", "MALLOC"))}
    kept = {} if settings.get("malloc") == "default" else KEPT
    given = {name: value for name, value in settings.items() if name.isupper()}
    native = {"GNNTOP_NATIVE": str(options.native)} if options.native else {}
    usual = {"GNNTOP_DIR": str(folder / "sessions"), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    path = {"PATH": f"{options.python.parent}:{os.environ['PATH']}"}
    return {**inherited, **usual, **kept, **native, **path, **given}


@contextmanager
def computing(programs: int, group: Group) -> Iterator[None]:
    """Other programs that compute all the time, as important as the one that is recorded."""
    command = [*group.prefix, sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(programs)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


@dataclass
class Group:
    """What starts a program in control groups of its own, and where its CPU time is counted."""

    prefix: list[str]
    usage: Path | None


@contextmanager
def control_groups(quota: str | None) -> Iterator[Group]:
    """A group that counts CPU time, and one that comes before other programs and may have a quota; and a host name that
    says nothing of the machine."""
    unshared = ["unshare", "--uts", "sh", "-c", 'hostname localhost; exec "$@"', "sh"] if os.geteuid() == 0 else []
    made = []
    if (GROUPS / "cpuacct/cgroup.procs").exists() and os.geteuid() == 0:
        made = [GROUPS / kind / f"corpus-{os.getpid()}" for kind in ("cpuacct", "cpu")]
    elif quota:
        sys.exit("a quota needs root, and version 1 of control groups")
    for group in made:
        group.mkdir()
    if made:
        (made[1] / "cpu.shares").write_text("262144")
        (made[1] / "cpu.cfs_quota_us").write_text(str(int(float(quota or -1e-5) * 100_000)))
    enter = "; ".join(f"echo $$ >{group}/cgroup.procs" for group in made)
    prefix = ["sh", "-c", f'{enter}; exec "$@"', "sh"] if made else []
    try:
        yield Group(prefix + unshared, made[0] / "cpuacct.usage" if made else None)
    finally:
        for group in made:
            leave(group)


def leave(group: Path) -> None:
    """Removes a control group when its last process has ended."""
    for _ in range(100):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.1)


def machine_times(group: Group) -> tuple[float, ...]:
    """Seconds: of a clock, busy of all cores, of the program's group, of waiting for memory, and of a hypervisor."""
    busy = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    own = int(group.usage.read_text()) / 1e9 if group.usage else 0.0
    pressure = re.search(r"some .*total=(\d+)", Path("/proc/pressure/memory").read_text())
    memory = int(pressure[1]) / 1e6 if pressure else 0.0
    return time.monotonic(), (sum(busy) - busy[3] - busy[4]) / os.sysconf("SC_CLK_TCK"), own, memory, busy[7] / 100


def others_between(before: tuple[float, ...], after: tuple[float, ...]) -> str:
    """What the machine did between two readings, in words."""
    wall, busy, own, memory, stolen = (late - early for early, late in zip(before, after, strict=True))
    others, share = max(busy - own, 0) / wall, 100 * memory / wall
    steal = 100 * stolen / wall
    return f"others used {others:.2f} cores, somebody waited {share:.1f} % of the time for memory, {steal:.0f} % stolen"


def waited(recording: Path, gnntop: Path) -> float:
    """The percentage of the time in which the training thread waited for a core, by the kernel's count."""
    return json.loads(reported(gnntop, recording, "--json"))["hardware"]["main_thread_cpu_wait"]["mean_percent"] or 0.0


def print_scores(options: argparse.Namespace) -> None:
    """Prints tables for each lot and for all, and on request what is wrong."""
    folder = options.folder or RECORDINGS
    wanted = [it for it in labels(folder) or labels(RECORDINGS) if (folder / f"{it.name}.gnntop").exists()]
    scored = [score(label, folder, options.gnntop) for label in wanted]
    for name in ("seen", "unseen", "all"):
        part = [one for one in scored if name in (one.label.one("lot"), "all")]
        if part and options.lot in (None, name):
            print(f"\n## {name}\n{table(part)}\n{summary(part)}")
    if options.list:
        for one in scored:
            if options.lot in (None, one.label.one("lot")):
                print_faults(one)


def main() -> None:
    """Records or scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording, scoring = commands.add_parser("record"), commands.add_parser("score")
    for one in (recording, scoring):
        one.add_argument("--gnntop", type=Path, default=REPOSITORY / "target/debug/gnntop")
    recording.add_argument("--native", type=Path)
    recording.add_argument("--python", type=Path, default=Path(sys.executable))
    recording.add_argument("--to", type=Path)
    recording.add_argument("--takes", type=int, default=3, help="at most, if others need the cores")
    recording.add_argument("names", nargs="*")
    scoring.add_argument("--from", type=Path, dest="folder")
    scoring.add_argument("--lot", choices=["seen", "unseen"])
    scoring.add_argument("--list", action="store_true")
    options = parser.parse_args()
    record_all(options) if options.command == "record" else print_scores(options)


if __name__ == "__main__":
    main()
