"""The graph at two moments, compared: what came, what went, and what is made in another way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.contract.test_store import location, opened, postgres_schema, store
from tests.openlineage import encode
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, moment, output, run, schema, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError
from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.store import Store

__all__ = ["location", "opened", "postgres_schema", "store"]  # fixtures

DB = "postgres://db:5432:"
EARLY = run(
    "build",
    0,
    reads=["raw"],
    writes=[output("mart", {**schema(id="int", old="text"), **derives(id="raw.id")})],
)
LATE = [
    *run(
        "build",
        50,
        reads=["raw"],
        writes=[output("mart", {**schema(id="bigint", new="text"), **derives(id="#raw.id")})],
    ),
    *run("report", 50, reads=["mart"], writes=[output("board")]),
]


def said(lineage: Lineage, start: str, end: str) -> list[str]:
    found = lineage.diff(start, end).differences
    return [d.sentence.replace(f"dataset:{DB}", "") for d in found]


def test_nodes_columns_edges_and_kinds_are_compared(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in [*EARLY, *LATE]])
    found = lineage.diff(moment(1), moment(51))
    listed = {
        (d.change, d.kind, d.entity.removeprefix("dataset:" + DB).removeprefix("column:" + DB))
        for d in found.differences
    }
    assert listed == {
        ("added", "dataset", "board"),
        ("added", "job", "job:etl:report"),
        ("changed", "column", "mart:id"),
        ("removed", "column", "mart:old"),
        ("added", "column", "mart:new"),
        ("added", "edge", "job:etl:report"),
        ("added", "edge", "board"),
        ("changed", "column_edge", "mart:id"),
    }
    kinds = next(d for d in found.differences if d.kind == "column_edge")
    assert (kinds.old, kinds.new) == ("IDENTITY", "AGGREGATION")
    types = next(d for d in found.differences if d.entity.endswith("mart:id") and d.old == "int")
    assert types.sentence.endswith("changed its type from int to bigint")


def test_the_same_moment_has_no_differences(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in [*EARLY, *LATE]])
    assert said(lineage, moment(51), moment(51)) == []
    before_all = lineage.diff(moment(-9), moment(1)).differences
    assert {d.change for d in before_all} == {"added"}


def test_edges_that_recent_runs_do_not_confirm_are_removed(tmp_path: Path) -> None:
    later = run("build", 50, reads=["other"], writes=[output("mart")])
    with told(tmp_path, [*EARLY, *later]) as lineage:
        sentences = said(lineage, moment(1), moment(51))
    assert "job:etl:build no longer reads raw" in sentences
    assert "job:etl:build now reads other" in sentences


def test_what_was_forgotten_between_the_moments_is_removed(tmp_path: Path) -> None:
    with told(tmp_path, [*EARLY, *LATE]) as lineage:
        lineage.retention.forget("job:etl:report")
        found = lineage.diff(moment(51)).differences
        changes = {(d.change, d.kind, d.entity) for d in found}
        assert ("removed", "job", "job:etl:report") in changes
        assert any(d.kind == "edge" and d.change == "removed" for d in found)
        with pytest.raises(InvalidRequestError, match="later than"):
            lineage.diff(moment(51), moment(1))


def test_the_command_and_the_route(tmp_path: Path) -> None:
    with (
        told(tmp_path / ".downriver", [*EARLY, *LATE]) as lineage,
        TestClient(build_app(lineage)) as client,
    ):
        found = client.get("/v1/diff", params={"from": moment(1), "to": moment(51)}).json()
        assert (found["from"], found["complete"]) == (moment(1), True)
        assert client.get("/v1/diff").status_code == 400
        assert client.get("/v1/diff", params={"from": "soon"}).status_code == 400
    done = downriver("diff", "--from", moment(1), "--to", moment(51), cwd=tmp_path)
    assert (done.returncode, "+ report now writes board" in done.stdout) == (0, True)
    printed = downriver("diff", "--from", moment(1), "--to", moment(51), "--json", cwd=tmp_path)
    assert json.loads(printed.stdout)["differences"] == found["differences"]
    assert downriver("diff", "--from", "soon", cwd=tmp_path).returncode == 2
