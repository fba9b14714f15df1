"""Impact answers per second, on a graph of many models.

`python -m bench.impact_speed [--models 10000] [--changes 3000]`. It generates layers of SQL models:
each selects by name or by star from one to three others, filters, joins and groups. The first query
about a part of the graph parses the SQL there, and later queries reuse it. Both times are reported.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.model.changes import Change, ColumnAdd, ColumnDrop, ColumnRename, TypeChange
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAYERS = 8
_SOURCES_EACH = 20  # models per source table
_COLUMNS = 12
_BATCH = 2_000


class Company:
    """Generated sources and models, the same for the same seed."""

    def __init__(self, models: int, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self.sources = [f"raw.s{number}" for number in range(max(models // _SOURCES_EACH, 1))]
        self.columns = {
            name: ["id", *(f"c{at}" for at in range(_COLUMNS - 1))] for name in self.sources
        }
        self.models: list[tuple[str, list[str], str]] = []
        for layer in range(_LAYERS):
            below = list(self.columns)  # a model may read any lower layer, as in real projects
            size = models // _LAYERS + (layer < models % _LAYERS)
            self.models += [self._model(f"mart.m{layer}_{at}", at, below) for at in range(size)]

    def _model(self, name: str, number: int, below: list[str]) -> tuple[str, list[str], str]:
        read = self._random.sample(below, self._random.choice((1, 1, 2, 3)))
        if len(read) == 1 and self._random.random() < 0.3:
            self.columns[name] = list(self.columns[read[0]])
            return name, read, f"select * from {read[0]} where id > {number}"
        items, columns = ["a.id"], ["id"]
        for at, table in enumerate(read):
            others = [column for column in self.columns[table] if column != "id"]
            for column in self._random.sample(others, min(4, len(others))):
                alias = f"k{len(columns)}"
                items.append(f"{'abc'[at]}.{column} as {alias}")
                columns.append(alias)
        self.columns[name] = columns
        joins = "".join(f" join {t} {'bc'[at]} using (id)" for at, t in enumerate(read[1:]))
        return name, read, f"select {', '.join(items)} from {read[0]} a{joins} where a.id > 0"

    def events(self) -> Iterator[bytes]:
        """Yield the schema of every source, and every model with its SQL."""
        for source in self.sources:
            fields = [{"name": column, "type": "integer"} for column in self.columns[source]]
            yield _event("DatasetEvent", dataset=_dataset(source, schema={"fields": fields}))
        for name, read, sql in self.models:
            job = {
                "namespace": "bench",
                "name": f"job.{name}",
                "facets": {"sql": _facet(query=f"create table {name} as {sql}", dialect="duckdb")},
            }
            yield _event(
                "JobEvent", job=job, inputs=[*map(_dataset, read)], outputs=[_dataset(name)]
            )

    def changes(self, count: int) -> list[Change]:
        """Return changes to random columns of the graph."""
        tables = list(self.columns)
        found: list[Change] = []
        for _ in range(count):
            table = self._random.choice(tables)
            column = self._random.choice(self.columns[table])
            dataset = f"dataset:bench:{table}"
            found.append(
                self._random.choice(
                    (
                        ColumnRename(dataset=dataset, column=column, to="renamed"),
                        ColumnDrop(dataset=dataset, column=column),
                        TypeChange(dataset=dataset, column=column, to="varchar"),
                        ColumnAdd(dataset=dataset, column="added"),
                    )
                )
            )
        return found


def _facet(**content: Any) -> dict[str, Any]:
    return {"_producer": "https://bench", "_schemaURL": "https://bench", **content}


def _dataset(name: str, **facets: dict[str, Any]) -> dict[str, Any]:
    rendered = {key: _facet(**content) for key, content in facets.items()}
    return {"namespace": "bench", "name": name, "facets": rendered}


def _event(kind: str, **content: Any) -> bytes:
    url = f"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/{kind}"
    event = {"eventTime": "2026-01-01T00:00:00Z", "producer": "https://bench", "schemaURL": url}
    return msgspec.json.encode({**event, **content})


def measure(models: int, changes: int) -> Iterator[str]:
    """Yield the results line by line."""
    company = Company(models)
    with tempfile.TemporaryDirectory() as folder, Lineage.open(folder) as lineage:
        events = list(company.events())
        for at in range(0, len(events), _BATCH):
            lineage.ingest(events[at : at + _BATCH])
        asked = company.changes(changes)
        yield f"{models:,} models, {len(company.sources):,} sources, {changes:,} changes"
        for name in ("first", "again"):
            begin, busy = time.perf_counter(), time.process_time()
            affected = sum(len(lineage.impact([change]).effects) for change in asked)
            seconds, busy = time.perf_counter() - begin, time.process_time() - busy
            yield (
                f"{name}: {changes / seconds:,.0f} changes/s, {changes / busy:,.0f} a CPU second, "
                f"{affected / changes:.1f} effects each"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=3_000)
    arguments = parser.parse_args()
    for line in measure(arguments.models, arguments.changes):
        print(line, flush=True)


if __name__ == "__main__":
    main()
