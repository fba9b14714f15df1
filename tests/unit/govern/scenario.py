"""Weeks of events in a few lines: jobs that run daily, with statistics of their data."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.openlineage import dataset, encode, run_event

from downriver.openlineage.wire import parse_time
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Json = dict[str, Any]
START = dt.datetime(2026, 1, 5, 2, tzinfo=dt.timezone.utc)  # a Monday


def moment(day: float, hour: float = 0) -> str:
    """Return the time so many days and hours after the start of the scenario."""
    return (START + dt.timedelta(days=day, hours=hour)).isoformat().replace("+00:00", "Z")


def micros(day: float, hour: float = 0) -> int:
    return parse_time(moment(day, hour), "day")


def schema(**types: str) -> Json:
    return {"schema": {"fields": [{"name": n, "type": t} for n, t in types.items()]}}


def owned_by(*names: str) -> Json:
    return {"ownership": {"owners": [{"name": name} for name in names]}}


def tagged(*tags: str, **columns: str) -> Json:
    whole = [{"key": tag, "value": "true"} for tag in tags]
    return {"tags": {"tags": [*whole, *({"key": t, "field": c} for c, t in columns.items())]}}


def derives(**fields: Sequence[str] | str) -> Json:
    """Return column lineage: `total="orders.amount"`; a `!` before a source masks it."""
    return {
        "columnLineage": {
            "fields": {
                name: {"inputFields": [_source(s) for s in ([of] if isinstance(of, str) else of)]}
                for name, of in fields.items()
            }
        }
    }


def _source(text: str) -> Json:
    name, _, field = text.lstrip("!#").rpartition(".")
    how = {"type": "DIRECT", "subtype": "AGGREGATION" if text.startswith("#") else "IDENTITY"}
    masked = {**how, "subtype": "TRANSFORMATION", "masking": True}
    return {
        "namespace": dataset(name)["namespace"],
        "name": name,
        "field": field,
        "transformations": [masked if text.startswith("!") else how],
    }


def rows(count: float, **columns: Json) -> Json:
    """Return the statistics of an output; columns as in dataQualityMetrics."""
    found: Json = {"outputStatistics": {"rowCount": count}}
    if columns:
        found["dataQualityMetrics"] = {"rowCount": count, "columnMetrics": columns}
    return found


def output(name: str, facets: Json | None = None, measured: Json | None = None) -> Json:
    return dataset(name, facets, **({"outputFacets": measured} if measured else {}))


def run(
    job: str,
    day: float,
    *,
    reads: Sequence[str] = (),
    writes: Sequence[Json] = (),
    state: str = "COMPLETE",
    error: str = "",
    takes: float = 0.2,
    job_facets: Json | None = None,
    run_facets: Json | None = None,
) -> list[Json]:
    """Return the events of one run that began on a day."""
    name = f"{job}-{day}"
    failed = {"errorMessage": {"message": error}} if error else {}
    return [
        run_event(job, name, "START", moment(day), run_facets=run_facets),
        run_event(
            job,
            name,
            state,
            moment(day, takes),
            inputs=[r if isinstance(r, dict) else dataset(r) for r in reads],
            outputs=list(writes),
            job_facets=job_facets,
            run_facets={**(run_facets or {}), **failed} or None,
        ),
    ]


@contextmanager
def told(folder: Path, events: Sequence[Json]) -> Iterator[Lineage]:
    """Open a store with these events."""
    with Lineage.open(str(folder)) as lineage:
        lineage.ingest([encode(event) for event in events])
        yield lineage
