#!/usr/bin/env bash
# Makes a wheel: the program gnntop, the package gnntop and the native part, for every Python from 3.10 on.
#
#   scripts/wheel.sh [FOLDER]              builds what is missing and writes the wheel into FOLDER (default target/wheels)
#   scripts/wheel.sh --test [FOLDER]       and installs it into a fresh environment, where it must work
#
# GNNTOP_PROGRAM   a program that is already built, instead of target/release/gnntop
# TARGET           another target, such as aarch64-unknown-linux-gnu (default: this machine's); needs cargo-zigbuild
#
# With cargo-zigbuild (pip install cargo-zigbuild ziglang) the wheel runs from glibc 2.17 on. Otherwise it is tagged
# with the glibc that its files need.
set -euo pipefail
cd "$(dirname "$0")/.."
GNNTOP_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || true) && export GNNTOP_COMMIT
test=no
if [ "${1:-}" = --test ]; then test=yes && shift; fi
out=${1:-target/wheels}
mkdir -p "$out"

host=$(rustc -vV | sed -n 's/^host: //p')
target=${TARGET:-$host}
if [ "$target" != "$host" ] && { [ "$test" = yes ] || ! command -v cargo-zigbuild >/dev/null; }; then
    echo "a wheel for $target needs cargo-zigbuild (pip install cargo-zigbuild ziglang), and can only be tested there" >&2
    exit 2
fi
native=target/native
if [ -n "${GNNTOP_PROGRAM:-}" ]; then
    program=$GNNTOP_PROGRAM
    cargo rustc --quiet --release -p gnntop-python --lib --crate-type cdylib --target-dir "$native" -- -C strip=symbols
    library=$native/release/libgnntop_python.so
elif command -v cargo-zigbuild >/dev/null; then
    cargo zigbuild --release -p gnntop-python --target "$target.2.17" --target-dir "$native"
    library=$native/$target/release/libgnntop_python.so
    GNNTOP_NATIVE_LIBRARY=$PWD/$library cargo zigbuild --release -p gnntop --target "$target.2.17"
    program=target/$target/release/gnntop
else
    cargo rustc --release -p gnntop-python --lib --crate-type cdylib --target-dir "$native" -- -C strip=symbols
    library=$native/release/libgnntop_python.so
    GNNTOP_NATIVE_LIBRARY=$PWD/$library cargo build --release -p gnntop
    program=target/release/gnntop
fi

wheel=$(python3 - "$program" "$library" "$out" "${target%%-*}" <<'END'
"""Writes the wheel; the format is PyPA's "Binary distribution format"."""
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

program, library, out = (pathlib.Path(argument) for argument in sys.argv[1:4])
machine = sys.argv[4]
version = re.search(r'\[workspace.package\]\s*version = "([^"]+)"', pathlib.Path("Cargo.toml").read_text())[1]
symbols = subprocess.run(["readelf", "--dyn-syms", "--wide", program, library], capture_output=True, text=True, check=True)
glibc = max((int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols.stdout))
tag = f"py3-none-manylinux_{glibc[0]}_{max(glibc[1], 17)}_{machine}"
info = f"gnntop-{version}.dist-info"

package = pathlib.Path("python")
files = {str(path.relative_to(package)): path.read_bytes()
         for path in sorted(package.glob("gnntop/**/*")) if path.suffix in (".py", ".typed")}
files["gnntop/libgnntop.so"] = library.read_bytes()
files["gnntop/include/gnntop.h"] = (package / "include/gnntop.h").read_bytes()
files[f"gnntop-{version}.data/scripts/gnntop"] = program.read_bytes()
files[f"{info}/METADATA"] = f"""Metadata-Version: 2.4
Name: gnntop
Version: {version}
Summary: A live profiler in the terminal for training runs, graph neural networks first
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Requires-Python: >=3.10
Description-Content-Type: text/markdown

{pathlib.Path("README.md").read_text()}""".encode()
files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: gnntop\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
for license in ("LICENSE-MIT", "LICENSE-APACHE"):
    files[f"{info}/licenses/{license}"] = pathlib.Path(license).read_bytes()

path = out / f"gnntop-{version}-{tag}.whl"
record = []
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, content in files.items():
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        is_program = name.endswith("scripts/gnntop")
        entry.external_attr = (0o100755 if is_program or name.endswith(".so") else 0o100644) << 16
        wheel.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}")
    record.append(f"{info}/RECORD,,")
    wheel.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
print(path)
END
)
echo "$wheel"
# What PyPI will find of the libraries that it needs.
if command -v auditwheel >/dev/null; then
    auditwheel show "$wheel"
else
    echo "SKIPPED: auditwheel show. To install it: pip install auditwheel"
fi

if [ "$test" = yes ]; then
    environment=$(mktemp -d)
    trap 'rm -rf "$environment"' EXIT
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --no-index "$wheel"
    # The package alone, and a program under `gnntop run`, which finds what it carries.
    cat >"$environment/steps.py" <<'END'
import gnntop
for _ in range(10):
    with gnntop.span("work"):
        pass
    gnntop.step()
assert gnntop.report()["steps"]["total"] >= 9, gnntop.report()["steps"]
END
    export GNNTOP_DIR=$environment/sessions XDG_CACHE_HOME=$environment/cache
    (cd "$environment" && PATH=$environment/bin:$PATH bin/python steps.py && bin/gnntop run -- bin/python steps.py)
    echo "the wheel works in a fresh environment"
fi
