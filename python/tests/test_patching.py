"""Hooks that raise: switched off, told once, and never noticed by the program."""

from __future__ import annotations

import ctypes
import functools
import importlib
import signal
import sys
import threading
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import Recorder

from gnntop.hooks import patching
from gnntop.hooks.importing import when_imported


def test_what_is_hooked_is_called_once_with_ours_around(recorder: Recorder) -> None:
    said: list[Any] = []
    hooked = patching.around(
        lambda x, y: said.append((x, y)) or x + y,
        "sum",
        lambda args: said.append("before") or len(args),
        lambda token, result: said.append((token, result)),
    )
    assert hooked(1, y=2) == 3
    assert said == ["before", (1, 2), (1, 3)]


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_hook_that_raises_is_switched_off_and_told_once(recorder: Recorder, where: str) -> None:
    calls: list[str] = []

    def before(_: object) -> int:
        calls.append("before")
        return 1 // (where != "before")

    def after(_: object, __: object) -> None:
        calls.append("after")
        _ = 1 // (where != "after")

    hooked = patching.around(lambda: "result", where, before, after)
    assert [hooked(), hooked()] == ["result", "result"]
    assert calls == (["before"] if where == "before" else ["before", "after"])
    assert recorder.facts == {f"hook switched off: {where}": "ZeroDivisionError: integer division or modulo by zero"}


def test_the_programs_own_exception_goes_through_with_no_trace_of_ours(recorder: Recorder) -> None:
    ended: list[object] = []

    def fails() -> None:
        raise KeyError("own")

    hooked = patching.around(fails, "fails", lambda _: 1, lambda token, result: ended.append(result))
    with pytest.raises(KeyError) as caught:
        hooked()
    assert ended == [None]
    assert caught.value.__context__ is None


def test_a_hook_that_raises_is_no_context_of_the_programs_exception(recorder: Recorder) -> None:
    def fails() -> None:
        raise KeyError("own")

    hooked = patching.around(fails, "both fail", lambda _: 1 // 0, lambda *_: None)
    with pytest.raises(KeyError) as caught:
        hooked()
    assert caught.value.__context__ is None


def test_a_module_is_hooked_once_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found: list[ModuleType] = []
    when_imported("late_module", found.append)
    assert found == []
    module = importlib.import_module("late_module")
    assert found == [module]
    assert module.value == 1
    when_imported("late_module", found.append)
    assert found == [module, module]
    sys.modules.pop("late_module")


def test_a_module_that_fails_or_is_missing_does_so_as_without_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad_module.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("bad_module", "no_such_module"):
        when_imported(name, lambda _: None)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("bad_module")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module")


@pytest.mark.parametrize("version", ["1.13.1", "2.2.2+cpu"])
def test_a_torch_that_is_too_old_is_left_alone_and_the_reason_told(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    from gnntop.hooks import pytorch

    monkeypatch.setenv("GNNTOP_ANSWERS", str(tmp_path))
    torch = ModuleType("torch")
    torch.__version__ = version
    before = dict(vars(torch))
    pytorch.install(torch)
    (answer,) = tmp_path.iterdir()
    assert answer.read_text().startswith(f"problem torch {version} is older than 2.3")
    assert vars(torch) == before


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, RecursionError])
def test_what_the_programs_own_code_raises_in_a_hook_ends_there(recorder: Recorder, kind: type[BaseException]) -> None:
    class Batch:
        def __len__(self) -> int:
            raise kind("own")

    def before(args: tuple[Any, ...]) -> int:
        return len(args[0])

    hooked = patching.around(lambda _: "result", f"batch {kind}", before, lambda *_: None)
    assert hooked(Batch()) == "result"
    assert recorder.facts == {f"hook switched off: batch {kind}": f"{kind.__name__}: own"}


@pytest.mark.parametrize("file", [patching.__file__, "library.py"])
@pytest.mark.parametrize("handler", ["function", "method", "partial", "default"])
def test_what_a_handler_of_a_signal_raises_in_a_hook_is_the_programs(
    recorder: Recorder, handler: str, file: str
) -> None:
    class LateError(Exception):
        def handle(self, *_: object) -> None:
            raise self

    def handle(*_: object) -> None:
        sys.exit(5)

    handlers = {"function": handle, "method": LateError().handle, "partial": functools.partial(handle)}
    expected = {"method": LateError, "default": KeyboardInterrupt}.get(handler, SystemExit)
    ours: dict[str, Any] = {"signal": signal}
    exec(compile("def before(_): signal.raise_signal(signal.SIGINT)", file, "exec"), ours)
    hooked = patching.around(lambda: "result", handler, ours["before"], lambda *_: None)
    before = signal.signal(signal.SIGINT, handlers.get(handler, signal.default_int_handler))
    try:
        with pytest.raises(expected):
            hooked()
    finally:
        signal.signal(signal.SIGINT, before)
    assert recorder.facts == {}


class LateError(Exception):
    """As libraries for timeouts raise in another thread, or a debugger that is left."""


RAISED = {
    "thread": "set_exception(c_ulong(get_ident()), py_object(kind))\n    while True: pass",
    "trace": "settrace(tracer)\n    inner()",
    "profile": "setprofile(tracer)\n    inner()",
    "return": "setprofile(at_return)",
}


@pytest.mark.parametrize("by", RAISED)
@pytest.mark.parametrize("kind", [LateError, TimeoutError, SystemExit])
def test_what_a_thread_or_a_tracer_raises_in_a_hook_is_the_programs(
    recorder: Recorder, by: str, kind: type[BaseException]
) -> None:
    def tracer(*_: object) -> None:
        raise kind("left")

    def at_return(_frame: object, event: str, _: object) -> None:
        if event == "return":
            raise kind("left")

    ours: dict[str, Any] = {
        "kind": kind,
        "tracer": tracer,
        "at_return": at_return,
        "get_ident": threading.get_ident,
        **vars(sys),
        **vars(ctypes),
    }
    ours["set_exception"] = ctypes.pythonapi.PyThreadState_SetAsyncExc
    text = f"def inner(): pass\ndef before(_):\n    {RAISED[by]}"
    exec(compile(text, patching.__file__, "exec"), ours)
    hooked = patching.around(lambda: "result", f"{by} {kind}", ours["before"], lambda *_: None)
    tracing = sys.gettrace(), sys.getprofile()
    try:
        with pytest.raises(kind):
            hooked()
    finally:
        sys.settrace(tracing[0])
        sys.setprofile(tracing[1])
    assert recorder.facts == {}


def test_a_module_that_is_being_imported_is_hooked_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
from gnntop.hooks.importing import when_imported
when_imported(__name__, lambda module: module.seen.append(module.last))
seen = []
{end}
last = len(seen)
"""
    (tmp_path / "joined_well.py").write_text(text.format(end=""))
    (tmp_path / "joined_ill.py").write_text(text.format(end="raise ValueError"))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("joined_well")
    assert (module.seen, type(module.__spec__)) == ([0], ModuleSpec)
    with pytest.raises(ValueError, match=r"^$"):
        importlib.import_module("joined_ill")


def test_a_module_that_another_finder_finds_first_is_hooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class First:
        """Finds the package, and not its parts."""

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            return PathFinder.find_spec(name, path, target) if name == "found_first" else None

    package = tmp_path / "found_first"
    package.mkdir()
    (package / "__init__.py").write_text("from . import part\nlast = part.value\n")
    (package / "part.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen: list[int] = []
    when_imported("found_first", lambda module: seen.append(module.last))
    monkeypatch.setattr(sys, "meta_path", [First(), *sys.meta_path])
    module = importlib.import_module("found_first")
    assert (seen, type(module.__spec__)) == ([3], ModuleSpec)


def test_arguments_given_by_name_are_seen_where_they_are_named() -> None:
    seen: list[Any] = []
    hooked = patching.around(lambda *_, **__: None, "x", seen.append, lambda *_: None, names=("run_id",))
    hooked("client", run_id="a", status="b")
    hooked("client", "a")
    assert seen == [("client", "a"), ("client", "a")]
