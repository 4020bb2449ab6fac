"""What ``gnntop attach`` and `gnntop.start` have a running Python do: install the hooks, and take them away again."""

from __future__ import annotations

import sys


def join() -> None:
    """Hooks torch, if this program has imported it, else when it does."""
    from gnntop import _bootstrap

    _bootstrap.start()
    roots = sys.modules.get("gnntop.hooks.roots")
    if roots is not None:
        roots.look_soon()  # the optimizers are there already


def leave() -> None:
    """Ends the session and takes the hooks away. What was hooked is as it was before."""
    from gnntop import _bootstrap

    _bootstrap.stop()
    native = sys.modules.get("gnntop._native")
    hooks = sys.modules.get("gnntop.hooks")
    if hooks is not None and hasattr(hooks, "uninstall"):
        hooks.uninstall()
    if native is not None:
        native.close()
