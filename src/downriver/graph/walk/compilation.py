"""Compiled walks, for who walks often: a server, a benchmark.

They need numba (the extra `fast`). Without it, or before `load`, walks are made in Python and with
arrays, and find the same.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_loaded: list[ModuleType] = []


def load() -> bool:
    """Compile the walks, or read what was compiled before; tell whether they are there."""
    if not _loaded:
        try:
            compiled = import_module("downriver.graph.walk.compiled_walks")
        except (ImportError, RuntimeError):  # no numba; or nowhere it may keep what it compiles
            return False
        compiled.warm()
        _loaded.append(compiled)
    return True


def walks() -> ModuleType | None:
    """Return the compiled walks once they are loaded."""
    return _loaded[0] if _loaded else None
