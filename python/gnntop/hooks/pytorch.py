"""torch itself: forward passes of root modules, backward, optimizers, gradient scalers, clipping, checkpoints."""

from __future__ import annotations

import re
from functools import partial
from types import ModuleType
from typing import Any

from .. import _answers, _native, _program
from . import device_memory, device_waits, gradients, loop, patching, reading, roots, settings
from .patching import on_uninstall, patch, watch
from .phases import reported_as

OLDEST = (2, 3)
"""The oldest torch whose optimizers also call hooks with torch.compile."""

_SKIPPED = "optimizer step skipped: gradients were not finite"


def install(torch: ModuleType) -> None:
    """Hooks torch, unless it is too old: that is reported to ``gnntop run``."""
    if _is_too_old(torch):
        oldest = ".".join(map(str, OLDEST))
        _answers.tell(f"problem torch {torch.__version__} is older than {oldest}, the oldest that can be watched")
        return
    # Dynamo makes it return True while it traces; the cheapest function of this kind.
    patching.is_compiling = torch.compiler.is_dynamo_compiling
    loop.install()
    watch(torch.autograd, "backward", _native.BACKWARD)
    watch(torch.autograd, "grad", _native.GRADIENTS)
    _native.listen(_native.IS_NESTED, partial(_is_nested, torch._C))
    _hook_optimizers(torch)
    patch(torch.amp.GradScaler, "step", _before_scaler, _after_scaler)
    patch(torch.amp.GradScaler, "unscale_", *reported_as(_native.UNSCALE))
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        patch(torch.nn.utils, name, *reported_as(_native.CLIP))
    patch(torch.nn.Module, "zero_grad", *reported_as(_native.ZERO_GRAD))
    watch(torch, "save", _native.CHECKPOINT)
    device_waits.install(torch)
    settings.install(torch)
    gradients.install(torch)
    roots.install(torch)
    loop.describe = partial(describe, torch)
    observe = partial(_observe_device, torch)
    loop.on_open.append(observe)
    on_uninstall.append(lambda: loop.on_open.remove(observe))


def _is_too_old(torch: ModuleType) -> bool:
    version = re.match(r"(\d+)\.(\d+)", getattr(torch, "__version__", ""))
    return version is not None and (int(version[1]), int(version[2])) < OLDEST


def _is_nested(native: Any) -> bool:
    """Whether gradients are computed in a function of which `torch.func` computes gradients."""
    try:
        stack = native._functorch.get_interpreter_stack() or ()
        return sum(bool(one.key() == native._functorch.TransformType.Grad) for one in stack) > 1
    except (AttributeError, RuntimeError):
        return False  # a torch without these, or before it has loaded them


def install_safetensors(safetensors: ModuleType) -> None:
    """Hooks ``safetensors.torch``."""
    for name in ("save_file", "save_model"):
        watch(safetensors, name, _native.CHECKPOINT)


# ---- optimizers ----------------------------------------------------------------------------------------------------


def _hook_optimizers(torch: ModuleType) -> None:
    # torch 2.15 has no attribute torch.optim.optimizer, only the module.
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    is_compiling, begin, end = patching.is_compiling, _native.optimizer_before, _native.optimizer_after

    # torch.compile traces these two, and leaves nothing of them.
    def before(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not is_compiling():
            begin(optimizer, args, kwargs)

    def after(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not is_compiling():
            end(optimizer, args, kwargs)

    watch(torch.optim.Optimizer, "zero_grad", _native.ZERO_GRAD)
    on_uninstall.extend(
        (register_optimizer_step_pre_hook(before).remove, register_optimizer_step_post_hook(after).remove)
    )


# ---- gradient scalers ----------------------------------------------------------------------------------------------


def _before_scaler(args: tuple[Any, ...]) -> tuple[int, int, int] | None:
    """The scaler may wait for the device, and may skip the step: all of it is the optimizer's."""
    scaler, optimizer = args[0], args[1]
    token = _native.work_begin(_native.OPTIMIZER) if scaler._enabled else None
    return None if token is None else (token, id(optimizer), _native.optimizer_steps())


def _after_scaler(begun: tuple[int, int, int], _: object) -> None:
    token, optimizer, steps = begun
    if _native.optimizer_steps() == steps:
        _native.mark(_native.mark_name(_SKIPPED))
    _native.work_end(_native.OPTIMIZER, token, optimizer)


# ---- the session's name, and what it runs on ---------------------------------------------------------------


def describe(torch: ModuleType) -> tuple[str, dict[str, str]]:
    """Name and facts of the session."""
    facts = {"framework": f"PyTorch {torch.__version__}", "python": _program.python(), **_rank(torch)}
    facts["threads"] = str(torch.get_num_threads())
    if torch.cuda.is_initialized():
        facts["device"] = torch.cuda.get_device_name()
    model = roots.model()
    if model is not None:
        facts["model"] = reading.class_name(type(model))
        facts["parameters"] = str(reading.size(model))
    return _program.name(), facts


def _rank(torch: ModuleType) -> dict[str, str]:
    """Which rank this is: as set by the launcher, else as torch.distributed knows it."""
    place = _program.place()
    distributed = torch.distributed
    if not place and distributed.is_available() and distributed.is_initialized():
        place = {"rank": str(distributed.get_rank()), "ranks": str(distributed.get_world_size())}
    if place and distributed.is_available() and distributed.is_initialized():
        place["engine"] = distributed.get_backend()
    return {"device": "cpu", **place} if place else {}


def _observe_device(torch: ModuleType) -> None:
    """Measures the GPU's time by its own clock, on the training thread's stream, and its memory."""
    if torch.cuda.is_initialized():
        device = torch.cuda.current_device()
        _native.cuda(device, torch._C._cuda_getCurrentRawStream(device))
        patching.guarded("device memory", device_memory.install)(torch, device)
