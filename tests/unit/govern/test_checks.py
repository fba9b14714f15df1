"""Every rule reports what violates it, and nothing else."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from tests.openlineage import dataset_event, encode
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, output, owned_by, run, schema, tagged, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError
from downriver.govern.checks import RULES, parse_checks, rules
from downriver.http import build_app
from downriver.model.trust.checks import CheckSeverity
from downriver.service import Lineage


def contract(dataset: str, column: str) -> dict:
    return {"downriver_contract": {"dataset": dataset, "columns": [{"name": column}]}}


def shop() -> list[dict]:
    return [
        *run("clean", 0, reads=["raw"], writes=[output("clean", {
            **schema(id="int", email="text"), **derives(id="raw.id", email="!raw.mail"),
            **owned_by("ann"),
        })]),
        *run("sum", 0, reads=["clean"], writes=[output("mart", {
            **schema(n="int"), **derives(n="#clean.id"), **tagged("certified"),
        })]),
        *run("copy", 0, reads=["mart"], writes=[output("mart_copy", {
            **schema(n="int"), **derives(n="mart.n"),
        })]),
        *run("load", 0, writes=[output("lonely", {
            **schema(x="int"), **tagged("canonical", "concept:order"),
        })]),
        *run("report", 0, reads=["lonely"], writes=[output("sheet", schema(x="int"))]),
        *run("report_again", 0, reads=["raw"], writes=[output("sheet")]),
        *run("cut", 0, reads=["lonely"], writes=[output("chart")]),
        dataset_event("raw", {
            **schema(id="int", mail="text"), **owned_by("bob"), **tagged(id="pii", mail="pii"),
        }),
        dataset_event("orphan", {
            **contract("mart_copy", "gone"), **tagged("golden", "concept:order"),
        }),
        dataset_event("mart_copy", contract("mart_copy", "gone")),
    ]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with told(tmp_path, shop()):
        pass
    return tmp_path


def check(store: Path, rule: str, **config: object) -> list[str]:
    with Lineage.open(str(store)) as lineage:
        found = lineage.checks(parse_checks(config or None), only=[rule])
    assert [each.rule for each in found.rules] == [rule]
    assert found.rules[0].violations == len(found.violations)
    return [each.entity.rpartition(":")[2] for each in found.violations]


@pytest.mark.parametrize(
    ("rule", "entities"),
    [
        ("orphans", ["orphan"]),
        ("outputs-without-inputs", ["load"]),
        ("path-to-source", ["chart"]),
        ("certified-upstream", ["mart"]),
        ("schema-contract", ["mart_copy"]),
        ("canonical-conflicts", ["lonely", "orphan"]),
        ("single-writer", ["sheet"]),
        ("owners", ["chart", "lonely", "mart", "mart_copy", "orphan", "sheet"]),
        ("redundant-copies", ["mart_copy"]),
        ("unused-columns", ["email"]),
        ("untagged-columns", ["id"]),
    ],
)
def test_a_rule_reports_what_violates_it(store: Path, rule: str, entities: list[str]) -> None:
    assert check(store, rule) == entities


def test_every_rule_has_a_message_and_a_test() -> None:
    assert all(rule.meaning.endswith(".") for rule in RULES)
    mark = next(m for m in test_a_rule_reports_what_violates_it.pytestmark)
    assert {case[0] for case in mark.args[1]} == {rule.name for rule in RULES}


def test_a_column_of_a_dataset_with_an_opaque_reader_is_not_called_unused(store: Path) -> None:
    with told(store, run("opaque", 1, reads=["clean"], writes=[output("elsewhere")])):
        pass
    assert check(store, "unused-columns") == []


def test_a_certified_source_ends_the_search_for_uncertified_ones(store: Path) -> None:
    with told(store, [dataset_event("clean", tagged("golden"))]):
        pass
    assert check(store, "certified-upstream") == ["clean"]  # raw is not certified
    with told(store, [dataset_event("raw", tagged("canonical"))]):
        pass
    assert check(store, "certified-upstream") == []


@pytest.mark.parametrize(
    ("edge", "holds"),
    [
        ({"from": "raw", "to": "mart"}, True),
        ({"from": "raw", "to": "mart", "direct": True}, False),
        ({"from": "clean", "to": "mart", "direct": True}, True),
        ({"from": "mart", "to": "raw"}, False),
        ({"from": "raw.id", "to": "mart.n"}, True),
        ({"from": "raw.mail", "to": "mart.n"}, False),
        ({"from": "raw.id", "to": "mart"}, True),
        ({"from": "raw.mail", "to": "mart"}, False),
    ],
)
def test_an_edge_is_expected_or_forbidden(store: Path, edge: dict, holds: bool) -> None:
    assert (check(store, "expected-edges", expect=[edge]) == []) is holds
    assert (check(store, "expected-edges", never=[edge]) == []) is not holds


def test_an_unknown_name_fails_both_kinds_of_expectations(store: Path) -> None:
    edge = {"from": "rwa", "to": "mart"}
    assert check(store, "expected-edges", expect=[edge]) == ["mart"]
    assert check(store, "expected-edges", never=[edge]) == ["mart"]


def test_an_edge_is_not_called_missing_where_lineage_is_unknown(store: Path) -> None:
    with told(
        store, run("opaque", 1, reads=["clean"], writes=[output("elsewhere", schema(a="int"))])
    ):
        pass
    with Lineage.open(str(store)) as lineage:
        config = parse_checks({"never": [{"from": "clean.email", "to": "elsewhere"}]})
        found = lineage.checks(config, only=["expected-edges"])
    assert not found.complete
    assert not found.passed
    assert "may exist" in found.violations[0].message


def test_severities_and_ignored_entities_are_configured(store: Path) -> None:
    config = parse_checks(
        {
            "rules": {"orphans": "error", "owners": "skip"},
            "ignore": {"*": ["*lonely*"], "outputs-without-inputs": ["job:*:load"]},
            "fail_on": "warning",
        }
    )
    with Lineage.open(str(store)) as lineage:
        found = lineage.checks(config)
    assert found.ignored == 2
    assert {each.rule: each.severity for each in found.rules}["orphans"] is CheckSeverity.ERROR
    assert "owners" not in {each.rule for each in found.rules}
    assert [each.severity.rank for each in found.violations] == sorted(
        (each.severity.rank for each in found.violations), reverse=True
    )


def test_each_rule_has_its_own_file_and_its_docstring_is_the_message() -> None:
    folder = Path(rules.__file__).parent
    for rule in RULES:
        path = inspect.getsourcefile(rule.check)
        assert path == str(folder / f"{rule.name.replace('-', '_')}.py")
        assert rule.meaning.endswith(".")
    assert len(list(folder.glob("*.py"))) == len(RULES) + 2  # __init__ and rule


@pytest.mark.parametrize(
    "section",
    [
        {"rules": {"nothing": "error"}},
        {"rules": {"orphans": "loud"}},
        {"ignore": {"x": []}},
        {"expect": [{"from": "a"}]},
        {"unknown": 1},
        [],
    ],
)
def test_a_bad_section_is_an_error(section: object) -> None:
    with pytest.raises(InvalidRequestError):
        parse_checks(section)


def test_the_command_fails_ci_and_writes_sarif(store: Path) -> None:
    done = downriver("check", "--store", str(store), "--sarif", "out.sarif", cwd=store)
    assert done.returncode == 1
    assert "failed · 11 rules on 8 datasets" in done.stdout, done.stdout
    log = json.loads((store / "out.sarif").read_text())
    places = [each["locations"][0]["physicalLocation"] for each in log["runs"][0]["results"]]
    assert {each["artifactLocation"]["uri"] for each in places} == {"downriver.yml"}
    results = log["runs"][0]["results"]
    rules = {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in results} <= rules
    assert {result["level"] for result in results} == {"error", "warning", "note"}
    done = downriver("check", "--store", str(store), "--rule", "orphans", cwd=store)
    assert (done.returncode, done.stdout.count("orphan")) == (0, 2)
    done = downriver("check", "--rule", "orphans", "--fail-on", "warning", "--store", str(store),
                     cwd=store)  # fmt: skip
    assert done.returncode == 1
    done = downriver("check", "--rule", "orphan", "--store", str(store), cwd=store)
    assert (done.returncode, "no rule named" in done.stderr) == (2, True)


def test_a_violation_is_at_the_code_of_the_job_that_writes_the_dataset(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mart.sql").write_text("\n\ncreate table mart as select 1 as n\n")
    assert downriver("capture", "scan", ".", "--store", "s", cwd=tmp_path).returncode == 0
    downriver("check", "--store", "s", "--sarif", "out.sarif", cwd=tmp_path)
    (run_log,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    places = {
        result["ruleId"]: result["locations"][0]["physicalLocation"]
        for result in run_log["results"]
    }
    assert places["owners"]["artifactLocation"]["uri"] == "models/mart.sql"
    assert places["owners"]["region"]["startLine"] == 1


def test_the_command_reads_expectations_and_configuration(store: Path) -> None:
    (store / "lineage.yml").write_text("expect:\n- {from: raw.id, to: mart.n}\n")
    (store / "downriver.yml").write_text(
        "gate: {}\nchecks:\n  rules: {outputs-without-inputs: skip, path-to-source: info,\n"
        "    certified-upstream: warning,\n    schema-contract: info, canonical-conflicts: info}\n"
        "  never:\n  - {from: raw.mail, to: mart}\n"
    )
    arguments = ("check", "--store", str(store), "--expect", "lineage.yml", "--json")
    done = downriver(*arguments, cwd=store)
    assert done.returncode == 0, done.stdout
    (store / "lineage.yml").write_text("expect:\n- {from: raw.mail, to: mart.n}\n")
    done = downriver(*arguments, cwd=store)
    found = json.loads(done.stdout)
    assert (done.returncode, found["violations"][0]["path"]) == (1, "lineage.yml")
    (store / "lineage.yml").write_text("edges: []\n")
    done = downriver(*arguments, cwd=store)
    assert (done.returncode, "`expect` or `never`" in done.stderr) == (2, True)


def test_checks_over_http(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(event) for event in shop()])
        with TestClient(build_app(lineage)) as client:
            found = client.get("/v1/checks", params={"skip": "owners"}).json()
            assert found["passed"] is False
            assert "owners" not in {rule["rule"] for rule in found["rules"]}
            one = client.get("/v1/checks", params={"rule": "orphans"}).json()
            assert [rule["rule"] for rule in one["rules"]] == ["orphans"]
            assert client.get("/v1/checks", params={"rule": "x"}).status_code == 400
