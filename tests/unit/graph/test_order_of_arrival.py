"""The same events in any order of arrival lead to the same answers, ties included."""

from __future__ import annotations

import random

import msgspec
import pytest
from tests.unit.graph.events import (
    column_lineage,
    copied,
    dataset,
    run_event,
    schema,
    symlinks,
)

from downriver.service import Lineage
from downriver.service.views.search import SearchFilter
from downriver.store.sqlite import SqliteStore

NAMES = ("orders", "raw.orders", "orders_day", "customers", "stock")


def made_events() -> list[bytes]:
    """Make tables that are alike: as many readers, runs at one moment, columns under two names."""
    events = []
    for number, name in enumerate(NAMES):
        facets = {
            "schema": schema("id", f"order_{number}", "total"),
            "columnLineage": column_lineage(total=[copied("source.total")]),
            "tags": {"tags": [{"key": "pii"}, {"key": f"t{number % 2}"}]},
            "ownership": {"owners": [{"name": f"team:{number % 2}"}]},
            "symlinks": symlinks(f"lake/{name}"),
        }
        table = dataset(name, **facets)
        for day in (1, 2):
            events.append(run_event(f"load_{name}", ["source"], [table], day=day, run=f"r{day}"))
            events.append(
                run_event(f"again_{name}", ["source"], [dataset(name)], day=day, run=f"s{day}")
            )
        other = {"schema": schema("id", "path_only"), "ownership": {"owners": [{"name": "lake"}]}}
        events.append(
            run_event(f"read_{name}", [dataset(f"lake/{name}", **other)], [f"report_{name}"], day=2)
        )
    return events


def answers(lineage: Lineage) -> dict[str, bytes]:
    """Ask everything whose order could show the order of arrival."""
    asked = {f"search {text!r}": lineage.search(text) for text in ("", "order", "t")}
    asked["search filtered"] = lineage.search("o", where=SearchFilter(tag="pii"))
    asked["search entities"] = lineage.entities.search("o")
    asked["search owner"] = lineage.search("o", where=SearchFilter(owner="team:*"))
    asked["kpis"] = msgspec.structs.replace(lineage.govern.kpis(), at="")
    asked["most read"] = lineage.entities.most_read(3)
    asked["map"] = lineage.map("namespace")
    for name in (*NAMES, "source", "load_orders"):
        asked[f"entity {name}"] = lineage.entity(name)
        asked[f"trace {name}"] = lineage.trace(name, direction="both")
        asked[f"graph {name}"] = lineage.graph(name)
    asked["column"] = lineage.trace("orders.total", direction="both")
    return {name: msgspec.json.encode(answer) for name, answer in asked.items()}


@pytest.mark.parametrize("seed", range(4))
def test_answers_do_not_depend_on_the_order_of_arrival(tmp_path, seed):
    events = made_events()
    shuffled = random.Random(seed).sample(events, len(events))
    found = []
    for number, ordered in enumerate((events, shuffled)):
        with Lineage(SqliteStore(tmp_path / f"{number}.db")) as lineage:
            for event in ordered:
                lineage.ingest([event])
            found.append(answers(lineage))
    different = [name for name in found[0] if found[0][name] != found[1][name]]
    assert not different, [(found[0][name], found[1][name]) for name in different[:2]]
