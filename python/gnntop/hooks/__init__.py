"""Hooks into PyTorch and the libraries on top of it: one file per library.

``install()`` imports none of these libraries. Each is hooked after the program has imported it.
"""

from __future__ import annotations

import gc
import importlib
from types import ModuleType

from .._environment import variable
from .importing import when_imported

# The module to wait for, and the file and function that hook it.
_HOOKS = {
    "torch": "pytorch.install",
    "torch.utils.data.dataloader": "dataloader.install",
    "torch.distributed": "distributed.install",
    "torch._dynamo.eval_frame": "compiling.install_skips",
    "torch._dynamo.callback": "compiling.install",
    "torch_geometric.loader": "pyg.install_loader",
    "torch_geometric.data": "pyg.install_data",
    "dgl.dataloading.dataloader": "dgl.install_loader",
    "dgl.heterograph": "dgl.install_graph",
    "fastai.optimizer": "fastai.install",
    "gymnasium.wrappers.common": "gymnasium.install_wrappers",
    "gymnasium.vector": "gymnasium.install_vectors",
    "lightning.pytorch.strategies.strategy": "lightning.install",
    "pytorch_lightning.strategies.strategy": "lightning.install",
    "transformers.modeling_utils": "roots.install_transformers",
    "transformers.trainer": "transformers.install_trainer",
    "accelerate.data_loader": "transformers.install_accelerate",
    "safetensors.torch": "pytorch.install_safetensors",
    "torch.utils.tensorboard.writer": "loggers.install_tensorboard",
    "wandb.sdk.wandb_run": "loggers.install_wandb",
    "tensorboardX.writer": "loggers.install_tensorboard",
    "mlflow.tracking.fluent": "loggers.install_mlflow",
    "trackio.run": "loggers.install_trackio",
    "lightning.pytorch.loggers": "loggers.install_lightning",
    "pytorch_lightning.loggers": "loggers.install_lightning",
    "tqdm.std": "loggers.install_tqdm",
}

# The libraries that are hooked, in the order of their imports.
_hooked: list[str] = []


def install() -> None:
    """Hooks the imported libraries now, and the others when they are imported."""
    from . import tracebacks

    tracebacks.install()
    asked = variable("GNNTOP_TO")
    if asked:
        from . import results

        results.install(asked)
    for name, hooks in _HOOKS.items():
        when_imported(name, _Installer(hooks))


def uninstall() -> None:
    """Removes the hooks: what was hooked is as before, except for the program's own changes since."""
    from .. import _native
    from . import importing, patching

    importing.forget()
    _hooked.clear()
    while patching.on_uninstall:
        try:
            patching.on_uninstall.pop()()
        except Exception as error:
            patching.broken["uninstall"] = f"{type(error).__name__}: {error}"
    _native.switch(_native.ARE_REMOVED, 1)


def _tell(library: str) -> None:
    """Adds a library to the fact that lists what is hooked."""
    from .. import _native

    if library not in _hooked:
        _hooked.append(library)
        _native.fact("hooks", ", ".join(_hooked))


class _Installer:
    """Installs one file of hooks; a failure is reported like a hook that raises."""

    def __init__(self, hooks: str) -> None:
        self.hooks = hooks

    def __call__(self, module: ModuleType) -> None:
        from . import patching

        patching.guarded(self.hooks, self._install)(module)

    def _install(self, module: ModuleType) -> None:
        file, function = self.hooks.split(".")
        getattr(importlib.import_module(f"{__package__}.{file}"), function)(module)
        if module.__name__ == "torch":
            self._with_torch()
        _tell(module.__name__.partition(".")[0])

    def _with_torch(self) -> None:
        from .. import _native
        from .patching import on_uninstall

        gc.callbacks.append(_native.collecting)
        on_uninstall.append(lambda: gc.callbacks.remove(_native.collecting))
