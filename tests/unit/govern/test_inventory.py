"""A table that no event names lowers the coverage when an inventory lists it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import output, run, told
from tests.unit.http.test_app import TestClient

from downriver.govern.inventory import match_tables, split_name
from downriver.http import build_app

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = [
    *run("clean", 0, reads=["shop.raw.orders"], writes=[output("shop.mart.Orders_Clean")]),
    dataset_event("shop.raw.alone"),
]
LISTED = ["raw.orders", "MART.ORDERS_CLEAN", "raw.alone", "raw.nobody"]


def test_listed_tables_without_lineage_are_named(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        found = lineage.govern.inventory_coverage("list", LISTED)
        short = lineage.govern.inventory_coverage("list", ["raw.orders"])
    assert (found.coverage.count, found.coverage.total) == (2, 4)
    assert (found.missing, found.without_edges) == (["raw.nobody"], ["raw.alone"])
    assert found.not_listed == []
    assert [name.rpartition(":")[2] for name in short.not_listed] == ["shop.mart.Orders_Clean"]


@pytest.mark.parametrize(
    ("listed", "datasets", "matched"),
    [
        (["db.s.t"], ["s.t"], {"db.s.t": ["s.t"]}),
        (["s.t"], ["db.s.t"], {"s.t": ["db.s.t"]}),
        (['"S"."T"'], ["s.t"], {'"S"."T"': ["s.t"]}),
        (["s.t"], ["t"], {"s.t": ["t"]}),
        (["a.t", "b.t"], ["t"], {"a.t": [], "b.t": []}),
        (["a.t"], ["b.t"], {"a.t": []}),
        (["x.a.t"], ["y.a.t"], {"x.a.t": []}),
    ],
)
def test_names_match_by_their_last_parts(
    listed: list[str], datasets: list[str], matched: dict[str, list[str]]
) -> None:
    found = match_tables(
        {name: split_name(name) for name in listed}, {name: split_name(name) for name in datasets}
    )
    assert found == matched


def test_an_inventory_through_the_command_line_and_http(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    (tmp_path / "tables.txt").write_text("\n".join(LISTED))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    asked = ("kpis", "--inventory", "tables.txt")
    shown = downriver(*asked, cwd=tmp_path).stdout
    assert "inventory coverage" in shown
    assert "raw.nobody" in shown
    (found,) = json.loads(downriver(*asked, "--json", cwd=tmp_path).stdout)["inventories"]
    assert (found["source"], found["coverage"]["percent"]) == ("tables.txt", 50.0)
    assert downriver("kpis", "--inventory", "none.txt", cwd=tmp_path).returncode == 2
    with told(tmp_path / "http", EVENTS) as lineage, TestClient(build_app(lineage)) as client:
        answer = client.post("/v1/inventory", json={"source": "tables.txt", "tables": LISTED})
        assert (answer.status_code, answer.json()) == (200, found)
        assert client.post("/v1/inventory", json={"tables": []}).status_code in (400, 422)
