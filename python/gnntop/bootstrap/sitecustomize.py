# Run by every Python that `gnntop run` starts: through PYTHONPATH, before the program, and by Pythons of any version.
# So this file works on all of them; what it calls needs 3.10.
import os
import sys


def _leave_the_path_as_it_was():
    # The package can be imported from the end of the path, after the program's own packages.
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != own]
    sys.path.append(os.path.dirname(os.path.dirname(own)))


def _start():
    if sys.version_info >= (3, 10) and os.environ.get("GNNTOP") != "0":
        from gnntop import _bootstrap

        _bootstrap.start()


def _run_the_next_sitecustomize():
    # The one that would have run without us. Its exceptions are raised here, so that Python reports them as always.
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    finally:
        sys.modules.setdefault("sitecustomize", own)


try:
    _leave_the_path_as_it_was()
    _start()
except Exception:
    pass
try:
    _run_the_next_sitecustomize()
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":
        raise
