"""Python programs under `gnntop run`: they end as they do alone, and are seen."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

from tally import Tally
from under_test import Gnntop, Ran

PACKAGE = Path(__file__).resolve().parents[2] / "python"
DAMAGES = 40
SHADOWS = 60
ENVIRONMENTS = 30
LIMITS = 20
STEPS = 20
EXACT = range(STEPS, STEPS + 1)
PROGRAM = f"""
import gnntop
for _ in range({STEPS}):
    with gnntop.span("work"):
        pass
    gnntop.step()
"""


def attack_cache(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Files of the package in the cache that a power failure has cut, emptied or removed."""
    tally = Tally(
        "damaged package in the cache", "the program ends with its own code and output, and all its steps are seen"
    )
    cache = gnntop.home / "cut-cache"
    for _ in range(max(3, int(DAMAGES * share))):
        wrong = watched(gnntop, PROGRAM, "", XDG_CACHE_HOME=str(cache))
        files = sorted(path for path in cache.rglob("*") if path.is_file())
        for file in chance.sample(files, chance.randint(1, len(files))):
            _damage(file, chance)
        tally.count(wrong or watched(gnntop, PROGRAM, "", XDG_CACHE_HOME=str(cache)))
        shutil.rmtree(cache)
    return [tally]


# Names of modules that Python, torch or we import.
NAMES = "gnntop _bootstrap _native sitecustomize usercustomize ctypes struct typing re types weakref threading enum os"
LOUD = "import sys\nsys.stdout.write('imported ' + __name__ + '\\n')\n"
ENDS = ("", "raise SystemExit(3)\n", "raise KeyboardInterrupt\n", "1 / 0\n", "import no_such_module\n")
OWN = """
import sys
for name in {imports!r}:
    try:
        print(__import__(name).__file__)
    except BaseException as error:
        print(type(error))
print(sys.path)
"""


def attack_names(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Programs with modules of their own that have the names of ours, or of what we import."""
    tally = Tally(
        "modules with the same names as ours or Python's", "the program's output and exit code are those without us"
    )
    for number in range(max(5, int(SHADOWS * share))):
        folder = gnntop.home / f"names-{number}"
        places = [folder, folder / "path"]
        (folder / "path").mkdir(parents=True)
        names = chance.sample(NAMES.split(), chance.randint(1, 4))
        for name in names:
            package = chance.choice(places) / name
            text = LOUD + (chance.choice(ENDS) if chance.random() < 0.3 else "")
            if chance.random() < 0.5:
                package.mkdir()
                (package / "__init__.py").write_text(text)
                (package / "_bootstrap.py").write_text(text)
            else:
                package.with_suffix(".py").write_text(text)
        (folder / "program.py").write_text(
            OWN.format(imports=[n for n in names if chance.random() < 0.5 and n != "gnntop"])
        )
        env = {**gnntop.env, "PYTHONPATH": str(folder / "path")}
        alone = subprocess.run(
            ["python3", "program.py"],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        ran = gnntop.run("run", "--plain", "--", "python3", "program.py", env=env, cwd=folder)
        # A failed sitecustomize has our frame in its traceback.
        tally.count(ran.wrong() or _as_alone(gnntop, ran, _plain(alone.stdout.decode()), alone.returncode))
        shutil.rmtree(folder)
    return [tally]


def attack_environments(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Scripts that start Python in ways by which it does not see our folder."""
    tally = Tally("scripts that lose PYTHONPATH", "the screen names the reason, or the line and what to write")
    for number in range(max(2, int(ENVIRONMENTS * share))):
        line, expected = chance.choice(LOSSES)
        noise = [
            chance.choice(("# PYTHONPATH=x", "true", "", "export OTHER=PYTHONPATH"))
            for _ in range(chance.randint(0, 9))
        ]
        folder = gnntop.home / f"lost-{number}"
        folder.mkdir()
        (folder / "train.py").write_text("import time; time.sleep(2.5)")
        (folder / "train.sh").write_text("\n".join([*noise, line, "true", ""]))
        ran = gnntop.run("run", "--plain", "--", "bash", "train.sh", cwd=folder)
        expected = expected.format(line=len(noise) + 1)
        tally.count(ran.wrong() or (None if expected in ran.out.decode() else f"{line!r}: {ran.out!r}"))
        shutil.rmtree(folder)
    return [tally]


LOSSES = [
    ("export PYTHONPATH=.; python3 train.py", "line {line} of train.sh sets PYTHONPATH"),
    ("PYTHONPATH='a b' python3 train.py", "line {line} of train.sh sets PYTHONPATH"),
    ('export PYTHONPATH="$PWD/lib" && python3 train.py', 'to `export PYTHONPATH="$PWD/lib:$PYTHONPATH"'),
    ('env -i "$(which python3)" train.py', "as by `env -i`"),
    ("(exec -a sudo bash -c 'env -i \"$(which python3)\" train.py; true')", "sudo clears its environment"),
    ("(exec -a docker sleep 6)", "what docker starts is not below it"),
    ("unset PYTHONPATH; python3 train.py", "end its value with `:$PYTHONPATH`"),
    ("python3 -I train.py", "started with -I"),
    ("python3 -u -E train.py", "started with -E"),
    ("python3 -S train.py", "started with -S"),
    ("GNNTOP=0 python3 train.py", "GNNTOP=0 is set"),
]


def attack_limits(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Names, values, depths and threads of any number and kind."""
    tally = Tally("names, values, nesting and threads without end", "no exception, no exit, and all steps are seen")
    for _ in range(max(3, int(LIMITS * share))):
        is_off = chance.random() < 0.2  # then only an installed package is there
        env = {"GNNTOP": "0", "PYTHONPATH": str(PACKAGE)} if is_off else {}
        script = ANYTHING.format(seed=chance.randrange(1 << 30), steps=STEPS)
        tally.count(watched(gnntop, script, "", **env))
    return [tally]


ANYTHING = """
import random, threading, gnntop
chance = random.Random({seed})
class Bad:
    def __str__(self): raise ValueError("own")
    __float__ = __int__ = __index__ = __repr__ = __str__
def name():
    kind = chance.randrange(8)
    if kind < 4:
        return f"name {{chance.randrange(1 << 14)}}"
    if kind < 7:
        return chr(chance.randrange(0x11000)) * chance.choice((1, 30, 300, 1 << 20))
    return chance.choice((None, 5, b"x", [], {{}}, Bad(), 1.5))
def value():
    return chance.choice((1, 1.5, None, "1", 1 << 90, float("nan"), [], Bad()))
def work(count):
    spans = []
    for _ in range(count):
        kind = chance.randrange(5)
        if kind == 0: gnntop.counter(name(), value())
        elif kind == 1: gnntop.mark(name(), value())
        else:
            span = chance.choice((gnntop.span, gnntop.phase))(name())
            span.__enter__()
            spans.append(span)
            if chance.random() < 0.9: spans.pop().__exit__(None, None, None)
    for span in spans: span.__exit__(None, None, None)
gnntop.start(name())
for number in range({steps}):
    work(chance.choice((10, 300)))
    if number % 4 == 0:
        threads = [threading.Thread(target=work, args=(50,)) for _ in range(5)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    gnntop.step(epoch=value())
"""


def _plain(text: str) -> str:
    """The last line of each message: the way to it may pass through our file."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith((" ", "Traceback")))


def _damage(file: Path, chance: random.Random) -> None:
    size = file.stat().st_size
    kind = chance.randrange(4)
    if kind == 0:
        file.unlink()
        return
    with file.open("r+b") as opened:
        if kind == 1:
            opened.truncate(chance.randint(0, size))
        else:
            opened.seek(chance.randrange(max(size, 1)))
            opened.write(bytes(4096) if kind == 2 else chance.randbytes(chance.randint(1, 4096)))


def watched(
    gnntop: Gnntop,
    program: str,
    expected: str,
    *,
    steps: range | None = EXACT,
    python: str | Path = "python3",
    timeout_s: float = 30,
    **env: str,
) -> str | None:
    """Runs a program with `gnntop run`; returns what was wrong with its end, its output or the number of its steps."""
    script, record = gnntop.home / "program.py", gnntop.home / "python.gnntop"
    script.write_text(program)
    ran = gnntop.run(
        "run", "--plain", "--record", record, "--force", "--", python, script, env=env, timeout_s=timeout_s
    )
    wrong = ran.wrong() or _as_alone(gnntop, ran, expected)
    if wrong or steps is None or env.get("GNNTOP") == "0":
        return wrong
    total = json.loads(gnntop.run("report", record, "--json").out)["steps"]["total"]
    return None if total in steps else f"{total} of {steps[-1]} steps were seen"


def _as_alone(gnntop: Gnntop, ran: Ran, expected: str, code: int = 0) -> str | None:
    log = max(gnntop.sessions.glob("*.log"), key=os.path.getmtime)
    said = _plain(log.read_text(errors="replace"))
    if (ran.code, said) == (code, expected):
        return None
    both = range(min(len(said), len(expected)))
    at = next((at for at in both if said[at] != expected[at]), len(both))
    return f"ended {ran.code}, not {code}; wrote {said[at:][:200]!r}, not {expected[at:][:200]!r}"
