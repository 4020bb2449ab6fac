"""Settings of torch that change how fast a training is, as one fact of the session. No advice: each has its price.

They are read once, when the first forward pass begins after the session has opened: within the program's autocast, if
there is one. Nothing is imported for it, and no device is initialized.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from .. import _native
from .._environment import variable
from . import loop, model_parameters, reading, roots, training_set
from .patching import guarded, on_uninstall


def install(torch: ModuleType) -> None:
    """Notes the settings with the next forward pass of each session."""

    def note() -> None:
        if torch._C._get_tracing_state() is not None:
            return soon()  # shapes that are read would be in the graph
        _native.fact("settings", ", ".join(_settings(torch)))
        if debugging := ", ".join(_debugging(torch)):
            _native.fact("debugging", debugging)
        model_parameters.publish(torch)
        training_set.publish_workers(roots.loaders)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            training_set.publish(roots.loaders)

    def soon() -> None:
        _native.listen(_native.ON_FORWARD, guarded("settings", note))

    loop.on_open.append(soon)
    on_uninstall.append(lambda: loop.on_open.remove(soon))


def _settings(torch: ModuleType) -> Iterator[str]:
    is_on_gpu = torch.cuda.is_initialized()
    yield from _switch("autocast", lambda: torch.is_autocast_enabled("cuda" if is_on_gpu else "cpu"))
    compiled = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {}).get("frames", {}).get("ok", 0)
    yield "compiled" if compiled else "not compiled"
    if roots.optimizer is not None:
        yield _optimizer(*roots.optimizer)
    yield from _channels_last(torch)
    if roots.loaders:
        yield from _switch("pin_memory", lambda: roots.loaders[0].pins_memory)
    if is_on_gpu:
        yield from _switch("TF32", lambda: torch.backends.cuda.matmul.allow_tf32)
        yield from _switch("cudnn.benchmark", lambda: torch.backends.cudnn.benchmark)
    threads = torch.get_num_threads()
    yield f"{threads} thread{'s' if threads != 1 else ''}"


def _debugging(torch: ModuleType) -> Iterator[str]:
    """What makes a training slower to find its faults, and is on."""
    if torch.is_anomaly_enabled():
        yield "anomaly detection"
    variables: list[tuple[str, tuple[str, ...]]] = [("PYTHONMALLOC", ("debug", "malloc_debug", "pymalloc_debug"))]
    if torch.cuda.is_initialized():
        variables.append(("CUDA_LAUNCH_BLOCKING", ("1",)))
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        variables.append(("TORCH_DISTRIBUTED_DEBUG", ("DETAIL",)))
    for name, values in variables:
        if variable(name) in values:
            yield f"{name}={variable(name)}"
    if sys.flags.dev_mode:
        yield "Python's development mode"


def _switch(name: str, read: Callable[[], Any]) -> Iterator[str]:
    """Whether something is on, where torch can say so: not in every version, nor after every way of setting it."""
    try:
        yield f"{name} {'on' if read() else 'off'}"
    except Exception:
        return


def _channels_last(torch: ModuleType) -> Iterator[str]:
    """How the weights of convolutions over images are stored, if the model has any whose strides show it."""
    if torch._C._len_torch_function_stack():
        return  # the program would hear of it
    weight = next(filter(_shows_order, reading.parameters(roots.model())), None)
    if weight is not None:
        yield from _switch("channels_last", lambda: torch._C.TensorBase.stride(weight)[1] == 1)


def _shows_order(weight: object) -> bool:
    shape: tuple[int, ...] = _native.shape(weight) or ()
    return len(shape) == 4 and shape[1] > 1 and shape[2] * shape[3] > 1


def _optimizer(name: str, defaults: dict[str, Any]) -> str:
    if "fused" not in defaults:
        return name
    if defaults["fused"]:
        return f"{name} fused"
    return f"{name} not fused" if defaults.get("foreach") is not True else f"{name} foreach"
