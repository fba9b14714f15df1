"""Tracks every Spark session of a process as soon as it is created."""

from __future__ import annotations

import functools
import importlib.util
import sys
from importlib.abc import Loader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_MODULE = "pyspark.sql.session"


def install_session_hook() -> None:
    """Track new sessions once PySpark is imported; without PySpark this does nothing."""
    if _MODULE in sys.modules:
        _track_new_sessions(sys.modules[_MODULE])
    elif not any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watcher())


class _Watcher:
    """Finds PySpark's session module with the other finders, and patches it after import."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec, with a loader that patches the module."""
        del path, target
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads the module with its own loader, then patches it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module with its own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, then track its new sessions."""
        self._loader.exec_module(module)
        _track_new_sessions(module)


def _track_new_sessions(module: ModuleType) -> None:
    builder = module.SparkSession.Builder
    make = builder.getOrCreate

    @functools.wraps(make)
    def made(self: Any) -> Any:
        session = make(self)
        _track(session)
        return session

    builder.getOrCreate = made


def _track(session: Any) -> None:
    from downriver.capture.emit import guarded
    from downriver.spark import track

    with guarded("tracking a Spark session"):
        track(session).on_end = _print


def _print(line: str) -> None:
    print(line, file=sys.stderr)
