"""Calls a function after a module is imported."""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class ImportWatcher(MetaPathFinder):
    """Calls `loaded(name)` after one of `names` is imported."""

    def __init__(self, names: Collection[str], loaded: Callable[[str], None]) -> None:
        self._names = names
        self._loaded = loaded
        self._finding: set[str] = set()

    def start(self) -> None:
        """Install the import hook."""
        sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Remove the import hook."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec from the other finders, with a loader that reports it."""
        del path, target
        if name not in self._names or name in self._finding:
            return None
        self._finding.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._loaded)
        return spec


class _Loader(Loader):
    """Loads a module with its own loader, then reports it."""

    def __init__(self, loader: Loader, loaded: Callable[[str], None]) -> None:
        self._loader = loader
        self._loaded = loaded

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module with its own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, then report it."""
        self._loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        with guarded(f"following the import of {module.__name__}"):
            self._loaded(module.__name__)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the module's own loader, which reads data files, for example."""
        return getattr(self._loader, name)
