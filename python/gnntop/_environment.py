"""What ``gnntop run`` has set for this Python: also after the program has cleared its environment."""

import os

_AT_START = {name: value for name, value in os.environ.items() if name.startswith("GNNTOP")}
"""Read before the program runs. It is imported by every Python under ``gnntop run``, so it imports nothing else."""


def variable(name: str) -> str:
    """What this variable says, or said at the start; empty where it never did."""
    try:
        return os.environ.get(name) or _AT_START.get(name, "")
    except (AttributeError, TypeError):  # the program has something else in its place
        return _AT_START.get(name, "")
