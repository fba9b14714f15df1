"""A privacy report has every place that a field reaches, and lists what is unknown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, output, owned_by, run, schema, tagged, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError
from downriver.govern.privacy import SqlDialect
from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

PURPOSE = {"key": "purpose", "value": "billing", "field": "email"}
BASIS = {"key": "legal_basis", "value": "contract"}


def shop() -> list[dict]:
    clean = {
        **schema(email="text", hashed="text", total="int"),
        **derives(email="users.email", hashed="!users.email", total="#users.email"),
        **owned_by("crm"),
        "tags": {"tags": [PURPOSE, BASIS]},
    }
    hashes = {**schema(h="text"), **derives(h="clean.hashed")}
    safe = {**schema(n="int"), **derives(n="clean.total")}
    features = {
        **schema(mail="text", age="int"),
        **derives(mail="clean.email", age="users.age"),
    }
    return [
        dataset_event("users", schema(email="text", age="int")),
        *run("clean", 0, reads=["users"], writes=[output("clean", clean)]),
        *run("hash", 0, reads=["clean"], writes=[output("hashes", hashes)]),
        *run("safe", 0, reads=["clean"], writes=[output("safe", safe)]),
        *run("featurize", 0, reads=["clean", "users"], writes=[output("features", features)]),
        *run("train", 0, reads=["features"], writes=[
            output("churn", {"datasetType": {"datasetType": "MODEL"}})]),
        *run("draw", 0, reads=["churn"], writes=[
            output("board", {"datasetType": {"datasetType": "DASHBOARD"}, **tagged("tier:1")})]),
        *run("other", 0, reads=["safe"], writes=[output("elsewhere")]),
    ]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with told(tmp_path, shop()):
        pass
    return tmp_path


def test_a_report_has_what_the_field_reaches_and_nothing_else(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        found = lineage.privacy("users.email")
    by_name = {each.name: each for each in found.datasets}
    assert set(by_name) == {"users", "clean", "features", "churn", "board"}
    clean = by_name["clean"]
    assert [c.field for c in clean.columns] == ["email"]
    assert [c.field for c in clean.masked] == ["hashed"]
    assert (clean.owners, clean.purposes, clean.legal_bases) == (["crm"], ["billing"], ["contract"])
    assert clean.not_stated == ["retention"]
    assert by_name["users"].not_stated == ["purpose", "legal_basis", "retention"]
    assert [c.field for c in by_name["features"].columns] == ["mail"]
    certain = {each.name for each in found.datasets if each.certainty == "column"}
    assert certain == {"users", "clean", "features"}
    assert (by_name["churn"].type, by_name["board"].type) == ("model", "dashboard")
    assert [job.rpartition(":")[2] for job in by_name["board"].through] == ["draw"]
    assert not found.complete
    assert {spot.entity for spot in found.blind_spots} >= {by_name["churn"].dataset}


def test_a_model_is_explained_by_its_features_and_their_raw_sources(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        (model,) = lineage.privacy("users.email").models
    features = {
        feature.feature.rpartition(":")[2]: [s.rpartition("users:")[2] for s in feature.sources]
        for feature in model.features
    }
    assert features == {"mail": ["email"], "age": ["age"]}


def test_a_field_that_goes_nowhere_has_a_complete_report(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        found = lineage.privacy("hashes.h")
        assert (len(found.datasets), found.models, found.complete) == (1, [], True)
        with pytest.raises(InvalidRequestError, match="is not a column"):
            lineage.privacy("users")


def test_ranger_policies_hash_the_values_for_all_but_owners(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        access, masking = lineage.privacy.ranger(lineage.privacy("users.email"))
    assert access["resources"]["tag"]["values"] == ["PII"]
    assert (access["policyType"], access["policyItems"][0]["groups"]) == (0, ["crm"])
    masks = {
        item["groups"][0]: item["dataMaskInfo"]["dataMaskType"]
        for item in masking["dataMaskPolicyItems"]
    }
    assert masks == {"crm": "hive:MASK_NONE", "public": "hive:MASK_HASH"}
    assert masking["policyType"] == 1


def test_sql_statements_name_only_tables_with_the_field(store: Path) -> None:
    hostile = 'odd"; drop table x; --'
    wide = {**schema(e="text", n="int"), **derives(e="users.email")}
    with told(store, run("copy", 1, reads=["users"], writes=[output(hostile, wide)])):
        pass
    with Lineage.open(str(store)) as lineage:
        report = lineage.privacy("users.email")
        postgres, snowflake, databricks = (
            lineage.privacy.sql(report, dialect) for dialect in SqlDialect
        )
    assert "GRANT SELECT (hashed, total) ON clean TO PUBLIC;" in postgres
    assert "GRANT SELECT ON clean TO crm;" in postgres
    assert 'REVOKE SELECT ON "odd""; drop table x; --" FROM PUBLIC;' in postgres
    assert "MODIFY COLUMN mail SET MASKING POLICY" in snowflake
    assert "ALTER TABLE features ALTER COLUMN mail SET MASK mask_personal;" in databricks
    for statements in (postgres, snowflake, databricks):
        assert "churn" not in statements
        assert "hashes" not in statements


def test_the_command_and_the_routes_give_one_report(store: Path) -> None:
    arguments = ("privacy", "report", "users.email", "--store", str(store))
    done = downriver(*arguments, "--json", "--ranger", "r.json", cwd=store)
    found = json.loads(done.stdout)
    done = downriver(*arguments, cwd=store)
    assert (done.returncode, "masked  clean.hashed" in done.stdout) == (0, True), done.stdout
    statements = downriver(*arguments, "--sql", "snowflake", cwd=store).stdout
    with Lineage.open(str(store)) as lineage, TestClient(build_app(lineage)) as client:
        asked = {"field": "users.email"}
        assert client.get("/v1/privacy", params=asked).json() == found
        policies = client.get("/v1/privacy/ranger", params=asked).json()
        assert policies == json.loads((store / "r.json").read_text())
        asked["dialect"] = "snowflake"
        assert client.get("/v1/privacy/sql", params=asked).text == statements
        asked["dialect"] = "basic"
        assert client.get("/v1/privacy/sql", params=asked).status_code == 400
        assert client.get("/v1/privacy", params={"field": "users"}).status_code == 400
        assert client.get("/v1/privacy", params={"field": "nothing"}).status_code == 404
