"""Trains with public packages alone and under gnntop, and compares steps, weights, output and exit code.

usage: python scripts/public --venv FOLDER [--install] [--list] [--only NAME]... [--gnntop PROGRAM] [--native LIBRARY]

Run it with a Python that has torch. FOLDER becomes an environment on top of it: `--install` puts the packages there,
wheels from PyPI alone, and leaves torch as it is. Nothing else is fetched: data are made up, or come in the wheels. For
each program it prints a row of the table in docs/python.md; it exits with 1 if one fails or is not installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from catalogue import PROGRAMS, Program
from comparing import compare

REPOSITORY = Path(__file__).resolve().parents[2]


def environment(venv: Path) -> Path:
    """The Python of an environment that sees what the Python that runs this has; made if it is not there."""
    python = venv / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", venv], check=True)
        (site,) = venv.glob("lib/python*/site-packages")
        (site / "torch.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")))
    return python


def install(python: Path, packages: list[str]) -> None:
    """Installs wheels, with what they need; what is there already keeps its version."""
    pip = ["-m", "pip", "--disable-pip-version-check"]
    there = subprocess.run([sys.executable, *pip, "freeze"], capture_output=True, text=True, check=True).stdout
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(line for line in there.splitlines() if "==" in line))
        constraints.flush()
        command = [str(python), *pip, "install", "-q", "--only-binary", ":all:", "-c", constraints.name]
        subprocess.run([*command, *packages], check=True)


def version(python: Path, program: Program) -> str:
    """The version of the program's package that is installed, empty if none is."""
    ask = f"import importlib.metadata as m; print(m.version({program.package!r}))"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Runs the programs that were asked for."""
    parser = argparse.ArgumentParser(prog="python scripts/public", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--venv", type=Path, help="the environment with the packages")
    parser.add_argument("--install", action="store_true", help="install the packages first")
    parser.add_argument("--only", action="append", choices=[*PROGRAMS], metavar="NAME", help="can be repeated")
    parser.add_argument("--gnntop", type=Path, default=REPOSITORY / "target/release/gnntop")
    parser.add_argument("--native", type=Path, default=REPOSITORY / "target/release/libgnntop_python.so")
    arguments = parser.parse_args()
    chosen = {name: PROGRAMS[name] for name in arguments.only or PROGRAMS}
    if arguments.list:
        for name, program in chosen.items():
            print(f"{name:24}{program.source:9}{program.what}")
        return
    for needed in (arguments.gnntop, arguments.native):
        if not needed.exists():
            parser.error(f"{needed} is missing: cargo build --release -p gnntop -p gnntop-python")
    if arguments.venv is None:
        parser.error("--venv FOLDER is missing: the environment with the packages; with --install it is made")
    python = environment(arguments.venv.absolute())
    if arguments.install:
        install(python, sorted({package for program in chosen.values() for package in program.packages}))
    passed = True
    print("| Program | Version | From | Steps | Seen | Output | Phases |\n|---|---|---|---|---|---|---|")
    for name, program in chosen.items():
        if found := version(python, program):
            passed &= compare(name, program, found, python, arguments.gnntop.resolve(), arguments.native.resolve())
        else:
            passed = False
            print(f"{name} is not installed: repeat this with --install, or {python} -m pip install {program.package}")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
