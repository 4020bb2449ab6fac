"""Programs whose modules have our names, or names of modules that we import: they run as without us.

torch is a file of a line here: enough for its import to be seen.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from programs import REACH, environment

pytestmark = pytest.mark.skipif(not Path(REACH["GNNTOP_NATIVE"]).exists(), reason="no native part: cargo build")

# What a program sees of itself. Its own modules say that they are imported.
SEEN = """
import sys
print(sorted(name for name in sys.modules if not name.startswith("_gnntop")), sys.path)
"""
LOUD = "print('imported', __name__)\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def run(folder: Path, variables: dict[str, str], *words: str) -> tuple[int, str, str]:
    command = [sys.executable, *(words or ["program.py"])]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def both(folder: Path, path: str = "", *words: str) -> tuple[tuple[int, str, str], tuple[int, str, str]]:
    """What a program does alone, and with us in front of its own ``PYTHONPATH``."""
    alone = environment(folder / "sessions")
    alone.pop("PYTHONPATH", None)
    alone |= {"PYTHONPATH": path} if path else {}
    watched = alone | REACH | {"PYTHONPATH": os.pathsep.join([REACH["PYTHONPATH"], *filter(None, [path])])}
    (folder / "answers").mkdir(exist_ok=True)
    watched["GNNTOP_ANSWERS"] = str(folder / "answers")
    return run(folder, alone, *words), run(folder, watched, *words)


def answer(folder: Path) -> str:
    return "".join(file.read_text() for file in (folder / "answers").iterdir())


def test_a_program_sees_no_module_and_no_path_of_ours(tmp_path: Path) -> None:
    write(tmp_path, {"program.py": SEEN})
    alone, watched = both(tmp_path)
    assert watched == alone
    assert answer(tmp_path).startswith("python 3.")


@pytest.mark.parametrize("place", ["script", "path", "cwd"])
@pytest.mark.parametrize("name", ["gnntop.py", "gnntop/__init__.py", "gnntop/_bootstrap.py", "_bootstrap.py"])
def test_a_gnntop_of_the_programs_own_stays_its_own(place: str, name: str, tmp_path: Path) -> None:
    write(tmp_path / ("site" if place == "path" else "."), {name: f"{LOUD}value = 7\n"})
    write(
        tmp_path,
        {"torch.py": LOUD, "program.py": f"import torch\nimport gnntop\nprint(vars(gnntop).get('value')){SEEN}"},
    )
    words = ["-m", "program"] if place == "cwd" else []
    alone, watched = both(tmp_path, str(tmp_path / "site") if place == "path" else "", *words)
    if "No module named 'gnntop'" in alone[2]:
        assert watched[0] == 0, "a program that has none gets ours"
        return
    # With torch the hooks are imported, and what they need of the standard library.
    assert watched[1].splitlines()[:-1] == alone[1].splitlines()[:-1]
    assert (watched[0], watched[2]) == (alone[0], alone[2])


def test_an_installed_gnntop_is_the_one_that_watches(tmp_path: Path) -> None:
    installed = Path(__file__).resolve().parents[1] / "gnntop/__init__.py"
    code = "import sys, gnntop; print(gnntop.__name__, gnntop is sys.modules['_gnntop'], gnntop.start(), gnntop.step())"
    write(tmp_path, {"program.py": code, "site/gnntop/__init__.py": installed.read_text()})
    _, watched = both(tmp_path, str(tmp_path / "site"))
    assert watched == (0, "_gnntop True True 1\n", "")


def test_a_module_named_like_ours_that_the_program_imports_is_its_own(tmp_path: Path) -> None:
    code = "import sitecustomize, usercustomize\nprint(sitecustomize.__file__, usercustomize.__file__)"
    write(tmp_path, {"program.py": code, "sitecustomize.py": LOUD, "usercustomize.py": LOUD})
    alone, watched = both(tmp_path)
    assert watched == alone
    assert alone[0] == 0


@pytest.mark.parametrize("name", ["ctypes", "struct", "typing", "re", "weakref", "threading", "importlib", "types"])
@pytest.mark.parametrize("torch", ["", "import torch\n"])
def test_nothing_of_the_programs_is_imported_in_place_of_pythons(name: str, torch: str, tmp_path: Path) -> None:
    loud = "import os\nos.write(1, b'imported by somebody\\n')\n"
    write(tmp_path, {"torch.py": LOUD, "program.py": f"{torch}print('end')", f"{name}.py": loud})
    alone, watched = both(tmp_path)
    assert watched == alone
    if torch and alone[0] == 0 and "somebody" not in alone[1]:
        assert f"{name}.py takes the place of a module" in answer(tmp_path)


def test_modules_of_the_programs_own_in_an_archive_are_not_imported_by_us(tmp_path: Path) -> None:
    write(tmp_path, {"torch.py": LOUD, "program.py": "import torch"})
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as archive:
        archive.writestr("ctypes.py", LOUD)
    alone, watched = both(tmp_path, str(tmp_path / "own.zip"))
    assert watched == alone == (0, "imported torch\n", "")
    assert "ctypes.py takes the place of a module" in answer(tmp_path)


def test_a_torch_that_another_finder_has_is_found_even_if_nothing_is_hooked(tmp_path: Path) -> None:
    code = """
import importlib.util, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, "elsewhere/torch.py") if name == "torch" else None
sys.meta_path.insert(1, Finder())
import torch
"""
    write(tmp_path, {"program.py": code, "elsewhere/torch.py": LOUD, "ctypes.py": LOUD})
    alone, watched = both(tmp_path)
    assert watched == alone
    assert alone[0] == 0
    assert "ctypes.py takes the place of a module" in answer(tmp_path)


def test_a_program_that_removes_the_package_may_import_it_again(tmp_path: Path) -> None:
    code = """
import gnntop, importlib, sys
gnntop.step()
del sys.modules["gnntop"]
import gnntop
gnntop.step()
for name in [name for name in sys.modules if "gnntop" in name]:
    del sys.modules[name]
import gnntop
gnntop.step()
importlib.reload(gnntop)
print(gnntop.step())
"""
    write(tmp_path, {"program.py": code})
    assert run(tmp_path, environment(tmp_path / "sessions") | REACH) == (0, "4\n", "")


def test_what_the_hooks_need_of_python_is_known(tmp_path: Path) -> None:
    code = """
import sys
before = set(sys.modules)
import torch
from gnntop import _bootstrap, hooks
import importlib
for name in ("pytorch", "workers", "distributed", "pyg", "dgl", "dataloader", "compiling", "lightning", "transformers"):
    importlib.import_module(f"_gnntop.hooks.{name}")
new = {name.partition(".")[0] for name in set(sys.modules) - before} - {"torch", "gnntop", "_gnntop"}
print(sorted(new - set(_bootstrap._NEEDED) - set(sys.builtin_module_names)))
"""
    write(tmp_path, {"torch.py": "__version__ = '1.0'", "program.py": code})
    _, watched = both(tmp_path)
    assert watched == (0, "[]\n", "")


RING = """
import os, pickle, subprocess, sys
import torch
from gnntop.hooks import workers
def own(worker):
    print("own", worker, flush=True)
if __name__ == "__main__":
    text = pickle.dumps(workers.Start(["", ""], print))
    code = "import pickle, sys; pickle.loads(sys.stdin.buffer.read())(1)"
    for words in ([], ["-I"]):
        subprocess.run([sys.executable, *words, "-c", code], input=text, check=True)
"""


def test_a_worker_that_is_started_without_our_hooks_runs_the_programs_function(tmp_path: Path) -> None:
    write(tmp_path, {"torch.py": "__version__ = '1.0'", "program.py": RING})
    _, watched = both(tmp_path)
    assert watched == (0, "1\n1\n", "")
