"""Tracks every Spark session of a process from the moment it is made."""

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
    """Have sessions tracked once PySpark is imported; costs nothing where it is not."""
    if _MODULE in sys.modules:
        _track_new_sessions(sys.modules[_MODULE])
    elif not any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watcher())


class _Watcher:
    """Finds the one module by the other finders, and adds to it once it has run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec, its loader made to call us afterwards."""
        del path, target
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads one module by the loader it belongs to, which may load others too."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module as its loader would."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then have its sessions tracked."""
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
        track(session)
