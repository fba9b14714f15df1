"""Names with terminal escapes: every command that prints names prints them escaped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.command import Done, downriver

from downriver.cli.command_list import COMMANDS
from downriver.impact.report import render_github, render_markdown, render_text
from downriver.model.control_characters import escape_json, escape_line, escape_text
from downriver.service import Lineage

EVIL = "\x1b[2J\x9b31m\u202efdp\u2066\u200f\x07\x7f\r!"
FORGED = "DECISION: APPROVED"
RAW = f"raw{EVIL}"
ORDERS = f"orders{EVIL}\n{FORGED}"
JOB = f"load{EVIL}\n{FORGED}"
COLUMN = f"amount{EVIL}"
NAMESPACE = f"db{EVIL}"
# A command without a case here prints no name of the catalog, or needs a server or Spark.
NO_NAMES = {"demo", "serve", "mcp", "run", "rebuild", "keys", "spool", "lake"}


def hostile_event() -> dict:
    def dataset(name: str) -> dict:
        fields = [{"name": COLUMN, "type": f"int{EVIL}", "description": EVIL}]
        return {
            "namespace": NAMESPACE,
            "name": name,
            "facets": {
                "schema": {"_producer": "x", "_schemaURL": "x", "fields": fields},
                "ownership": {"owners": [{"name": f"ana{EVIL}", "type": f"OWNER{EVIL}"}]},
                "documentation": {"description": EVIL},
                "tags": {"tags": [{"key": f"pii{EVIL}", "value": "true", "field": COLUMN}]},
            },
        }

    target = dataset(ORDERS)
    inputs = [{"namespace": NAMESPACE, "name": RAW, "field": COLUMN}]
    target["facets"]["columnLineage"] = {"fields": {COLUMN: {"inputFields": inputs}}}
    return {
        "eventTime": "2026-01-01T00:00:00Z",
        "eventType": "FAIL",
        "producer": EVIL,
        "run": {
            "runId": "b7a6c7a8-0000-4000-8000-000000000001",
            "facets": {"errorMessage": {"message": f"failed {EVIL}\n{FORGED}"}},
        },
        "job": {
            "namespace": NAMESPACE,
            "name": JOB,
            "facets": {"sql": {"query": f"select {EVIL} from"}},
        },
        "inputs": [dataset(RAW)],
        "outputs": [target],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "events.json").write_text(json.dumps(hostile_event()))
    assert downriver("ingest", "events.json", cwd=folder).returncode == 0
    (folder / "changes.json").write_text(json.dumps([{"type": "table_drop", "dataset": RAW}]))
    (folder / "drop.sql").write_text(f'drop table "{RAW}"; select from {EVIL}')
    columns = [{"name": COLUMN, "type": EVIL}]
    contract = {"dataset": ORDERS, "columns": columns, "owner": EVIL, "freshness": "1d"}
    (folder / "contract.yml").write_text(json.dumps(contract))
    code = folder / "code"
    code.mkdir()
    (code / "load.sql").write_text(f'insert into "mart{EVIL}" select "a{EVIL}" from "{RAW}"\n')
    (code / "broken.sql").write_text(f"select from where {EVIL}\n")
    (code / f"name{EVIL.replace('/', '')}.sql").write_text("create table x as select from\n")
    return folder


CASES = [
    ("status",),
    ("ingest", f"missing{EVIL}.json"),
    ("trace", ORDERS, "--upstream"),
    ("trace", ORDERS, "--upstream", "--full-names"),
    ("trace", ORDERS, "--json"),
    ("trace", f"unknown{EVIL}"),
    ("paths", RAW, ORDERS),
    ("paths", RAW, ORDERS, "--json"),
    *(("graph", ORDERS, "--format", f) for f in ("mermaid", "dot", "svg", "json", "cypher")),
    ("select", "*"),
    ("select", "*", "--json"),
    ("select", f"unknown{EVIL}"),
    ("impact", RAW, "--drop"),
    ("impact", RAW, "--drop", "--json"),
    *(
        ("gate", "--changes", "changes.json", "--explain", "--format", f)
        for f in ("text", "json", "markdown", "github", "sarif")
    ),
    ("gate", "--ddl", "drop.sql"),
    ("gate", "--changes", f"missing{EVIL}.json"),
    ("policy", "init", "--output", f"missing{EVIL}/downriver.yml"),
    ("policy", "test", "--repo", f"missing{EVIL}"),
    ("fix", RAW, "--rename-to", "renamed", "--root", "code"),
    ("kpis",),
    ("kpis", "--json"),
    ("incident", ORDERS),
    ("incident", ORDERS, "--json"),
    ("verdicts",),
    ("verdicts", "--json"),
    ("tags", f"pii{EVIL}"),
    ("tags", "columns", ORDERS),
    ("tags", "propagate", f"gdpr{EVIL}", "--dry-run"),
    ("tag", "set", ORDERS, f"owner=me{EVIL}", "--dry-run"),
    ("tags", "apply", f"missing{EVIL}.yml"),
    ("forget", JOB, "--dry-run"),
    ("forget", f"unknown{EVIL}"),
    ("prune", "--older-than", "1d", "--dry-run"),
    ("redact", f"ana{EVIL}", "--dry-run"),
    ("import", "marquez", f"http://localhost:1/{EVIL}"),
    ("certified",),
    ("same", RAW, ORDERS, "--undo"),
    ("same", "--list"),
    ("cuts",),
    ("watch", "--once"),
    ("watch", "findings"),
    ("watch", "findings", "--json"),
    ("triggers", "list"),
    ("triggers", "test", ORDERS),
    ("triggers", "test", ORDERS, "--config", f"missing{EVIL}.yml"),
    ("consume", f"kafka://missing{EVIL}"),
    ("consume", f"kafka://[missing{EVIL}/topic"),
    ("agent", "--prompt", "trace raw"),
    ("capture", "sql", "code/load.sql", "--dry-run"),
    ("capture", "sql", "code/broken.sql", "--dry-run"),
    ("capture", "scan", "code", "--dry-run"),
    ("capture", "scan", "code", "--dry-run", "--json"),
    ("capture", "dbt", f"missing{EVIL}"),
    ("capture", "mlflow", f"sqlite:///missing{EVIL}/mlflow.db"),
    ("capture", "delta", f"missing{EVIL}"),
    ("check",),
    ("check", "--json"),
    ("check", "--expect", f"missing{EVIL}.yml"),
    ("contracts", "check", "contract.yml", "--no-record"),
    ("contracts", "check", "contract.yml", "--no-record", "--json"),
    ("contracts", "apply", "contract.yml", "--dry-run"),
    ("contracts", "check", f"missing{EVIL}.yml"),
    ("schema", "history", ORDERS),
    ("schema", "diff", ORDERS),
    ("schema", "check", ORDERS, "--against", f"missing{EVIL}.avsc"),
    ("quality", ORDERS),
    ("quality", ORDERS, "--json"),
    ("privacy", "report", f"{ORDERS}.{COLUMN}"),
    ("privacy", "report", f"unknown{EVIL}"),
    ("capture", "great-expectations", f"missing{EVIL}.json"),
    ("integrations",),
    ("integrations", "--json"),
    ("versions", ORDERS),
    ("versions", ORDERS, "--json"),
    ("versions", f"unknown{EVIL}"),
    ("diff", "--from", "2025-12-31"),
    ("diff", "--from", "2025-12-31", "--json"),
    ("evidence", ORDERS, "-o", "pack"),
    ("evidence", "list", ORDERS),
    ("evidence", "verify", f"missing{EVIL}"),
    ("export", "neo4j", f"nonsense{EVIL}"),
    ("import", "glue", f"missing{EVIL}.json"),
    ("audit", "verify"),
    ("audit", "verify", "--against", f"missing{EVIL}"),
    ("audit", "export"),
    ("audit", "log"),
    ("backup", f"missing{EVIL}/backup"),
    ("restore", f"missing{EVIL}"),
    ("audit", "event", f"00{EVIL}"),
]


def assert_is_safe(done: Done) -> None:
    for text in (done.stdout, done.stderr):
        assert escape_text(text) == text
        assert FORGED not in text.splitlines()


@pytest.mark.parametrize("arguments", CASES, ids=lambda a: " ".join(map(escape_line, a)))
def test_no_command_prints_control_characters(arguments: tuple[str, ...], folder: Path) -> None:
    done = downriver(*arguments, cwd=folder)
    assert "Traceback" not in done.stderr
    assert "Usage:" not in done.stderr
    assert_is_safe(done)


def test_every_command_that_prints_names_has_a_case() -> None:
    assert {command.name for command in COMMANDS} - NO_NAMES == {case[0] for case in CASES}


def test_the_names_are_shown_escaped(folder: Path) -> None:
    shown = downriver("trace", ORDERS, "--upstream", cwd=folder).stdout
    assert r"raw\x1b[2J\x9b31m\u202efdp\u2066\u200f\x07\x7f\r!" in shown
    answer = downriver("trace", ORDERS, "--upstream", "--json", cwd=folder).stdout
    assert RAW in {node["name"] for node in json.loads(answer)["nodes"]}


def test_reports_of_a_verdict_are_escaped(folder: Path) -> None:
    from downriver.impact.changes.request import parse_changes

    with Lineage.open(str(folder / ".downriver")) as lineage:
        changes = parse_changes([{"type": "table_drop"}], dataset=RAW, field="x")
        verdict = lineage.impact.gate(lineage.impact(changes))
    for report in (render_text, render_markdown, render_github):
        text = report(verdict)
        assert escape_text(text) == text
        assert FORGED not in text.splitlines()


@pytest.mark.parametrize("text", ["plain", "naïve 数据 🙂", "a\u00a0b", "", "tab\tnew\nline"])
def test_usual_text_stays(text: str) -> None:
    assert escape_text(text) == text
    assert escape_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


def test_json_keeps_its_value() -> None:
    text = json.dumps({"name": EVIL, "中": "\u2028"}, ensure_ascii=False)
    assert json.loads(escape_json(text)) == json.loads(text)
    assert escape_text(escape_json(text)) == escape_json(text)
