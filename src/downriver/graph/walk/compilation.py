"""Load the compiled walks, for processes that answer many questions: servers and benchmarks.

They need numba (the extra `fast`). Without it, or before `load`, walks run in Python and numpy
with the same results.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_loaded: list[ModuleType] = []


def load() -> bool:
    """Compile the walks, or load them from numba's cache; return whether that succeeded."""
    if not _loaded:
        try:
            compiled = import_module("downriver.graph.walk.compiled_walks")
        except (ImportError, RuntimeError):  # no numba, or no folder for its cache
            return False
        compiled.warm()
        _loaded.append(compiled)
    return True


def walks() -> ModuleType | None:
    """Return the compiled walks once they are loaded."""
    return _loaded[0] if _loaded else None
