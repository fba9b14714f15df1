"""A generated catalog for reads: teams and layers as in `bench.warehouse`, with labels and columns.

A dataset has ten columns, a schema, column lineage from its inputs, a writer with a job type, and
in part tags, owners and a second name. The same size gives the same events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from bench.warehouse import NAMESPACE, make_warehouse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.service import Lineage

COLUMNS_EACH = 10
_TEAM = 500  # datasets
_BATCH = 2_000
_SUBJECTS = ("orders", "customers", "payments", "sessions", "invoices", "stock", "returns", "leads")
_GRAINS = ("daily", "hourly", "history", "latest", "by_region", "by_channel")
_FIELDS = ("amount", "status", "country", "email", "total", "score", "label", "source")
_INTEGRATIONS = ("DBT", "SPARK", "AIRFLOW")


class LargeCatalog:
    """The datasets and jobs. Datasets are numbered from 1."""

    def __init__(self, datasets: int) -> None:
        self.datasets = datasets
        warehouse = make_warehouse(datasets, 0)
        counts = np.bincount(warehouse.read_for, minlength=datasets + 1)
        self._inputs = np.split(warehouse.reads_from, np.cumsum(counts)[:-1])
        self.readers = np.bincount(warehouse.reads_from, minlength=datasets + 1)

    def name(self, number: int) -> str:
        """Return the name of a dataset."""
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        grain = _GRAINS[number // 8 % len(_GRAINS)]
        return f"team_{number % _TEAM:03d}.{subject}_{grain}_{number:06d}"

    def fields(self, number: int) -> list[str]:
        """Return the columns of a dataset: some common columns, and some of its own subject."""
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        own = [f"{subject}_{field}_{number % 97:02d}" for field in _FIELDS[: COLUMNS_EACH - 3]]
        return ["id", "created_at", "updated_at", *own]

    def event(self, number: int, run: int = 0) -> bytes:
        """Return the run that wrote a dataset; another run of the same job with another `run`."""
        inputs = self._inputs[number].tolist()
        fields = self.fields(number)
        event = {
            "eventType": "COMPLETE",
            "eventTime": f"2026-01-{number % 28 + 1:02d}T00:{run % 60:02d}:00Z",
            "run": {"runId": f"00000000-0000-0000-{run % 10_000:04d}-{number:012d}"},
            "job": {
                "namespace": "scheduler",
                "name": f"build.{self.name(number)}",
                "facets": {
                    "jobType": {"integration": _INTEGRATIONS[number % 3], "processingType": "BATCH"}
                },
            },
            "inputs": [self._dataset(source) for source in inputs],
            "outputs": [self._dataset(number) | {"facets": self._facets(number, inputs, fields)}],
        }
        return msgspec.json.encode(event)

    def events(self) -> Iterator[bytes]:
        """Yield an event for every dataset."""
        return (self.event(number) for number in range(1, self.datasets + 1))

    def ingest_into(self, lineage: Lineage) -> None:
        """Write all events into a store."""
        batch: list[bytes] = []
        for event in self.events():
            batch.append(event)
            if len(batch) == _BATCH:
                lineage.ingest(batch)
                batch = []
        lineage.ingest(batch)

    def _dataset(self, number: int) -> dict[str, Any]:
        return {"namespace": NAMESPACE, "name": self.name(number)}

    def _facets(self, number: int, inputs: list[int], fields: list[str]) -> dict[str, Any]:
        facets: dict[str, Any] = {
            "schema": {"fields": [{"name": name, "type": "VARCHAR"} for name in fields]},
            "ownership": {"owners": [{"name": f"team:{number % _TEAM:03d}"}]},
        }
        if inputs:
            facets["columnLineage"] = {
                "fields": {
                    name: {"inputFields": [self._input_field(inputs[at % len(inputs)], at)]}
                    for at, name in enumerate(fields)
                }
            }
        if number % 10 == 0:
            tags = [{"key": "certified"}, {"key": "pii", "field": fields[6]}]
            facets["tags"] = {"tags": [*tags, {"key": f"domain_{number % 50}"}]}
        if number % 20 == 0:
            path = {"namespace": "s3://lake", "name": f"tables/{number:06d}", "type": "LOCATION"}
            facets["symlinks"] = {"identifiers": [path]}
        return facets

    def _input_field(self, source: int, at: int) -> dict[str, Any]:
        field = self.fields(source)[at]
        transformations = [{"type": "DIRECT", "subtype": "IDENTITY"}]
        return self._dataset(source) | {"field": field, "transformations": transformations}
