"""Makes what pip installs. pip calls `build_wheel` and `build_sdist` (PEP 517); scripts/wheel.sh calls `main`.

Two wheels: `gnntop` has the program without the built-in trainings, the Python package and its native part, for every
Python from 3.10 on; `gnntop-trainings` has the whole program under that name, to which the small one hands over where
trainings are asked for. `pip install 'gnntop[trainings]'` brings both. The source distribution is the repository as it
is committed, and needs Rust.

GNNTOP_PROGRAM         a finished program for the wheel `gnntop`, instead of one built here
GNNTOP_NATIVE_LIBRARY  its native part, likewise
TARGET                 another target, such as aarch64-unknown-linux-gnu (default: this machine's)

With cargo-zigbuild (pip install cargo-zigbuild ziglang) the wheels run from glibc 2.17 on. Otherwise they are tagged
with the glibc that their files need.
"""

import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.search(r'\[workspace.package\]\s*version = "([^"]+)"', (ROOT / "Cargo.toml").read_text())[1]
LICENSES = ("LICENSE-MIT", "LICENSE-APACHE")
EXTRA = f"Provides-Extra: trainings\nRequires-Dist: gnntop-trainings == {VERSION}; extra == 'trainings'\n"


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """The wheel `gnntop`, for PEP 517. Returns its file's name."""
    library = built_library()
    program = os.environ.get("GNNTOP_PROGRAM") or built_program(library, "small", "--no-default-features")
    package = ROOT / "python"
    files = {
        str(path.relative_to(package)): path.read_bytes()
        for path in sorted(package.glob("gnntop/**/*"))
        if path.suffix in (".py", ".typed")
    }
    files["gnntop/libgnntop.so"] = library.read_bytes()
    files["gnntop/include/gnntop.h"] = (package / "include/gnntop.h").read_bytes()
    files[f"gnntop-{VERSION}.data/scripts/gnntop"] = stripped(pathlib.Path(program))
    return write_wheel(pathlib.Path(wheel_directory), "gnntop", EXTRA, files)


def build_trainings_wheel(wheel_directory: str) -> str:
    """The wheel `gnntop-trainings`. Returns its file's name."""
    program = built_program(built_library(), "release")
    files = {f"gnntop_trainings-{VERSION}.data/scripts/gnntop-trainings": stripped(program)}
    return write_wheel(
        pathlib.Path(wheel_directory), "gnntop-trainings", f"Requires-Dist: gnntop == {VERSION}\n", files
    )


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """The source distribution, for PEP 517: every file that is committed, and PKG-INFO. Returns its file's name."""
    name = f"gnntop-{VERSION}"
    committed = subprocess.run(
        ["git", "archive", f"--prefix={name}/", "HEAD"], cwd=ROOT, capture_output=True, check=True
    )
    about = metadata("gnntop", EXTRA)
    archive = io.BytesIO(committed.stdout)
    with tarfile.open(fileobj=archive, mode="a", format=tarfile.PAX_FORMAT) as tar:
        entry = tarfile.TarInfo(f"{name}/PKG-INFO")
        entry.size = len(about)
        tar.addfile(entry, io.BytesIO(about))
    path = pathlib.Path(sdist_directory, f"{name}.tar.gz")
    path.write_bytes(gzip.compress(archive.getvalue(), mtime=0))
    return path.name


def target() -> str:
    """What is built for, as Rust calls it."""
    return os.environ.get("TARGET") or re.search(r"^host: (.*)$", output("rustc", "-vV"), re.MULTILINE)[1]


def built_library() -> pathlib.Path:
    """The native part of the Python package."""
    if given := os.environ.get("GNNTOP_NATIVE_LIBRARY"):
        return pathlib.Path(given)
    folder = target_folder() / "native"
    arguments = ["--release", "-p", "gnntop-python", "--target-dir", str(folder)]
    if shutil.which("cargo-zigbuild"):
        run("cargo", "zigbuild", *arguments, "--target", f"{target()}.2.17")
    else:
        run(
            "cargo",
            "rustc",
            *arguments,
            "--target",
            target(),
            "--lib",
            "--crate-type",
            "cdylib",
            "--",
            "-C",
            "strip=symbols",
        )
    return folder / target() / "release/libgnntop_python.so"


def built_program(library: pathlib.Path, profile: str, *features: str) -> pathlib.Path:
    """The program by this profile of Cargo and with these features, which carries the library."""
    build, suffix = ("zigbuild", ".2.17") if shutil.which("cargo-zigbuild") else ("build", "")
    os.environ["GNNTOP_NATIVE_LIBRARY"] = str(library)
    run("cargo", build, "--profile", profile, "--locked", "-p", "gnntop", "--target", target() + suffix, *features)
    return target_folder() / target() / profile / "gnntop"


def target_folder() -> pathlib.Path:
    """Where Cargo builds."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


def stripped(program: pathlib.Path) -> bytes:
    """A program without its symbols, if there is a tool for its machine."""
    tool = "strip" if target().startswith(os.uname().machine) else f"{target().replace('-unknown', '')}-strip"
    if not shutil.which(tool):
        return program.read_bytes()
    with tempfile.NamedTemporaryFile() as file:
        run(tool, "-o", file.name, str(program))
        return pathlib.Path(file.name).read_bytes()


def write_wheel(folder: pathlib.Path, name: str, requirements: str, files: dict[str, bytes]) -> str:
    """Writes a wheel, as PyPA's "Binary distribution format" has it. The same files give the same bytes."""
    tag = f"py3-none-manylinux_{glibc(files.values())}_{target().split('-')[0]}"
    stem = f"{name.replace('-', '_')}-{VERSION}"
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = metadata(name, requirements)
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: gnntop\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    for text in LICENSES:
        files[f"{info}/licenses/{text}"] = (ROOT / text).read_bytes()
    record = [f"{path},sha256={digest(content)},{len(content)}\n" for path, content in files.items()]
    files[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{stem}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            is_program = "/scripts/" in path or path.endswith(".so")
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            wheel.writestr(entry, content)
    return f"{stem}-{tag}.whl"


def metadata(name: str, requirements: str) -> bytes:
    """What a distribution says of itself: the wheels' METADATA, and the source's PKG-INFO."""
    licenses = "".join(f"License-File: {text}\n" for text in LICENSES)
    head = f"""Metadata-Version: 2.4
Name: {name}
Version: {VERSION}
Summary: A live profiler in the terminal for training runs, graph neural networks first
License-Expression: MIT OR Apache-2.0
{licenses}Requires-Python: >=3.10
{requirements}Description-Content-Type: text/markdown

"""
    return head.encode() + (ROOT / "README.md").read_bytes()


def glibc(files: object) -> str:
    """The newest glibc that one of the files needs, as in a tag: 2_17 or newer."""
    needed = [(2, 17)]
    for content in files:
        if content.startswith(b"\x7fELF"):
            needed += ((int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", content))
    return "{}_{}".format(*max(needed))


def digest(content: bytes) -> str:
    """As RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def run(*words: str) -> None:
    """Runs a command in the repository, with what it prints on the error output."""
    subprocess.run(words, cwd=ROOT, check=True, stdout=sys.stderr)


def output(*words: str) -> str:
    """What a command prints."""
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """`pip_backend.py FOLDER KIND...`: makes these kinds (wheel, trainings, sdist) and prints their paths."""
    makers = {"wheel": build_wheel, "trainings": build_trainings_wheel, "sdist": build_sdist}
    folder, *kinds = sys.argv[1:]
    for kind in kinds:
        print(pathlib.Path(folder, makers[kind](folder)))


if __name__ == "__main__":
    main()
