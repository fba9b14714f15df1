"""A contract is fulfilled, violated or unknown, and its violations are events in the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import moment, output, rows, run, schema, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError
from downriver.govern.contracts import StatedContract, parse_contract
from downriver.http import build_app
from downriver.model.governance import FindingKind
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

LATER = moment(1)
COLUMNS = [{"name": "id", "type": "bigint", "required": True}, {"name": "total", "type": "numeric"}]


def shop() -> list[dict]:
    counted = rows(100, id={"nullCount": 0}, total={"nullCount": 7})
    facets = schema(id="int8", total="decimal")
    return [
        *run("sum", 0, reads=["raw"], writes=[output("mart", facets, counted)]),
        dataset_event("silent"),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with told(tmp_path, shop()):
        pass
    return tmp_path


def stated(**fields: Any) -> list[StatedContract]:
    return [StatedContract(each) for each in parse_contract({"dataset": "mart", **fields})]


def outcomes(store: Path, at: str = LATER, **fields: Any) -> dict[str, str]:
    with Lineage.open(str(store)) as lineage:
        found = lineage.contracts(stated(**fields), at=at, record=False)
    return {
        f"{clause.clause} {clause.column or ''}".strip(): clause.outcome
        for clause in found.contracts[0].clauses
    }


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"columns": COLUMNS}, {
            "column_exists id": "passed", "column_type id": "passed", "required id": "passed",
            "column_exists total": "passed", "column_type total": "passed",
        }),
        ({"columns": [{"name": "ID", "logical_type": "integer"}]},
         {"column_exists ID": "passed", "column_type ID": "passed"}),
        ({"columns": [{"name": "id", "type": "int"}]},
         {"column_exists id": "passed", "column_type id": "violated"}),
        ({"columns": [{"name": "gone", "type": "text"}]}, {"column_exists gone": "violated"}),
        ({"columns": [{"name": "total", "required": True}]},
         {"column_exists total": "passed", "required total": "violated"}),
        ({"columns": COLUMNS[:1], "closed": True}, {
            "column_exists id": "passed", "column_type id": "passed", "required id": "passed",
            "closed": "violated",
        }),
        ({"rows": {"min": 100, "max": 100}}, {"rows": "passed"}),
        ({"rows": {"min": 101}}, {"rows": "violated"}),
        ({"rows": {"max": 99}}, {"rows": "violated"}),
        ({"freshness": "24h"}, {"freshness": "passed"}),
        ({"freshness": "23h"}, {"freshness": "violated"}),
        ({"compatibility": "full"}, {"compatibility": "passed"}),
    ],
)  # fmt: skip
def test_every_clause_is_checked(store: Path, fields: Any, outcome: dict[str, str]) -> None:
    assert outcomes(store, **fields) == outcome


def test_what_was_never_observed_is_unknown_and_not_passed(store: Path) -> None:
    contract = {"columns": COLUMNS, "rows": {"min": 1}, "freshness": "1h"}
    asked = stated(**contract, dataset="silent")
    with Lineage.open(str(store)) as lineage:
        found = lineage.contracts(asked, record=True)
        nowhere = lineage.contracts(stated(dataset="nowhere"), record=False)
        events = lineage.admin.status().counts.events
        lineage.contracts(asked)
        assert lineage.admin.status().counts.events == events  # nothing is known to record
    assert {clause.outcome for clause in found.contracts[0].clauses} == {"unknown"}
    assert (found.contracts[0].outcome, found.passed, found.complete) == ("unknown", True, False)
    assert len(found.blind_spots) == len(found.contracts[0].clauses) == 4
    assert nowhere.contracts[0].outcome == "unknown"
    assert not nowhere.complete


def test_what_happened_after_the_moment_does_not_count(store: Path) -> None:
    changed = run("sum", 2, writes=[output("mart", schema(id="int8"), rows(1))])
    with told(store, changed):
        pass
    contract = {"columns": [{"name": "total"}], "rows": {"min": 50}}
    assert set(outcomes(store, **contract).values()) == {"passed"}
    assert set(outcomes(store, moment(3), **contract).values()) == {"violated"}


def test_a_table_that_returns_to_its_old_schema_keeps_its_contract(store: Path) -> None:
    for day, columns in ((2, {"id": "int8"}), (3, {"id": "int8", "total": "decimal"})):
        with told(store, run("sum", day, writes=[output("mart", schema(**columns))])):
            pass
    assert outcomes(store, moment(4), columns=[{"name": "total"}]) == {
        "column_exists total": "passed"
    }


def test_an_incompatible_schema_change_is_a_violation(store: Path) -> None:
    with told(store, run("sum", 2, writes=[output("mart", schema(id="int8"))])):
        pass
    assert outcomes(store, moment(3), compatibility="backward") == {"compatibility": "passed"}
    assert outcomes(store, moment(3), compatibility="forward") == {"compatibility": "violated"}


def test_a_violation_is_a_failure_until_a_later_check_passes(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:

        def failures() -> list[str]:
            report = lineage.govern.incident_report("mart", moment(3))
            failed = [f for f in report.failures if f.kind is FindingKind.QUALITY_FAILED]
            return sorted(finding.subject for finding in failed)

        lineage.contracts(stated(rows={"min": 500}), at=LATER, record=False)
        assert failures() == []
        lineage.contracts(stated(rows={"min": 500}, freshness="1h"), at=LATER)
        assert failures() == ["contract.freshness", "contract.rows"]
        lineage.contracts(stated(rows={"min": 5}), at=moment(1, 1))  # freshness is withdrawn
        assert failures() == []


def test_an_applied_contract_is_a_fact_in_the_log_and_is_listed(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        first = lineage.contracts.apply(stated(columns=COLUMNS, freshness="1h"), done=False)
        assert lineage.contracts(record=False).contracts == []
        lineage.contracts.apply(stated(columns=COLUMNS, freshness="1h"))
        again = lineage.contracts.apply(stated(columns=COLUMNS, freshness="1h"))
        changed = lineage.contracts.apply(
            stated(columns=[COLUMNS[0], {"name": "total", "type": "text"}], freshness="2h")
        )
        found = lineage.contracts(at=LATER, record=False)
        pack = lineage.evidence("mart").pack
    assert (len(first.changes), again.changes) == (1, [])
    assert changed.changes[0].differences == [
        "~ column total numeric -> total text",
        "~ freshness: 1h -> 2h",
    ]
    violated = [c.clause for c in found.contracts[0].clauses if c.outcome == "violated"]
    assert violated == ["column_type", "freshness"]
    facets = [(version.facet, version.content["freshness"]) for version in pack.contract_history]
    assert facets == [("downriver_contract", "1h"), ("downriver_contract", "2h")]


def test_both_forms_of_the_open_standard_are_read() -> None:
    document = {
        "apiVersion": "v3.0.2", "kind": "DataContract", "version": "1.2.0",
        "schema": [{
            "name": "orders", "physicalName": "shop.orders",
            "properties": [
                {"name": "id", "logicalType": "integer", "physicalType": "bigint",
                 "required": True, "quality": [{"rule": "duplicateCount", "mustBe": 0}]},
                {"name": "address", "logicalType": "object",
                 "properties": [{"name": "city", "logicalType": "string"}]},
            ],
            "quality": [{"rule": "rowCount", "mustBeGreaterThan": 99}, {"type": "sql"}],
        }],
        "slaProperties": [
            {"property": "latency", "value": 4, "unit": "d", "element": "orders.id"},
            {"property": "freshness", "value": 1, "unit": "h", "element": "other"},
            {"property": "retention", "value": 3, "unit": "y"},
        ],
        "team": [{"username": "old", "role": "owner", "dateOut": "2024-01-01"},
                 {"username": "ann", "role": "Data Owner"}],
    }  # fmt: skip
    (contract,) = parse_contract(document)
    assert (contract.dataset, contract.owner, contract.freshness) == ("shop.orders", "ann", "4d")
    assert contract.rows is not None
    assert contract.rows.min == 100
    assert [(c.name, c.type, c.required) for c in contract.columns] == [
        ("id", "bigint", True),
        ("address", "", False),
        ("address.city", "", False),
    ]
    assert contract.not_checked == [
        "quality rule sql of orders",
        "service level retention",
        "quality rule duplicateCount of id",
    ]
    newer = {**document, "apiVersion": "v3.1.0", "team": {"name": "sales"}}
    newer["schema"] = [{"name": "orders", "quality": [{"metric": "rowCount", "mustBe": 3}]}]
    (contract,) = parse_contract(newer)
    assert contract.rows is not None
    assert (contract.owner, contract.rows.min, contract.rows.max) == ("sales", 3, 3)


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"dataset": ""},
        {"dataset": "a", "unknown": 1},
        {"dataset": "a", "freshness": "soon"},
        {"dataset": "a", "compatibility": "sideways"},
        {"dataset": "a", "columns": [{"type": "int"}]},
        {"dataset": "a", "schema": "a.avsc"},
        {"kind": "DataContract", "apiVersion": "v2.2.2", "schema": [{"name": "a"}]},
        {"kind": "DataContract", "apiVersion": "v3.0.0"},
        {"kind": "DataContract", "apiVersion": "v3.0.0", "schema": [{"name": "a"}],
         "slaProperties": [{"property": "latency", "value": 4, "unit": "months"}]},
        {"kind": "DataContract", "apiVersion": "v3.0.0",
         "schema": [{"name": "a", "quality": [{"rule": "rowCount", "mustBe": "many"}]}]},
    ],
)  # fmt: skip
def test_a_malformed_contract_is_an_error(document: Any) -> None:
    with pytest.raises(InvalidRequestError):
        parse_contract(document)


def test_the_commands_check_apply_and_list(store: Path) -> None:
    folder = store / "contracts"
    folder.mkdir()
    fields = [{"name": "id", "type": "long"}, {"name": "total", "type": ["null", "bytes"]}]
    fields[1]["type"][1] = {"type": "bytes", "logicalType": "decimal", "precision": 76, "scale": 38}
    avro = {"type": "record", "name": "Mart", "fields": fields}
    (folder / "mart.avsc").write_text(json.dumps(avro))
    (folder / "mart.yml").write_text("dataset: mart\nowner: ann\nschema: mart.avsc\nrows: {min: 1}")
    at = ("--at", LATER, "--store", str(store))
    done = downriver("contracts", "check", "contracts", *at, cwd=store)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 violated, 0 unknown, 1 passed")
    (folder / "mart.yml").write_text("dataset: mart\nfreshness: 1h\ncolumns: [{name: gone}]\n")
    done = downriver("contracts", "check", "contracts/mart.yml", "--json", *at, cwd=store)
    found = json.loads(done.stdout)
    assert (done.returncode, found["recorded"], found["contracts"][0]["path"]) == (
        1, True, "contracts/mart.yml",
    )  # fmt: skip
    (folder / "mart.yml").write_text("dataset: silent\nfreshness: 1h\n")
    done = downriver("contracts", "check", "contracts", "--no-record", *at, cwd=store)
    assert (done.returncode, "incomplete: 1 clause " in done.stdout) == (0, True), done.stdout
    assert downriver("contracts", "check", "contracts", "--strict", *at, cwd=store).returncode == 1
    done = downriver("contracts", "apply", "contracts", "--store", str(store), cwd=store)
    assert done.stdout.splitlines()[-1] == "1 of 1 contract changed"
    done = downriver("contracts", "list", "--store", str(store), cwd=store)
    assert "unknown silent" in done.stdout
    (folder / "again.yml").write_text("dataset: silent\n")
    done = downriver("contracts", "check", "contracts", *at, cwd=store)
    assert (done.returncode, "two contracts of silent" in done.stderr) == (2, True)


def test_the_routes_check_apply_and_list(store: Path) -> None:
    with Lineage.open(str(store)) as lineage, TestClient(build_app(lineage)) as client:
        contract = {"dataset": "mart", "columns": [{"name": "no"}]}
        assert client.get("/v1/contracts").json()["contracts"] == []
        answer = client.post("/v1/contracts", json={"contracts": [contract]})
        assert answer.json()["changes"][0]["differences"] == ["new contract with 1 columns"]
        answer = client.get("/v1/contracts", params={"at": LATER}).json()
        assert (answer["recorded"], answer["contracts"][0]["outcome"]) == (False, "violated")
        answer = client.post("/v1/contracts/check", json={"at": LATER}).json()
        assert (answer["passed"], answer["recorded"]) == (False, True)
        quality = client.get("/v1/incidents", params={"entity": "mart"}).json()["failures"]
        assert "contract.column_exists" in {word for f in quality for word in f["subject"].split()}
        asked = {"contracts": [{"dataset": "mart", "freshness": "soon"}]}
        assert client.post("/v1/contracts/check", json=asked).status_code == 400
        asked = {"contracts": [{"dataset": "nowhere"}]}
        assert client.post("/v1/contracts", json=asked).status_code == 404
