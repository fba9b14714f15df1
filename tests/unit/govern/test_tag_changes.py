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
from downriver.govern.checks import parse_checks
from downriver.govern.kpi_limits import find_value, render_prometheus
from downriver.govern.tag_file import (
    DeclaredDescription,
    DeclaredOwners,
    DeclaredPropagation,
    DeclaredTag,
)
from downriver.http import build_app
from downriver.impact import Policy
from downriver.model.changes import ColumnDrop
from downriver.model.verdicts import Decision
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


SENT = {
    **tagged("domain:raw", "tier:3", "nightly"),
    "ownership": {"owners": [{"name": "tool"}]},
    "documentation": {"description": "Written by a tool."},
}
STATED: list[Declaration] = [
    DeclaredOwners("mart", ("ann",)),
    DeclaredDescription("mart", "Orders per day."),
    DeclaredTag("mart", "domain:sales", True),
    DeclaredTag("mart", "tier:1", True),
]
WITHDRAWN: list[Declaration] = [
    DeclaredOwners("mart", None),
    DeclaredDescription("mart", None),
    DeclaredTag("mart", "domain", False),
    DeclaredTag("mart", "tier", False),
]


def test_what_a_person_states_counts_until_it_is_withdrawn(tmp_path: Path) -> None:
    stated = (["domain:sales", "nightly", "tier:1"], ["ann"], "Orders per day.")
    sent = (["domain:raw", "nightly", "tier:3"], ["tool"], "Written by a tool.")
    with told(tmp_path, EVENTS) as lineage:
        assert lineage.tag(STATED).changed == 4
        late = [dataset_event("mart", SENT, at) for at in ("2020-01-01", "2999-01-01")]
        lineage.ingest([encode(event) for event in late])
        assert labels(lineage, "mart") == stated
        of_events = lineage.entities.details("mart").sent
        assert of_events is not None
        assert (of_events.tags, of_events.owners, of_events.description) == sent
        assert lineage.govern.dataset_tags("mart").sent == of_events
        assert lineage.govern.dataset_tags("mart").owners == ["ann"]
        assert lineage.tag(STATED).changed == 0
        lineage.store.rebuild(lambda done, total: None)
        assert labels(lineage, "mart") == stated
        done = lineage.tag(WITHDRAWN)
        assert (done.changed, done.owners[0].after) == (4, ["tool"])
        assert {(c.tag, c.present) for c in done.changes} == {
            ("domain:sales", False), ("domain:raw", True), ("tier:1", False), ("tier:3", True)
        }  # fmt: skip
        assert labels(lineage, "mart") == sent
        assert lineage.entities.details("mart").sent is None
        assert lineage.tag(WITHDRAWN).changed == 0


def test_a_statement_that_agrees_with_a_producer_is_recorded(tmp_path: Path) -> None:
    agreed = [DeclaredOwners("mart", ("tool",)), DeclaredTag("mart", "nightly", True)]
    with told(tmp_path, [*EVENTS, dataset_event("mart", SENT, "2998-01-01")]) as lineage:
        assert lineage.tag(agreed).changed == 2
        lineage.ingest([encode(dataset_event("mart", {
            "tags": {"tags": []}, "ownership": {"owners": [{"name": "robot"}]}
        }, "2999-01-01"))])  # fmt: skip
        assert labels(lineage, "mart")[:2] == (["nightly"], ["tool"])


def test_search_and_checks_use_the_owners_that_a_person_stated(tmp_path: Path) -> None:
    events = [*EVENTS, dataset_event("mart", SENT, "2020-01-01")]
    with told(tmp_path, events) as lineage:
        assert lineage.govern.kpis().owner_coverage.count == 1
        lineage.tag([DeclaredOwners("raw", ("ann",)), DeclaredOwners("mart", ())])
        assert lineage.govern.kpis().owner_coverage.count == 1
        assert [node.rpartition(":")[2] for node in lineage.select("owner:ann").ids] == ["raw"]
        assert lineage.select("owner:tool").ids == []


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
    assert done.stdout.endswith("3 of 3 labels changed\n")
    assert downriver("tag", "set", "mart", cwd=tmp_path).returncode == 2
    with told(tmp_path / "http", EVENTS) as lineage, TestClient(build_app(lineage)) as client:
        body = {"entity": "mart", "owners": ["ann"], "description": "Orders."}
        plan = client.post("/v1/tags", json={**body, "dry_run": True}).json()
        assert (plan["changed"], labels(lineage, "mart")[1]) == (2, [])
        assert client.post("/v1/tags", json=body).json()["owners"] == [
            {
                "entity": "dataset:postgres://db:5432:mart",
                "before": [],
                "after": ["ann"],
                "sent": [],
            }
        ]
        assert labels(lineage, "mart")[1:] == (["ann"], "Orders.")
        ended = {"entity": "mart", "withdraw": ["owners", "description", "tier"]}
        assert client.post("/v1/tags", json=ended).json()["changed"] == 2
        assert labels(lineage, "mart")[1:] == ([], "")
        assert client.post("/v1/tags", json={**ended, "withdraw": ["x"]}).status_code == 400
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


def test_kpis_checks_and_the_gate_count_every_tag_that_propagates(tmp_path: Path) -> None:
    drop = ColumnDrop(dataset="mart", column="contact")
    with told(tmp_path, CHAIN) as lineage:
        lineage.tag([DeclaredTag("raw.mail", "gdpr", True)])
        assert lineage.govern.kpis().propagating_tags == []
        assert "protected_data" not in {
            f.rule for f in lineage.impact.gate(lineage.impact([drop])).findings
        }
        lineage.tag([DeclaredPropagation("gdpr", True)])
        figures = lineage.govern.kpis()
        [gdpr] = figures.propagating_tags
        assert (gdpr.tag, gdpr.columns.count, gdpr.reached.count) == ("gdpr", 1, 2)
        assert find_value(figures, "tag_reach:gdpr") == 2
        assert 'downriver_kpi{name="tag_columns:gdpr"} 1' in render_prometheus(figures)
        violations = lineage.checks(parse_checks(None), only=["untagged-columns"]).violations
        assert [v.entity.rpartition(":")[2] for v in violations] == ["email", "contact"]
        assert violations[0].message.endswith(": gdpr")
        verdict = lineage.impact.gate(lineage.impact([drop]))
        [finding] = [f for f in verdict.findings if f.rule == "protected_data"]
        assert finding.decision is Decision.CAUTION
        strict = Policy(propagating_tags=Decision.BLOCKED)
        assert lineage.impact.gate(lineage.impact([drop]), strict).decision is Decision.BLOCKED
        n = lineage.impact.gate(lineage.impact([ColumnDrop(dataset="mart", column="n")]))
        assert "protected_data" not in {f.rule for f in n.findings}  # an aggregate has no values
        lineage.tag([DeclaredTag("raw.mail", "gdpr", False), DeclaredTag("raw.mail", "pii", True)])
        verdict = lineage.impact.gate(lineage.impact([drop]))
        assert "protected_data" in {f.rule for f in verdict.findings}


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
        assert client.get("/v1/tags/propagation").json() == {"tags": ["gdpr", "pii"]}
        found = client.get("/v1/tags/columns", params={"dataset": "mart"}).json()
        reached = [tag["tag"] for column in found["columns"] for tag in column["reached"]]
        assert (reached, found["complete"]) == (["gdpr"], True)
        assert client.post("/v1/tags/propagation", json={}).status_code == 400
        assert client.get("/v1/tags/columns", params={"dataset": "x"}).status_code == 404
