"""Generated OpenLineage events of a warehouse, with reruns, retries, duplicates and disorder."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

_NAMESPACE = "snowflake://acme"
_LAYERS = 8
_COLUMNS = 20
_READ_PER_COLUMN = 3  # input columns of a computed column
_START = 1_767_225_600  # 2026-01-01
_DAY = 86_400


class Warehouse:
    """Datasets in layers, each written by a job that reads up to three of the layer above."""

    def __init__(self, datasets: int, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._layers = [list(range(at, datasets, _LAYERS)) for at in range(_LAYERS)]
        self._inputs = {
            dataset: self._random.sample(above, min(len(above), self._random.randint(1, 3)))
            for above, layer in zip(self._layers, self._layers[1:], strict=False)
            for dataset in layer
        }
        self._templates = {dataset: self._template(dataset) for dataset in self._inputs}
        self._size = datasets

    def add_datasets(self, count: int) -> Iterator[bytes]:
        """Add datasets to the last layer, and yield the events of the first run of each."""
        *_, above, layer = self._layers
        for dataset in range(self._size, self._size + count):
            number = dataset * _LAYERS + _LAYERS - 1  # a number of the last layer
            self._inputs[number] = self._random.sample(above, min(len(above), 2))
            self._templates[number] = self._template(number)
            layer.append(number)
            yield from self._run(number, 30)
        self._size += count

    @property
    def column_edges(self) -> int:
        """The number of column edges of all jobs."""
        return sum(_COLUMNS * _READ_PER_COLUMN * len(i) for i in self._inputs.values())

    def events(self, count: int) -> Iterator[bytes]:
        """Yield events of several days of runs: some late, some failed, some sent twice."""
        jobs = list(self._inputs)
        waiting: list[bytes] = []
        sent = 0
        for number in range(count):
            dataset = jobs[number % len(jobs)]
            day = number // len(jobs)
            for event in self._run(dataset, day):
                waiting.append(event)
                if self._random.random() < 0.02:
                    waiting.append(event)
            while len(waiting) > 50:  # disorder within a window
                yield waiting.pop(self._random.randrange(len(waiting)))
                sent += 1
                if sent == count:
                    return

    def _run(self, dataset: int, day: int) -> Iterator[bytes]:
        failed = self._random.random() < 0.05
        for attempt in range(1 + failed):
            run = f"{dataset:08d}-{day:04d}-4000-8000-{attempt:012d}"
            began = _START + day * _DAY + dataset % 3600 + attempt * 600
            yield self._event(dataset, run, "START", began)
            for minute in (1, 2):
                yield self._event(dataset, run, "RUNNING", began + 20 * minute)
            end = "FAIL" if failed and attempt == 0 else "COMPLETE"
            yield self._event(dataset, run, end, began + 60)

    def _event(self, dataset: int, run: str, state: str, at: int) -> bytes:
        moment = _render(at)
        text = self._templates[dataset] if state in ("COMPLETE", "FAIL") else _bare(dataset)
        return (
            text.replace("@RUN@", run).replace("@STATE@", state).replace("@TIME@", moment)
        ).encode()

    def _template(self, dataset: int) -> str:
        inputs = self._inputs[dataset]
        fields = {
            _column(at): {
                "inputFields": [
                    {
                        "namespace": _NAMESPACE,
                        "name": _name(source),
                        "field": _column(at + step),
                        "transformations": [{"type": "DIRECT", "subtype": "TRANSFORMATION"}],
                    }
                    for source in inputs
                    for step in range(_READ_PER_COLUMN)
                ]
            }
            for at in range(_COLUMNS)
        }
        output = _dataset(dataset)
        output["facets"]["columnLineage"] = {"fields": fields}
        output["outputFacets"] = {"outputStatistics": {"rowCount": dataset * 10}}
        return json.dumps(
            _envelope(dataset) | {"inputs": [_dataset(i) for i in inputs], "outputs": [output]},
            separators=(",", ":"),
        )


def _bare(dataset: int) -> str:
    return json.dumps(_envelope(dataset), separators=(",", ":"))


def _envelope(dataset: int) -> Json:
    return {
        "eventType": "@STATE@",
        "eventTime": "@TIME@",
        "producer": "https://acme.example/bench",
        "run": {"runId": "@RUN@"},
        "job": {"namespace": "bench", "name": f"build.{_name(dataset)}"},
    }


def _dataset(number: int) -> Json:
    fields = [{"name": _column(at), "type": "varchar"} for at in range(_COLUMNS)]
    return {
        "namespace": _NAMESPACE,
        "name": _name(number),
        "facets": {"schema": {"fields": fields}},
    }


def _name(number: int) -> str:
    return f"db.layer{number % _LAYERS}.table_{number:06d}"


def _column(number: int) -> str:
    return f"column_{number % _COLUMNS:02d}"


def _render(at: int) -> str:
    return dt.datetime.fromtimestamp(at, dt.timezone.utc).isoformat().replace("+00:00", "Z")
