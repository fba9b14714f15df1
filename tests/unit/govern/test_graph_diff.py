"""The graph at two moments, compared: additions, removals, and changed derivations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.test_store import location, opened, postgres_schema, store
from tests.openlineage import dataset_event, encode
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

Json = dict[str, Any]
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


def renamed(old: str, new: str, day: float) -> Json:
    previous = {"namespace": DB.rstrip(":"), "name": old}
    change = {"lifecycleStateChange": "RENAME", "previousIdentifier": previous}
    return dataset_event(new, {"lifecycleStateChange": change}, moment(day))


def symlinked(name: str, *others: str, day: float) -> Json:
    identifiers = [
        {"namespace": DB.rstrip(":"), "name": other, "type": "TABLE"} for other in others
    ]
    return dataset_event(name, {"symlinks": {"identifiers": identifiers}}, moment(day))


LOADS = run(
    "load", 0, reads=["src"], writes=[output("old", {**schema(id="int"), **derives(id="src.id")})]
)


def test_a_rename_is_one_difference(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in [*LOADS, renamed("old", "new", 5)]])
    found = lineage.diff(moment(1), moment(6))
    assert [d.sentence.replace(f"dataset:{DB}", "") for d in found.differences] == [
        "old was renamed to new"
    ]
    (difference,) = found.differences
    assert (difference.change, difference.kind) == ("changed", "dataset")
    assert (difference.source, difference.entity) == (f"dataset:{DB}old", f"dataset:{DB}new")
    assert said(lineage, moment(6), moment(7)) == []


def test_changes_beside_a_rename_are_compared_under_the_new_name(store: Store) -> None:
    columns = {**schema(id="bigint"), **derives(id="#src.id")}
    later = [
        renamed("old", "new", 5),
        *run("load", 50, reads=["src"], writes=[output("new", columns)]),
        *run("report", 50, reads=["new"], writes=[output("board")]),
    ]
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in [*LOADS, *later]])
    sentences = said(lineage, moment(1), moment(51))
    assert sentences[0] == "old was renamed to new"
    assert "column id of new changed its type from int to bigint" in sentences
    assert "job:etl:report now reads new" in sentences
    assert not any("load" in s and ("now" in s or "longer" in s) for s in sentences)
    changed = next(s for s in sentences if "IDENTITY" in s)
    assert changed.startswith(f"column:{DB}new:id, derived from column:{DB}src:id")


def test_names_that_symlinks_add_and_remove_are_differences(store: Store) -> None:
    events = [
        *LOADS,
        *run("report", 0, reads=["view"], writes=[output("board")]),
        symlinked("old", "view", day=5),
        symlinked("old", day=9),
    ]
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in events])
    assert said(lineage, moment(1), moment(6)) == ["old is now another name of view"]
    parted = said(lineage, moment(6), moment(10))
    assert parted[0] == "old is no longer another name of view"
    assert {"job:etl:load now writes old", "job:etl:load no longer writes view"} <= {*parted}
    assert not any("added" in sentence or "removed" in sentence for sentence in parted)
    assert said(lineage, moment(1), moment(10)) == []
    before = lineage.trace("src", as_of=moment(1))
    assert "board" not in [node.name for node in before.nodes]
    joined = lineage.trace("src", as_of=moment(6))
    assert "board" in [node.name for node in joined.nodes]


def test_a_rename_in_the_command_and_the_route(tmp_path: Path) -> None:
    events = [*LOADS, renamed("old", "new", 5)]
    with (
        told(tmp_path / ".downriver", events) as lineage,
        TestClient(build_app(lineage)) as client,
    ):
        found = client.get("/v1/diff", params={"from": moment(1), "to": moment(6)}).json()
        assert [d["entity"] for d in found["differences"]] == [f"dataset:{DB}new"]
        traced = client.get("/v1/trace", params={"entity": "src", "as_of": moment(1)}).json()
        assert [n.get("aliases", []) for n in traced["nodes"] if n["name"] == "old"] == [[]]
    done = downriver("diff", "--from", moment(1), "--to", moment(6), cwd=tmp_path)
    assert "~ old was renamed to new" in done.stdout
    early = downriver("trace", "src", "--as-of", moment(1), cwd=tmp_path).stdout
    late = downriver("trace", "src", "--as-of", moment(6), cwd=tmp_path).stdout
    assert ("old" in early, "new" in early, "new" in late) == (True, False, True)


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
