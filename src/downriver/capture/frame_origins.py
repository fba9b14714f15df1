"""The origins of the columns of pandas frames.

A frame's `attrs` are copied with it, and some writers store them as JSON. So a frame has only a
token in its `attrs`, and this module stores the origins of each token.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from downriver.columns import Certainty, DependencyKind, Deps, direct, merge_all, weaken
from downriver.columns.facet import render_column_lineage
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.events import dataset, run_event
from downriver.openlineage.facets.base import Facets
from downriver.openlineage.facets.column_lineage import COLUMN_LINEAGE
from downriver.openlineage.facets.dataset import SCHEMA, SchemaField, render_schema
from downriver.openlineage.wire import Event

# Dependencies by column. The key ROWS has the dependencies of the rows.
Origins: TypeAlias = Mapping[str, Deps]
ROWS = "*"

_ATTRIBUTE = "downriver"
_REMEMBERED = 256


class FrameRegistry:
    """The latest frames of a process whose origins are known."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Callable[[], Origins]] = OrderedDict()
        self._lock = threading.Lock()

    def mark(self, frame: Any, origins: Callable[[], Origins]) -> None:
        """Store the origins of a frame's columns; `origins` is called when they are needed."""
        token = uuid.uuid4().hex
        frame.attrs[_ATTRIBUTE] = token
        with self._lock:
            self._known[token] = _once(origins)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)

    def knows(self, frame: Any) -> bool:
        """Return whether a frame was marked."""
        return self._find(frame) is not None

    def lookup(self, frame: Any) -> Callable[[], Origins]:
        """Return a function that returns a frame's origins, for later: the frame may change."""
        return self._find(frame) or dict

    def origins(self, frame: Any) -> Origins:
        """Return the origins of a frame's columns; empty for a frame that was not marked."""
        return self.lookup(frame)()

    def _find(self, frame: Any) -> Callable[[], Origins] | None:
        attributes = getattr(frame, "attrs", None)
        token = attributes.get(_ATTRIBUTE) if isinstance(attributes, dict) else None
        with self._lock:
            return self._known.get(token) if isinstance(token, str) else None

    def latest_with(self, columns: Iterable[str]) -> Origins | None:
        """Return the origins of the latest frame that has all of these columns."""
        wanted = set(columns)
        with self._lock:
            known = list(reversed(self._known.values()))
        for origins in known:
            latest = origins()
            if wanted and wanted <= latest.keys():
                return latest
        return None


def after_pandas_code(origins: Origins, names: Iterable[str]) -> dict[str, Deps]:
    """Return the origins of a frame's columns after unknown pandas code.

    A column that existed before may have changed, so it is inferred. A new column may be computed
    from any other column.
    """
    everything = direct(
        merge_all(deps for name, deps in origins.items() if name != ROWS),
        DependencyKind.TRANSFORMATION,
    )
    inferred = {name: weaken(origins.get(name, everything), Certainty.INFERRED) for name in names}
    return {**inferred, ROWS: origins.get(ROWS, {})}


def _once(compute: Callable[[], Origins]) -> Callable[[], Origins]:
    """Return a function that computes the origins on its first call."""
    computed: list[Origins] = []
    lock = threading.Lock()

    def origins() -> Origins:
        with lock:
            if not computed:
                computed.append(compute())
            return computed[0]

    return origins


def render_frame_write(
    file: DatasetId, origins: Origins, job: JobId, run: str, run_facets: Facets
) -> Event:
    """Return the event of a frame that pandas wrote to a file."""
    columns = {name: deps for name, deps in origins.items() if name != ROWS}
    rows = origins.get(ROWS, {})
    tables = {key[0]: None for deps in origins.values() for key in deps}
    facets: Facets = {
        SCHEMA: render_schema(SchemaField(name) for name in columns),
        COLUMN_LINEAGE: render_column_lineage(columns, rows),
    }
    return run_event(
        job,
        run,
        "COMPLETE",
        time.time_ns() // 1000,
        inputs=[dataset(DatasetId(table[0], table[1])) for table in tables],
        outputs=[dataset(file, facets)],
        run_facets=run_facets,
    )
