"""Reads and writes of data libraries, seen while a function runs that asked for it.

The libraries' functions are replaced only while some tracked function runs, by ones that note what
happens in that function's context; whoever else calls them meanwhile notices nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.emit import guarded
from downriver.capture.functions.libraries import MODULES, patches_of
from downriver.capture.functions.loading import ImportWatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from downriver.capture.functions.libraries import Patch
    from downriver.capture.functions.runs import FunctionRun
    from downriver.model.ids import DatasetId


class Watch(NamedTuple):
    """Who is watching, and how it finds datasets by the names of tables."""

    run: FunctionRun
    names: Callable[[str], DatasetId]


_watch: ContextVar[Watch | None] = ContextVar("downriver_watch", default=None)


@contextmanager
def watching(run: FunctionRun, names: Callable[[str], DatasetId]) -> Iterator[None]:
    """Note for a run what is read and written in this context."""
    token = _watch.set(Watch(run, names))
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


def _replaced(original: Any, patch: Patch) -> Callable[..., Any]:
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
