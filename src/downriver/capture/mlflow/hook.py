"""Reads every MLflow run of this process when it ends, without delaying or breaking it."""

from __future__ import annotations

import atexit
import functools
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from downriver.capture.emit.guard import guarded
from downriver.capture.mlflow.events import lineage_id_of, render_run
from downriver.capture.mlflow.tracking_store import LINEAGE_TAG, OWN_TAG, TrackingStore
from downriver.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.openlineage.wire import Event

# Methods of MlflowClient after which a run has ended, or a version of its model has changed.
_RUN_METHODS = ("set_terminated",)
_VERSION_METHODS = (
    "_create_model_version",
    "create_model_version",
    "set_registered_model_alias",
    "transition_model_version_stage",
)
_EXIT_SECONDS = 10.0


class MlflowHook:
    """Follows the MLflow clients of this process and emits the events of their runs.

    A separate thread reads MLflow, so that a slow tracking server does not delay the training.
    """

    def __init__(self, emit: Callable[[Event], None], *, write_tags: bool = True) -> None:
        self._emit = emit
        self._write_tags = write_tags
        self._pending: queue.Queue[tuple[str, str] | None] = queue.Queue()
        self._originals: dict[str, Callable[..., Any]] = {}
        self._thread: threading.Thread | None = None

    def install(self) -> None:
        """Start following the clients."""
        try:
            from mlflow import MlflowClient
        except ImportError as exc:
            raise MissingDependencyError("mlflow-skinny", "mlflow") from exc
        for name in (*_RUN_METHODS, *_VERSION_METHODS):
            original = getattr(MlflowClient, name, None)
            if original is not None and name not in self._originals:
                self._originals[name] = original
                setattr(MlflowClient, name, self._followed(name, original))
        atexit.register(self.flush)

    def uninstall(self) -> None:
        """Stop following the clients."""
        from mlflow import MlflowClient

        for name, original in self._originals.items():
            setattr(MlflowClient, name, original)
        self._originals.clear()
        atexit.unregister(self.flush)

    def flush(self, timeout: float = _EXIT_SECONDS) -> bool:
        """Wait until all runs that ended are read. False if that takes longer than `timeout`."""
        thread = self._thread
        if thread is None:
            return True
        self._pending.put(None)
        thread.join(timeout)
        if thread.is_alive():
            return False
        self._thread = None
        return True

    def _followed(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(client: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(client, *args, **kwargs)
            with guarded("following an MLflow run"):
                self._follow(name, client, args, kwargs, result)
            return result

        return call

    def _follow(
        self, name: str, client: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        uri = str(client.tracking_uri)
        if name in _RUN_METHODS:
            run = kwargs.get("run_id", args[0] if args else None)
        elif name == "set_registered_model_alias":
            model = kwargs.get("name", args[0] if args else "")
            version = kwargs.get("version", args[2] if len(args) > 2 else "")
            run = client.get_model_version(model, str(version)).run_id
        else:
            run = getattr(result, "run_id", None)
        if run:
            self._pending.put((uri, str(run)))
            self._start()

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._read_runs, name="downriver-mlflow", daemon=True
            )
            self._thread.start()

    def _read_runs(self) -> None:
        while (entry := self._pending.get()) is not None:
            uri, run_id = entry
            with guarded("reading an MLflow run"):
                self._read_run(TrackingStore(uri), run_id)

    def _read_run(self, store: TrackingStore, run_id: str) -> None:
        run = store.run(run_id)
        if run.status in ("RUNNING", "SCHEDULED"):  # its end follows
            return
        for event in render_run(run, time.time_ns() // 1000):
            self._emit(event)
        if self._write_tags and OWN_TAG not in run.tags:
            tagged = LINEAGE_TAG in run.tags
            store.write_tag(run_id, lineage_id_of(run), has_lineage_tag=tagged)
