"""One call of a tracked function, and what it is seen to do."""

from __future__ import annotations

import threading
import uuid
from contextvars import ContextVar, Token
from typing import NamedTuple

from downriver.model.ids import DatasetId, JobId


class Described(NamedTuple):
    """What a frame looks like: its columns with their types, and how many rows it has."""

    fields: tuple[tuple[str, str], ...] = ()
    rows: int | None = None

    def plus(self, other: Described) -> Described:
        """Return both one after the other, as a generator yields them."""
        known = [rows for rows in (self.rows, other.rows) if rows is not None]
        return Described(self.fields or other.fields, sum(known) if known else None)


UNSEEN = Described()


class Moved(NamedTuple):
    """A dataset that was read or written, as far as it was looked at."""

    dataset: DatasetId
    described: Described = UNSEEN


class FunctionRun:
    """A run of a job, inside the one that called it. Threads it starts may add to it."""

    def __init__(self, job: JobId, parent: FunctionRun | None) -> None:
        self.job = job
        self.id = str(uuid.uuid4())
        self.parent = parent
        self.root: FunctionRun = parent.root if parent is not None else self
        self._inputs: dict[DatasetId, Described] = {}
        self._outputs: dict[DatasetId, Described] = {}
        self._lock = threading.Lock()

    def reads(self, dataset: DatasetId, described: Described = UNSEEN) -> None:
        """Note that the run read a dataset."""
        with self._lock:
            self._inputs[dataset] = self._inputs.get(dataset, UNSEEN).plus(described)

    def writes(self, dataset: DatasetId, described: Described = UNSEEN) -> None:
        """Note that the run wrote a dataset."""
        with self._lock:
            self._outputs[dataset] = self._outputs.get(dataset, UNSEEN).plus(described)

    @property
    def inputs(self) -> list[Moved]:
        """What was read; a file that the run itself had written before is no input."""
        with self._lock:
            return [Moved(*item) for item in self._inputs.items() if item[0] not in self._outputs]

    @property
    def outputs(self) -> list[Moved]:
        """What was written."""
        with self._lock:
            return [Moved(*item) for item in self._outputs.items()]


_current: ContextVar[FunctionRun | None] = ContextVar("downriver_run", default=None)


def current_run() -> FunctionRun | None:
    """Return the run of the tracked function that is being called, the innermost."""
    return _current.get()


def enter(run: FunctionRun) -> Token[FunctionRun | None]:
    """Make a run the current one; give what this returns to `leave`."""
    return _current.set(run)


def leave(token: Token[FunctionRun | None]) -> None:
    """Make the run before the current one again."""
    _current.reset(token)
