"""People set and remove tags; what producers send does not undo it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset_event, encode
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, output, run, schema, tagged, told
from tests.unit.http.test_app import TestClient

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.govern.tag_file import (
    DeclaredDescription,
    DeclaredOwners,
    DeclaredPropagation,
    DeclaredTag,
)
from downriver.http import build_app
from downriver.openlineage.facets.custom import RecordFacet

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.govern.tag_file import Declaration
    from downriver.service import Lineage

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


def labels(lineage: Lineage, entity: str) -> tuple[list[str], list[str], str]:
    node = lineage.entities.details(entity)
    return sorted(node.tags), list(node.owners), node.description


def test_owners_descriptions_domains_and_tiers_are_set_once(tmp_path: Path) -> None:
    wanted = [
        DeclaredOwners("mart", ("ann", "bob", "ann")),
        DeclaredDescription("mart", "Orders per day."),
        DeclaredTag("mart", "domain:sales", True),
        DeclaredTag("mart", "tier:1", True),
        DeclaredOwners("job:etl:sum", ("ann",)),
    ]
    with told(tmp_path, EVENTS) as lineage:
        before = lineage.store.state()
        assert lineage.tag(wanted, done=False).changed == 5
        assert lineage.store.state() == before
        done = lineage.tag(wanted)
        assert [(o.before, o.after) for o in done.owners] == [([], ["ann", "bob"]), ([], ["ann"])]
        assert [(d.before, d.after) for d in done.descriptions] == [("", "Orders per day.")]
        assert lineage.tag(wanted).changed == 0
        assert lineage.store.state().seq == before.seq + 5
        assert labels(lineage, "mart") == (
            ["domain:sales", "golden", "tier:1"], ["ann", "bob"], "Orders per day."
        )  # fmt: skip
        replaced = lineage.tag([DeclaredTag("mart", "domain:finance", True)])
        assert ([(c.tag, c.present) for c in replaced.changes], replaced.changed) == (
            [("domain:finance", True), ("domain:sales", False)], 1
        )  # fmt: skip
        lineage.tag([
            DeclaredTag("mart", "domain", False),
            DeclaredOwners("mart", ()),
            DeclaredDescription("mart", ""),
        ])  # fmt: skip
        assert labels(lineage, "mart") == (["golden", "tier:1"], [], "")
        assert lineage.govern.kpis().owner_coverage.count == 0


@pytest.mark.parametrize(
    "declared",
    [
        [DeclaredOwners("raw.id", ("ann",))],
        [DeclaredDescription("raw.id", "A number.")],
        [DeclaredTag("mart", "tier:1", True), DeclaredTag("mart", "tier:2", True)],
    ],
)
def test_labels_that_an_entity_cannot_have_are_refused(
    tmp_path: Path, declared: list[Declaration]
) -> None:
    with told(tmp_path, EVENTS) as lineage, pytest.raises(InvalidRequestError):
        lineage.tag(declared)


def test_owners_and_descriptions_through_the_command_line_and_http(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    (tmp_path / "tags.yml").write_text(
        "mart:\n  tags: [certified, -golden]\n  owners: [ann]\n  description: Orders.\n"
        "  domain: Sales\n  tier: 1\nraw.id: [pii]\n"
    )
    plan = downriver("tags", "apply", "tags.yml", "--dry-run", cwd=tmp_path).stdout
    assert plan.endswith("7 of 7 labels would change\n")
    assert "~ mart  owners: none → ann\n" in plan
    assert downriver("tags", "apply", "tags.yml", cwd=tmp_path).stdout == plan.replace(
        "would change", "changed"
    )
    assert downriver("tags", "apply", "tags.yml", cwd=tmp_path).stdout == "0 of 7 labels changed\n"
    (tmp_path / "tags.yml").write_text("mart: {owners: [], domain: null, description: }\n")
    done = downriver("tags", "apply", "tags.yml", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["changed"] == 3
    for bad in ("x: {}", "owner: [ann]", "tier: [1]", "owners: ann", "description: [a]", "tags: a"):
        (tmp_path / "bad.yml").write_text(f"mart: {{{bad}}}\n")
        assert downriver("tags", "apply", "bad.yml", cwd=tmp_path).returncode == 2, bad
    done = downriver("tag", "set", "mart", "--owner", "ann", "--owner", "bob", cwd=tmp_path)
    assert "~ mart  owners: none → ann, bob" in done.stdout
    done = downriver("tag", "unset", "mart", "tier", "--owners", "--description", cwd=tmp_path)
    assert done.stdout.endswith("2 of 3 labels changed\n")
    assert downriver("tag", "set", "mart", cwd=tmp_path).returncode == 2
    with told(tmp_path / "http", EVENTS) as lineage, TestClient(build_app(lineage)) as client:
        body = {"entity": "mart", "owners": ["ann"], "description": "Orders."}
        plan = client.post("/v1/tags", json={**body, "dry_run": True}).json()
        assert (plan["changed"], labels(lineage, "mart")[1]) == (2, [])
        assert client.post("/v1/tags", json=body).json()["owners"] == [
            {"entity": "dataset:postgres://db:5432:mart", "before": [], "after": ["ann"]}
        ]
        assert labels(lineage, "mart")[1:] == (["ann"], "Orders.")
        bad = {"entity": "raw.id", "owners": ["ann"]}
        assert client.post("/v1/tags", json=bad).status_code == 400


CHAIN = [
    *run("clean", 0, reads=["raw"], writes=[output("clean", {
        **schema(id="int", email="text", hash="text"),
        **derives(id="raw.id", email="raw.mail", hash="!raw.mail"),
    })]),
    *run("sum", 0, reads=["clean"], writes=[output("mart", {
        **schema(n="int", contact="text"), **derives(n="#clean.id", contact="clean.email"),
    })]),
    dataset_event("raw", schema(id="int", mail="text")),
]  # fmt: skip


def reached_tags(lineage: Lineage, dataset: str) -> dict[str, list[str]]:
    found = lineage.govern.dataset_tags(dataset)
    return {
        column.column.rpartition(":")[2]: [tag.tag for tag in column.reached]
        for column in found.columns
    }


def test_a_tag_declared_so_propagates_to_the_columns_that_it_reaches(tmp_path: Path) -> None:
    with told(tmp_path, CHAIN) as lineage:
        lineage.tag([DeclaredTag("raw.mail", "gdpr", True), DeclaredTag("raw.id", "gdpr", True)])
        assert reached_tags(lineage, "mart") == {"n": [], "contact": []}
        declared = [DeclaredPropagation("gdpr", True)]
        assert lineage.tag(declared, done=False).changed == 1
        assert lineage.tag(declared).propagation[0].tag == "gdpr"
        assert lineage.tag(declared).changed == 0
        # An aggregation and a mask stop it.
        assert reached_tags(lineage, "mart") == {"n": [], "contact": ["gdpr"]}
        assert reached_tags(lineage, "clean") == {"id": ["gdpr"], "email": ["gdpr"], "hash": []}
        assert reached_tags(lineage, "raw") == {"id": [], "mail": []}  # set there, not reached
        assert reached_tags(lineage, "mart.contact") == {"contact": ["gdpr"]}
        [contact, _] = lineage.govern.dataset_tags("mart").columns
        assert [step.rpartition(":")[2] for step in contact.reached[0].path] == [
            "mail", "email", "contact"
        ]  # fmt: skip
        lineage.tag([DeclaredTag("raw.mail", "pii", True)])
        assert reached_tags(lineage, "mart")["contact"] == ["gdpr", "pii"]
        lineage.store.rebuild(lambda done, total: None)
        assert reached_tags(lineage, "mart")["contact"] == ["gdpr", "pii"]
        lineage.tag([DeclaredPropagation("gdpr", False)])
        assert reached_tags(lineage, "mart")["contact"] == ["pii"]
        with pytest.raises(InvalidRequestError, match="always propagates"):
            lineage.tag([DeclaredPropagation("pii", False)])
        with pytest.raises(InvalidRequestError, match="is a job"):
            lineage.govern.dataset_tags("job:etl:sum")


def test_a_tag_that_propagates_keeps_its_registered_description(tmp_path: Path) -> None:
    with told(tmp_path, CHAIN) as lineage:
        lineage.registry.put_tag("gdpr", RecordFacet(description="Personal data."))
        lineage.tag([DeclaredPropagation("gdpr", True)])
        [entry] = [tag for tag in lineage.directory.tags() if tag.name == "gdpr"]
        assert entry.description == "Personal data."
        lineage.registry.put_tag("gdpr", RecordFacet(description="Changed."))
        assert "gdpr" in lineage.govern.dataset_tags("mart").propagates


def test_propagation_through_the_command_line_and_http(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, CHAIN)))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    (tmp_path / "tags.yml").write_text("propagates: [gdpr]\nraw.mail: [gdpr]\n")
    done = downriver("tags", "apply", "tags.yml", cwd=tmp_path)
    assert "+ gdpr  propagates\n2 of 2 tags changed\n" in done.stdout
    assert downriver("tags", "apply", "tags.yml", cwd=tmp_path).stdout == "0 of 2 tags changed\n"
    shown = downriver("tags", "columns", "mart", cwd=tmp_path).stdout
    assert "mart.contact  gdpr (from raw.mail)\n" in shown
    done = downriver("tags", "propagate", "gdpr", "--undo", cwd=tmp_path)
    assert done.stdout == "- gdpr  no longer propagates\n1 of 1 tag changed\n"
    done = downriver("tags", "columns", "mart", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["propagates"] == ["pii"]
    with told(tmp_path / "http", CHAIN) as lineage, TestClient(build_app(lineage)) as client:
        client.post("/v1/tags", json={"entity": "raw.mail", "tags": ["gdpr"]})
        answer = client.post("/v1/tags/propagation", json={"tags": ["gdpr"]})
        assert answer.json()["propagation"] == [{"tag": "gdpr", "propagates": True}]
        found = client.get("/v1/tags/columns", params={"dataset": "mart"}).json()
        reached = [tag["tag"] for column in found["columns"] for tag in column["reached"]]
        assert (reached, found["complete"]) == (["gdpr"], True)
        assert client.post("/v1/tags/propagation", json={}).status_code == 400
        assert client.get("/v1/tags/columns", params={"dataset": "x"}).status_code == 404
