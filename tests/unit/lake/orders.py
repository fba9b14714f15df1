"""A small lake: a job sums orders into totals; it succeeds, fails, and succeeds again."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
from tests.openlineage import Json, dataset, encode, parsed, run_event, schema, source
from tests.unit.lake.dumps import dump
from tests.unit.openlineage.test_order_free import catalog

from downriver.openlineage.facets.label_statement import render_tag_facets
from downriver.store import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from downriver.lake.runner import Lake

LINEAGE = {
    "fields": {
        "total": {
            "inputFields": [
                source("orders", "amount", {"type": "DIRECT", "subtype": "AGGREGATION"})
            ]
        }
    }
}
ORDERS = dataset(
    "orders",
    {
        "schema": schema(id="int", amount="double"),
        "tags": {"tags": [{"key": "PII", "value": "true", "field": "Amount"}]},
    },
)
TOTALS = dataset(
    "totals",
    {
        "schema": schema(total="double"),
        "columnLineage": LINEAGE,
        "tags": {"tags": [{"key": "pii", "value": "no"}, {"key": "certified", "value": ""}]},
    },
    outputFacets={
        "outputStatistics": {"rowCount": 7, "size": 70},
        "dataQualityAssertions": {
            "assertions": [{"assertion": "not_null", "column": "total", "success": False}]
        },
    },
)
FIRST = [
    run_event("sum", "1", "START", "2026-01-01T00:00:00Z", inputs=[ORDERS]),
    run_event("sum", "1", "COMPLETE", "2026-01-01T00:01:00Z", inputs=[ORDERS], outputs=[TOTALS]),
    run_event(
        "sum",
        "2",
        "FAIL",
        "2026-01-02T00:01:00Z",
        inputs=[ORDERS],
        run_facets={"errorMessage": {"message": "disk full", "programmingLanguage": "sql"}},
    ),
]
WIDER = dataset("orders", {"schema": schema(id="int", amount="double", note="text")})
SECOND = [
    run_event("sum", "3", "COMPLETE", "2026-03-01T00:00:00Z", inputs=[WIDER]),
    run_event("report", "1", "COMPLETE", "2026-03-01T01:00:00Z", inputs=[dataset("totals")]),
]


def stated_tag(tag: str, field: str = "", *, present: bool = True) -> Json:
    facets = render_tag_facets(tag, field, present=present)
    return {name: msgspec.json.decode(body) for name, body in facets.items()}


def make(place: Path, spark: Any, **options: Any) -> Lake:
    from downriver.lake.runner import Lake

    return Lake(str(place), spark, **options)


def lines(*events: Json) -> bytes:
    return b"".join(encode(event) + b"\n" for event in events)


def facts_of(lake: Lake, snapshot: Any = None) -> dict:
    found = lake.tables(snapshot).items()
    return dump({name.removeprefix("facts."): t for name, t in found if name.startswith("facts.")})


def server_catalog(folder: Path, events: Sequence[Json] = ()) -> dict:
    """Return the catalog of a server that got these events; all of them unless some are given."""
    told = [parsed(event) for event in events or [*FIRST, *SECOND]]
    with closing(open_store(str(folder))) as store:
        return catalog(store, [told])


def rows(lake: Lake, sql: str) -> list[tuple]:
    return [tuple(row) for row in lake.query(sql).collect()]
