"""People set and remove tags; what producers send does not undo it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset_event, encode
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, output, run, schema, tagged, told
from tests.unit.http.test_app import TestClient

from downriver.errors import EntityNotFoundError
from downriver.govern.tag_file import DeclaredTag
from downriver.http import build_app

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = [
    *run("sum", 0, reads=["raw"], writes=[
        output("mart", {**schema(n="int"), **derives(n="raw.id"), **tagged("golden")})
    ]),
    dataset_event("raw", schema(id="int")),
]  # fmt: skip


def test_tags_are_set_once_and_outrank_those_of_producers(tmp_path: Path) -> None:
    wanted = [
        DeclaredTag("raw.id", "pii", True),
        DeclaredTag("mart", "golden", False),
        DeclaredTag("mart", "domain:sales", True),
        DeclaredTag("job:etl:sum", "tier:1", True),
    ]
    with told(tmp_path, EVENTS) as lineage:
        before = lineage.store.state()
        assert len(lineage.tag(wanted, done=False).changes) == 4
        assert lineage.store.state() == before
        assert len(lineage.tag(wanted).changes) == 4
        assert lineage.tag(wanted).changes == []
        lineage.ingest([encode(event) for event in run("sum", 1, reads=["raw"], writes=[
            output("mart", tagged("golden"))])])  # fmt: skip
        assert lineage.govern.certified_paths().datasets == []
        reach = lineage.govern.tag_reach("pii")
        assert [column.column.rpartition(":")[2] for column in reach.reached] == ["n"]
        assert len(lineage.govern.tag_reach("domain:sales").datasets) == 1
        with pytest.raises(EntityNotFoundError):
            lineage.tag([DeclaredTag("nowhere", "pii", True)])


def test_tags_through_the_command_line_and_http(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    (tmp_path / "tags.yml").write_text(
        "mart: [certified, domain=Sales, -golden]\nraw.id:\n  - pii\n"
    )
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    plan = downriver("tags", "apply", "tags.yml", "--dry-run", cwd=tmp_path).stdout
    assert plan.endswith("4 of 4 tags would change\n")
    assert "mart  domain:sales\n" in plan
    assert downriver("tags", "apply", "tags.yml", cwd=tmp_path).stdout.endswith(
        "4 of 4 tags changed\n"
    )
    assert downriver("tags", "apply", "tags.yml", cwd=tmp_path).stdout == "0 of 4 tags changed\n"
    unset = downriver("tag", "unset", "mart", "certified", "--json", cwd=tmp_path)
    assert [c["present"] for c in json.loads(unset.stdout)["changes"]] == [False]
    assert "1 of 1 tag changed" in downriver("tag", "set", "mart", "golden", cwd=tmp_path).stdout
    for bad in ("mart: certified\n", "[1]\n", "mart: ['=x']\n", "a: [\n"):
        (tmp_path / "bad.yml").write_text(bad)
        assert downriver("tags", "apply", "bad.yml", cwd=tmp_path).returncode == 2
    with told(tmp_path / "http", EVENTS) as lineage, TestClient(build_app(lineage)) as client:
        body = {"entity": "raw.id", "tags": ["pii"], "remove": ["other"]}
        answer = client.post("/v1/tags", json=body).json()
        assert ([c["tag"] for c in answer["changes"]], answer["declared"]) == (["pii"], 2)
        assert len(client.get("/v1/tags").json()["tagged"]) == 1
        assert client.post("/v1/tags", json={"entity": "raw.id"}).status_code == 400
        assert client.post("/v1/tags", json={"entity": "x", "tags": ["a"]}).status_code == 404
