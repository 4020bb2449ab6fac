"""Gymnasium: the steps and resets of environments, which tell a rollout from a validation.

An environment that ``gymnasium.make`` makes is inside of such a wrapper, and vectors of them are classes of their own.
"""

from __future__ import annotations

from types import ModuleType

from .. import _native
from .patching import patch
from .phases import reported_as

_STEPS = reported_as(_native.ENVIRONMENT)


def install_wrappers(common: ModuleType) -> None:
    """Hooks ``gymnasium.wrappers.common``; of wrappers in one another, the outermost counts."""
    for name in ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics"):
        _hook(getattr(common, name, None))


def install_vectors(vector: ModuleType) -> None:
    """Hooks ``gymnasium.vector``."""
    for name in ("SyncVectorEnv", "AsyncVectorEnv"):
        _hook(getattr(vector, name, None))


def _hook(environment: type | None) -> None:
    if environment is not None:
        for name in ("step", "reset"):
            patch(environment, name, *_STEPS)
