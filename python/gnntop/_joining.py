"""Installs the hooks in a running Python, and removes them, for ``gnntop attach`` and `gnntop.start`."""

import sys


def join() -> None:
    """Hooks torch, now if this program has imported it, else when it does."""
    from . import _bootstrap

    _bootstrap.start()
    roots = sys.modules.get(f"{__package__}.hooks.roots")
    if roots is not None:
        roots.look_soon()  # the optimizers already exist


def leave() -> None:
    """Ends the session and removes the hooks. What was hooked is as before."""
    from . import _bootstrap

    _bootstrap.stop()
    native = sys.modules.get(f"{__package__}._native")
    hooks = sys.modules.get(f"{__package__}.hooks")
    if hooks is not None and hasattr(hooks, "uninstall"):
        hooks.uninstall()
    if native is not None:
        native.close()
