"""OpenLineage events of the size that real producers send: about 19 KB, 60 column edges."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

INPUTS, OUTPUTS, COLUMNS = 3, 2, 30

# Placeholders have the width of their values, so that all events have the same size.
_TAG = "@TAG@@@@"
_RUN = "00000000-0000-0000-0000-000000000000"
_TIME = "2026-01-01T00:00:00.000000Z"
_START = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)

_NAMESPACE = "postgres://wh:5432"
_PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/integration/dbt"
_SPEC = "https://openlineage.io/spec"
_WORDS = ("customer", "order", "amount", "status", "country", "created")
_TYPES = ("BIGINT", "VARCHAR", "DECIMAL(18,2)", "VARCHAR", "VARCHAR", "TIMESTAMP")


class Events:
    """Events of the same shape; each `number` has its own job and datasets."""

    def __init__(self, columns: int = COLUMNS) -> None:
        self._template = json.dumps(_event(columns), separators=(",", ":")).encode()
        self._runs = 0

    def first_seen(self, number: int) -> bytes:
        """Return the first event of the job with this number: its datasets and facets are new."""
        return self._run_of(self._template.replace(_TAG.encode(), b"%08d" % number))

    def first_seen_from(self, number: int) -> Iterator[bytes]:
        """Yield an infinite sequence of first events of jobs."""
        while True:
            yield self.first_seen(number)
            number += 1

    def repeat(self, event: bytes) -> bytes:
        """Return the next run of the same job, with unchanged facets."""
        at = event.index(b'"runId":"') + len(b'"runId":"')
        known_run = event[at : at + len(_RUN)]
        at = event.index(b'"eventTime":"') + len(b'"eventTime":"')
        known_time = event[at : at + len(_TIME)]
        blank = event.replace(known_run, _RUN.encode(), 1).replace(known_time, _TIME.encode(), 1)
        return self._run_of(blank)

    def _run_of(self, event: bytes) -> bytes:
        self._runs += 1
        time = (_START + dt.timedelta(microseconds=self._runs)).isoformat(timespec="microseconds")
        run = str(uuid.UUID(int=self._runs))
        event = event.replace(_TIME.encode(), time.replace("+00:00", "Z").encode(), 1)
        return event.replace(_RUN.encode(), run.encode(), 1)


def _event(columns: int) -> dict[str, Any]:
    return {
        "eventTime": _TIME,
        "eventType": "COMPLETE",
        "run": {"runId": _RUN},
        "job": {"namespace": "dbt://warehouse", "name": f"sales.mart_{_TAG}"},
        "inputs": [_dataset(f"sales.public.in{n}_{_TAG}", columns) for n in range(INPUTS)],
        "outputs": [_output(n, columns) for n in range(OUTPUTS)],
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }


def _dataset(name: str, columns: int) -> dict[str, Any]:
    fields = [{"name": _field(k), "type": _TYPES[k % 6]} for k in range(columns)]
    fields[0]["description"] = f"Identifies a row of {name}"
    return {
        "namespace": _NAMESPACE,
        "name": name,
        "facets": {"schema": _facet("1-1-1/SchemaDatasetFacet.json", fields)},
    }


def _output(number: int, columns: int) -> dict[str, Any]:
    dataset = _dataset(f"sales.public.out{number}_{_TAG}", columns)
    fields = {
        _field(k): {"inputFields": [_input_field((k + number) % columns)]} for k in range(columns)
    }
    facet = _facet("1-2-0/ColumnLineageDatasetFacet.json", fields)
    dataset["facets"]["columnLineage"] = facet
    return dataset


def _input_field(number: int) -> dict[str, Any]:
    subtype = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")[number % 3]
    return {
        "namespace": _NAMESPACE,
        "name": f"sales.public.in{number % INPUTS}_{_TAG}",
        "field": _field(number),
        "transformations": [{"type": "DIRECT", "subtype": subtype}],
    }


def _facet(schema: str, fields: object) -> dict[str, Any]:
    return {"_producer": _PRODUCER, "_schemaURL": f"{_SPEC}/facets/{schema}", "fields": fields}


def _field(number: int) -> str:
    return f"{_WORDS[number % len(_WORDS)]}_{number:02d}"
