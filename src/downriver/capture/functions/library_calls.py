"""Records reads and writes of data libraries while a tracked function runs.

The libraries' functions are replaced only while a tracked function runs. The replacements record
only calls in that function's context, and do not change results.
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
from downriver.capture.import_watcher import ImportWatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from downriver.capture.functions.libraries import LibraryPatch
    from downriver.capture.functions.runs import FunctionRun
    from downriver.model.ids import DatasetId


class LibraryRecording(NamedTuple):
    """The run that library calls are recorded for, and its resolver of table names."""

    run: FunctionRun
    names: Callable[[str], DatasetId]


_recording: ContextVar[LibraryRecording | None] = ContextVar("downriver_recording", default=None)


@contextmanager
def record_library_calls(run: FunctionRun, names: Callable[[str], DatasetId]) -> Iterator[None]:
    """Record for a run the reads and writes of libraries in this context."""
    token = _recording.set(LibraryRecording(run, names))
    _patches.hold()
    try:
        yield
    finally:
        _patches.release()
        _recording.reset(token)


class _Patches:
    """The library functions that are replaced while at least one run records."""

    def __init__(self) -> None:
        self._holders = 0
        self._undo: list[tuple[Any, str, Any]] = []
        self._lock = threading.RLock()
        self._imports = ImportWatcher(MODULES, self._apply)

    def hold(self) -> None:
        """Replace the functions for the first run."""
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                with guarded("patching data libraries"):
                    self._imports.start()
                    for name in MODULES:
                        if name in sys.modules:
                            self._apply(name)

    def release(self) -> None:
        """Restore the libraries' own functions after the last run."""
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
                with guarded(f"patching {module}.{patch.name}"):
                    setattr(patch.owner, patch.name, _replaced(original, patch))
                    self._undo.append((patch.owner, patch.name, original))


def _replaced(original: Any, patch: LibraryPatch) -> Callable[..., Any]:
    perform = _call_in_place if patch.reads_variables else _call

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recording = _recording.get()
        token = _recording.set(None)  # one library may call another; only the outer call counts
        try:
            result = perform(functools.partial(original, *args, **kwargs), sys._getframe(1))
        finally:
            _recording.reset(token)
        if recording is not None:
            with guarded("recording a call of a data library"):
                patch.record(recording.run, recording.names, result, args, kwargs)
        return result

    return call


def _call(perform: Callable[[], Any], _: FrameType) -> Any:
    return perform()


_PERFORM = compile("__downriver_perform__()", "<downriver>", "eval")


def _call_in_place(perform: Callable[[], Any], caller: FrameType) -> Any:
    """Call with the caller's variables in scope: DuckDB looks them up in the calling frame."""
    variables = {**caller.f_locals, "__downriver_perform__": perform}
    return eval(_PERFORM, caller.f_globals, variables)  # noqa: S307 — the text is the one above


_patches = _Patches()
