"""Records reads and writes of data libraries while a tracked function runs.

The libraries' functions are replaced only while a tracked function runs. The replacements record
calls made in that function's context and behave the same for every other caller.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.emit import guarded
from downriver.capture.functions.libraries import MODULES, patches_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType

    from downriver.capture.functions.libraries import LibraryPatch
    from downriver.capture.functions.runs import FunctionRun
    from downriver.model.ids import DatasetId


class ImportWatcher(MetaPathFinder):
    """Calls `loaded(name)` after one of `names` was imported."""

    def __init__(self, names: Collection[str], loaded: Callable[[str], None]) -> None:
        self._names = names
        self._loaded = loaded
        self._finding: set[str] = set()

    def start(self) -> None:
        """Listen from now on."""
        sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Listen no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec as the other finders have it, its loader made to call us."""
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
    """Loads a module by the loader it belongs to, then tells of it."""

    def __init__(self, loader: Loader, loaded: Callable[[str], None]) -> None:
        self._loader = loader
        self._loaded = loaded

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module as its loader would."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then tell that it is there."""
        self._loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loaded(module.__name__)


class LibraryRecording(NamedTuple):
    """Who is watching, and how it finds datasets by the names of tables."""

    run: FunctionRun
    names: Callable[[str], DatasetId]


_watch: ContextVar[LibraryRecording | None] = ContextVar("downriver_watch", default=None)


@contextmanager
def record_library_calls(run: FunctionRun, names: Callable[[str], DatasetId]) -> Iterator[None]:
    """Note for a run what is read and written in this context."""
    token = _watch.set(LibraryRecording(run, names))
    _patches.hold()
    try:
        yield
    finally:
        _patches.release()
        _watch.reset(token)


class _Patches:
    """The functions that are replaced at the moment, while anyone holds them."""

    def __init__(self) -> None:
        self._holders = 0
        self._undo: list[tuple[Any, str, Any]] = []
        self._lock = threading.RLock()
        self._imports = ImportWatcher(MODULES, self._apply)

    def hold(self) -> None:
        """Replace the functions, if no one else holds them yet."""
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                with guarded("watching data libraries"):
                    self._imports.start()
                    for name in MODULES:
                        if name in sys.modules:
                            self._apply(name)

    def release(self) -> None:
        """Put the libraries' own functions back, once no one holds them."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._imports.stop()
                while self._undo:
                    owner, name, original = self._undo.pop()
                    setattr(owner, name, original)

    def _apply(self, module: str) -> None:
        with self._lock:
            if self._holders == 0:
                return
            for patch in patches_of(sys.modules[module]):
                original = patch.owner.__dict__.get(patch.name)
                if original is None:
                    continue
                with guarded(f"watching {module}.{patch.name}"):
                    setattr(patch.owner, patch.name, _replaced(original, patch))
                    self._undo.append((patch.owner, patch.name, original))


def _replaced(original: Any, patch: LibraryPatch) -> Callable[..., Any]:
    perform = _call_in_place if patch.reads_variables else _call

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        watch = _watch.get()
        token = _watch.set(None)  # one library reads by another: the outer call says it all
        try:
            result = perform(functools.partial(original, *args, **kwargs), sys._getframe(1))
        finally:
            _watch.reset(token)
        if watch is not None:
            with guarded("noting what a data library read or wrote"):
                patch.watched(watch.run, watch.names, result, args, kwargs)
        return result

    return call


def _call(perform: Callable[[], Any], _: FrameType) -> Any:
    return perform()


_PERFORM = compile("__downriver_perform__()", "<downriver>", "eval")


def _call_in_place(perform: Callable[[], Any], caller: FrameType) -> Any:
    """Call where the caller's variables are seen: our own frame would hide them."""
    variables = {**caller.f_locals, "__downriver_perform__": perform}
    return eval(_PERFORM, caller.f_globals, variables)  # noqa: S307 — the text is the one above


_patches = _Patches()
