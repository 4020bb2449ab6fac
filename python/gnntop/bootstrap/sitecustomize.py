# Run by every Python that `gnntop run` starts: through PYTHONPATH, before the program, and by Pythons of any version.
# So this file works on all of them; what it calls needs 3.10. It imports nothing that Python has not imported before:
# a module of that name could be the program's.
import os
import sys

_OWN = os.path.dirname(os.path.abspath(__file__))


def _leave_the_path_as_it_was():
    path = []
    for entry in sys.path:
        if os.path.abspath(entry or os.curdir) != _OWN:
            path.append(entry)
        elif _stands_for_nothing() and os.getcwd() not in sys.path:
            path.append(os.getcwd())
    sys.path[:] = path


def _stands_for_nothing():
    # Our entry ends with a slash where PYTHONPATH was not set. What a script has put beside it would have stood beside nothing,
    # which Python takes for the current folder.
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return len(entries) > 1 and any(entry.endswith("/") and os.path.abspath(entry) == _OWN for entry in entries)


def _start():
    if sys.version_info >= (3, 10) and os.environ.get("GNNTOP") != "0":
        import _frozen_importlib as core
        import _frozen_importlib_external as external

        # A name of its own: a program may have another `gnntop`. `_bootstrap` makes `import gnntop` find it otherwise.
        folder = os.path.dirname(_OWN)
        file = os.path.join(folder, "__init__.py")
        spec = external.spec_from_file_location("_gnntop", file, submodule_search_locations=[folder])
        module = core.module_from_spec(spec)
        sys.modules["_gnntop"] = module
        spec.loader.exec_module(module)
        from _gnntop import _bootstrap

        _bootstrap.start()


def _run_the_next_sitecustomize():
    # The one that would have run without us. Its exceptions are raised here, so that Python reports them as always; where
    # there is none, Python finds none, and drops this one.
    sys.modules.pop("sitecustomize", None)
    import sitecustomize  # noqa: F401


try:
    _leave_the_path_as_it_was()
    _start()
except (Exception, SystemExit):
    pass
_run_the_next_sitecustomize()
