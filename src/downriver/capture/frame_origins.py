"""Where the columns of a pandas frame come from, carried along with the frame.

A frame's `attrs` follow it through copies and selections, and some writers put them into JSON: so
a frame carries a token only, and what the token stands for stays here.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from downriver.columns.dependencies import Certainty, DependencyKind, Deps, direct, merge
from downriver.columns.facet import render_column_lineage
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.events import dataset, run_event
from downriver.openlineage.facets.base import Facets
from downriver.openlineage.facets.column_lineage import COLUMN_LINEAGE
from downriver.openlineage.facets.schema import SCHEMA, SchemaField, render_schema
from downriver.openlineage.wire import Event

# By column; under ROWS, what decides which rows there are.
Origins: TypeAlias = Mapping[str, Deps]
ROWS = "*"

_ATTRIBUTE = "downriver"
_REMEMBERED = 256


class FrameRegistry:
    """The frames of a process whose columns are known, the latest ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Callable[[], Origins]] = OrderedDict()
        self._lock = threading.Lock()

    def mark(self, frame: Any, origins: Callable[[], Origins]) -> None:
        """Remember where a frame's columns come from; `origins` is asked when someone asks."""
        token = uuid.uuid4().hex
        frame.attrs[_ATTRIBUTE] = token
        with self._lock:
            self._known[token] = _once(origins)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)

    def knows(self, frame: Any) -> bool:
        """Tell whether a frame was marked."""
        return self._find(frame) is not None

    def asking(self, frame: Any) -> Callable[[], Origins]:
        """Return what tells a frame's origins later, when the frame may be another already."""
        return self._find(frame) or dict

    def origins(self, frame: Any) -> Origins:
        """Return where a frame's columns come from; nothing for a frame nobody marked."""
        return self.asking(frame)()

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
            found = origins()
            if wanted and wanted <= found.keys():
                return found
        return None


def made_in_code(origins: Origins, names: Iterable[str]) -> dict[str, Deps]:
    """Return the origins of a frame's columns as they are now.

    What pandas did with them is not seen: a column that was there may have been changed, and a
    new one may be made of any of the others.
    """
    everything: Deps = {}
    for name, deps in origins.items():
        if name != ROWS:
            merge(everything, direct(deps, DependencyKind.TRANSFORMATION))
    found = {name: _inferred(origins.get(name, everything)) for name in names}
    return {**found, ROWS: origins.get(ROWS, {})}


def _inferred(deps: Deps) -> Deps:
    return {key: max(sure, Certainty.INFERRED) for key, sure in deps.items()}


def _once(ask: Callable[[], Origins]) -> Callable[[], Origins]:
    answer: list[Origins] = []
    lock = threading.Lock()

    def asked() -> Origins:
        with lock:
            if not answer:
                answer.append(ask())
            return answer[0]

    return asked


def render_frame_write(
    file: DatasetId, origins: Origins, job: JobId, run: str, run_facets: Facets
) -> Event:
    """Return the event of a frame that was written to a file."""
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
