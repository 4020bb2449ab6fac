"""torch itself: forward passes of root modules, backward, optimizers, gradient scalers, clipping, checkpoints."""

from __future__ import annotations

import re
from functools import partial
from types import ModuleType
from typing import Any

from .. import _answers, _native, _program
from . import device_memory, patching, roots
from .loop import loop
from .patching import Hook, on_uninstall, patch
from .phases import CHECKPOINT

OLDEST = (2, 3)
"""The oldest torch whose optimizers also call hooks with torch.compile."""

# Tokens of optimizers' steps that have begun; they nest if an optimizer calls another.
_stepping: list[tuple[int | None, int]] = []
_steps_begun = 0


def install(torch: ModuleType) -> None:
    """Hooks torch, unless it is too old: that is reported to ``gnntop run``."""
    if _is_too_old(torch):
        oldest = ".".join(map(str, OLDEST))
        _answers.tell(f"problem torch {torch.__version__} is older than {oldest}, the oldest that can be watched")
        return
    # Dynamo makes it return True while it traces; the cheapest function of this kind.
    patching.is_compiling = torch.compiler.is_dynamo_compiling
    patch(torch.autograd, "backward", loop.backward_begin, loop.backward_end)
    patch(torch.autograd, "grad", loop.backward_begin, _after_grad)
    _hook_optimizers(torch)
    patch(torch.amp.GradScaler, "step", _before_scaler, _after_scaler)
    patch(torch.amp.GradScaler, "unscale_", _before_unscale, _after_part)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        patch(torch.nn.utils, name, _before_clip, _after_part)
    patch(torch, "save", *CHECKPOINT)
    roots.install(torch)
    loop.describe = lambda: describe(torch)
    observe = partial(_observe_device, torch)
    loop.on_open.append(observe)
    on_uninstall.append(lambda: loop.on_open.remove(observe))


def _is_too_old(torch: ModuleType) -> bool:
    version = re.match(r"(\d+)\.(\d+)", getattr(torch, "__version__", ""))
    return version is not None and (int(version[1]), int(version[2])) < OLDEST


def install_safetensors(safetensors: ModuleType) -> None:
    """Hooks ``safetensors.torch``."""
    for name in ("save_file", "save_model"):
        patch(safetensors, name, *CHECKPOINT)


# ---- backward ------------------------------------------------------------------------------------------------------


def _after_grad(depth: int, _: object) -> None:
    loop.backward_end(depth, is_micro_batch=False)


# ---- optimizers ----------------------------------------------------------------------------------------------------


def _hook_optimizers(torch: ModuleType) -> None:
    # torch 2.15 has no attribute torch.optim.optimizer, only the module.
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    hook, is_compiling = Hook("optimizer"), patching.is_compiling

    # Like `patching.guarded`, without a call in between: every step pays for these two.
    def before(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        global _steps_begun
        if hook.is_on and not is_compiling():
            try:
                _steps_begun += 1
                closure = args[1] if len(args) > 1 else kwargs.get("closure") if kwargs else None
                _stepping.append((loop.optimizer_begin(closure is not None), id(optimizer)))
            except BaseException as error:
                hook.failed(error)

    def after(optimizer: Any, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
        if hook.is_on and not is_compiling():
            try:
                token, key = _stepping.pop()
                while key != id(optimizer) and _stepping:  # a step that raised was never popped
                    token, key = _stepping.pop()
                if token is not None:
                    loop.optimizer_end(token, key)
            except BaseException as error:
                hook.failed(error)

    patch(torch.optim.Optimizer, "zero_grad", loop.zero_begin, loop.part_end)
    on_uninstall.extend(
        (register_optimizer_step_pre_hook(before).remove, register_optimizer_step_post_hook(after).remove)
    )


# ---- gradient scalers and clipping ---------------------------------------------------------------------------------


def _before_scaler(args: tuple[Any, ...]) -> tuple[int, int, int] | None:
    """The scaler may wait for the device, and may skip the step: all of it is the optimizer's."""
    scaler, optimizer = args[0], args[1]
    depth = loop.optimizer_begin(has_closure=False) if scaler._enabled else None
    return None if depth is None else (depth, id(optimizer), _steps_begun)


def _after_scaler(token: tuple[int, int, int], _: object) -> None:
    depth, optimizer, steps_begun = token
    if _steps_begun == steps_begun:
        _native.mark(loop.names.skipped)
    loop.optimizer_end(depth, optimizer)


def _before_unscale(_: tuple[Any, ...]) -> int | None:
    return loop.part_begin(loop.names.unscale) if loop.is_here() else None


def _before_clip(_: tuple[Any, ...]) -> int | None:
    return loop.part_begin(loop.names.clip) if loop.is_here() else None


def _after_part(depth: int, _: object) -> None:
    loop.part_end(depth)


# ---- the session's name, and what it runs on ---------------------------------------------------------------


def describe(torch: ModuleType) -> tuple[str, dict[str, str]]:
    """Name and facts of the session."""
    facts = {"framework": f"PyTorch {torch.__version__}", "python": _program.python(), **_rank(torch)}
    facts["threads"] = str(torch.get_num_threads())
    if torch.cuda.is_initialized():
        facts["device"] = torch.cuda.get_device_name()
    model = roots.model()
    if model is not None:
        facts["model"] = type(model).__name__
        facts["parameters"] = str(sum(p.numel() for p in model.parameters()))
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
