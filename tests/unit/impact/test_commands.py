"""`impact` and `gate` at a terminal and in CI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import Done, downriver
from tests.unit.impact.estate import Estate

from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        estate = Estate(lineage)
        estate.table("raw.orders", {"id": "int", "total": "int", "note": "varchar"})
        estate.sql(
            "stg", "create table stg.orders as\nselect id, total from raw.orders", path="stg.sql"
        )
    return tmp_path


def gate(folder: Path, change: dict, *options: str) -> Done:
    (folder / "changes.yml").write_text(json.dumps({"raw.orders": [change]}))
    return downriver("gate", "--changes", "changes.yml", *options, cwd=folder)


DROP = {"type": "column_drop", "column": "total"}
LOGIC = {"type": "logic_change", "columns": ["total"]}
FREE = {"type": "column_drop", "column": "note"}


def test_impact_shows_broken_consumers_with_their_code(folder: Path) -> None:
    done = downriver("impact", "raw.orders.total", "--rename-to", "sum", cwd=folder)
    assert done.returncode == 0
    assert "breaking stg.orders" in done.stdout
    assert "stg.sql:2 select: select id, total from raw.orders" in done.stdout
    assert "1 breaking, 0 warnings, 0 not affected" in done.stdout


def test_several_changes_are_one_question(folder: Path) -> None:
    options = ["raw.orders", "--rename", "total:sum", "--drop", "id"]
    done = downriver("impact", *options, cwd=folder)
    assert "cannot resolve total, id" in done.stdout
    assert "1 breaking, 0 warnings, 0 not affected" in done.stdout


def test_statements_that_cannot_be_read_are_listed(folder: Path) -> None:
    done = downriver("impact", "alter table raw.orders drop column note; call f()", cwd=folder)
    assert "! line 1: not read (procedure call): call f()" in done.stdout
    assert "incomplete" in done.stdout


def test_impact_as_json_is_the_whole_answer(folder: Path) -> None:
    done = downriver("impact", "raw.orders.total", "--drop", "--json", cwd=folder)
    assert json.loads(done.stdout)["effects"][0]["affected_references"] == ["total"]


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (["raw.orders", "--drop"], "drop raw.orders"),
        (["raw.orders", "--rename-to", "x"], "rename raw.orders to x"),
        (["raw.orders", "--add", "x", "--required"], "add required raw.orders.x"),
        (["raw.orders", "--deprecate"], "deprecate raw.orders"),
        (["raw.orders.total", "--type", "text"], "change the type of raw.orders.total to text"),
        (["raw.orders.total", "--not-null"], "make raw.orders.total NOT NULL"),
        (["raw.orders.total", "--logic"], "change the logic of raw.orders.total"),
        (["raw.orders", "--add", "x:int"], "add raw.orders.x"),
        (
            [
                "raw.orders",
                "--rename",
                "total:sum",
                "--drop",
                "note",
                "--retype",
                "id:bigint",
                "--add-required",
                "country",
            ],
            "rename raw.orders.total to sum; drop raw.orders.note; change the type of "
            "raw.orders.id to bigint; add required raw.orders.country",
        ),
        (
            ["raw.orders", "--rename", "id:k", "--rename", "total:sum"],
            "rename raw.orders.id to k; rename raw.orders.total to sum",
        ),
        (["raw.orders", "--drop", "id", "total"], "drop raw.orders.id; drop raw.orders.total"),
        (
            ["ALTER TABLE raw.orders DROP COLUMN note, RENAME COLUMN total TO sum"],
            "drop raw.orders.note; rename raw.orders.total to sum",
        ),
        (
            ["exec sp_rename 'raw.orders.id', 'k', 'COLUMN'", "--dialect", "tsql"],
            "rename raw.orders.id to k",
        ),
    ],
)
def test_every_kind_of_change_can_be_described(
    folder: Path, options: list[str], change: str
) -> None:
    done = downriver("impact", *options, "--json", cwd=folder)
    assert "; ".join(json.loads(done.stdout)["changes"]) == change


@pytest.mark.parametrize(
    "options",
    [
        ["raw.orders"],
        ["raw.orders", "--type", "int"],
        ["raw.orders.total", "--add", "x"],
        ["raw.orders.total", "--drop", "--required"],
        ["raw.nothing", "--drop"],
        ["raw.orders", "total"],
        ["raw.orders", "--rename", "total"],
        ["raw.orders", "--rename", ":x"],
        ["raw.orders", "--retype", "total:"],
        ["raw.orders", "--drop", "nothing"],
        ["raw.orders.total", "--rename", "a:b"],
        ["raw.orders.total", "--drop", "id"],
        ["alter table raw.orders dorp column total"],
        ["alter table raw.nothing drop column total"],
        ["alter table raw.orders drop column total", "--drop"],
        ["create index i on raw.orders (id)"],
        ["raw.orders.nothing", "--drop"],
    ],
)
def test_a_change_that_is_not_clear_is_an_error(folder: Path, options: list[str]) -> None:
    done = downriver("impact", *options, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("change", "decision", "code"),
    [(FREE, "APPROVED", 0), (DROP, "BLOCKED", 1), (LOGIC, "CAUTION", 3)],
)
def test_the_exit_code_is_the_decision(
    folder: Path, change: dict, decision: str, code: int
) -> None:
    done = gate(folder, change)
    assert done.returncode == code
    assert done.stdout.startswith(f"DECISION: {decision}\nRISK: ")


def test_caution_can_be_allowed(folder: Path) -> None:
    assert gate(folder, LOGIC, "--allow-caution").returncode == 0
    assert gate(folder, DROP, "--allow-caution").returncode == 1


@pytest.mark.parametrize("form", ["text", "markdown", "github", "json", "sarif"])
def test_an_undecidable_change_is_blocked(folder: Path, form: str) -> None:
    done = gate(folder, {"type": "column_drop", "column": "nothing"}, "--format", form)
    assert done.returncode == 2
    assert "raw.orders.nothing" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--changes", "a", "--ddl", "b"],
        ["--ddl", "no.sql"],
        ["--changes", "no.yml"],
        ["--changes", "broken.yml"],
        ["--changes", "changes.yml", "--head", "x"],
        ["--changes", "changes.yml", "--policy", "no.yml"],
    ],
)
def test_a_gate_without_a_change_does_not_approve(folder: Path, options: list[str]) -> None:
    (folder / "broken.yml").write_text("a: [")
    (folder / "changes.yml").write_text(json.dumps({"raw.orders": [FREE]}))
    assert downriver("gate", *options, cwd=folder).returncode == 2


def test_a_migration_is_judged(folder: Path) -> None:
    (folder / "m.sql").write_text("alter table raw.orders drop column total;")
    done = downriver("gate", "--ddl", "m.sql", "--dialect", "postgres", "--explain", cwd=folder)
    assert done.returncode == 1
    assert "→ breaking_consumers: BLOCKED: The change breaks stg.orders." in done.stdout


def test_the_policy_of_the_working_directory_counts(folder: Path) -> None:
    (folder / "downriver.yml").write_text("gate:\n  breaking: CAUTION\n")
    assert gate(folder, DROP).returncode == 3


def test_markdown_is_a_comment_with_a_graph_and_links(folder: Path) -> None:
    printed = gate(folder, DROP, "--format", "markdown").stdout
    assert printed.startswith("## ⛔ BLOCKED · HIGH risk")
    assert "```mermaid\nflowchart LR" in printed
    assert "[stg.sql:2](stg.sql#L2)" in printed


def test_sarif_points_at_the_line(folder: Path) -> None:
    found = json.loads(gate(folder, DROP, "--format", "sarif").stdout)
    (result,) = found["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("fails", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "stg.sql"}, "region": {"startLine": 2}}


def test_github_annotations_point_at_the_line(folder: Path) -> None:
    lines = gate(folder, DROP, "--format", "github").stdout.splitlines()
    assert lines[0].startswith("::error title=downriver::BLOCKED: ")
    assert lines[1].startswith("::error file=stg.sql,title=stg.orders,line=2::stg.orders: ")


def test_json_is_the_whole_verdict(folder: Path) -> None:
    verdict = json.loads(gate(folder, DROP, "--format", "json").stdout)
    assert verdict["decision"] == "BLOCKED"
    assert verdict["impact"]["effects"][0]["outcome"] == "fails"
