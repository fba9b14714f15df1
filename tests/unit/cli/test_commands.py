"""Commands, as people and scripts use them."""

from __future__ import annotations

import gzip
import json
import sqlite3
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset, run_event
from tests.unit.cli.command import downriver

if TYPE_CHECKING:
    from pathlib import Path


def event(job: str, inputs: list[str], outputs: list[str]) -> dict:
    return {
        "eventTime": "2026-01-01T00:00:00Z",
        "eventType": "COMPLETE",
        "run": {"runId": job},
        "job": {"namespace": "etl", "name": job},
        "inputs": [{"namespace": "db", "name": name} for name in inputs],
        "outputs": [{"namespace": "db", "name": name} for name in outputs],
    }


CLEAN = event("clean", ["raw.orders"], ["stg.orders"])
SUM = event("sum", ["stg.orders"], ["mart.revenue"])


def lines(*events: dict) -> str:
    return "".join(json.dumps(e) + "\n" for e in events)


def test_ingest_takes_lines_arrays_documents_gzip_directories_and_stdin(tmp_path: Path) -> None:
    folder = tmp_path / "events" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text(lines(event("a", [], []), event("b", [], [])))
    (folder / "b.json").write_text(json.dumps([event("c", [], []), event("d", [], [])], indent=2))
    (folder / "c.json").write_text(json.dumps(event("e", [], []), indent=2))
    (folder / "d.jsonl.gz").write_bytes(gzip.compress(lines(event("f", [], [])).encode()))
    (folder / "notes.txt").write_text("not events")
    done = downriver("ingest", "events", "-", "--json", cwd=tmp_path, stdin=lines(CLEAN, CLEAN))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"files": 5, "stored": 7, "duplicates": 1, "problems": []}


def test_unreadable_lines_are_reported_and_the_others_are_stored(tmp_path: Path) -> None:
    (tmp_path / "mixed.jsonl").write_text(
        lines(CLEAN) + "{broken\n\n" + '{"eventTime": 3}\n' + lines(SUM)
    )
    done = downriver("ingest", "mixed.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert "mixed.jsonl:2: the body is not valid JSON" in done.stderr
    assert "mixed.jsonl:4: eventTime: expected str, got int" in done.stderr
    assert "2 events stored, 2 could not be read" in done.stdout
    assert downriver("trace", "raw.orders", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    "content", [b"\x1f\x8bnot gzip", b'[{"eventTime": ', b"[1, 2]", b"\xff\xfe"]
)
def test_a_damaged_file_is_a_problem_not_a_crash(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    done = downriver("ingest", "bad.json", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"]
    assert "Traceback" not in done.stderr


def test_lines_after_an_unreadable_one_are_stored(tmp_path: Path) -> None:
    array = json.dumps([event("c", [], []), event("d", [], [])])
    deep = "[" * 200_000
    cut = '{"eventTime": "2026-01-01T00:00:00Z",'
    (tmp_path / "e.jsonl").write_text(lines(CLEAN) + f"{cut}\n{array}\n{deep}\n" + lines(SUM))
    done = downriver("ingest", "e.jsonl", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["stored"] == 4
    assert [problem["where"] for problem in found["problems"]] == ["e.jsonl:2", "e.jsonl:4"]
    (tmp_path / "first.jsonl").write_text(f"{cut}\n" + lines(event("z", [], [])))
    assert (
        json.loads(downriver("ingest", "first.jsonl", "--json", cwd=tmp_path).stdout)["stored"] == 1
    )


def test_a_database_of_another_program_is_not_changed(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    before = other.read_bytes()
    for command in (("status",), ("ingest", "-")):
        done = downriver(*command, "--store", str(other), cwd=tmp_path)
        assert (done.returncode, "not a Downriver store" in done.stderr) == (2, True)
    assert other.read_bytes() == before
    (tmp_path / "empty.db").touch()
    assert downriver("status", "--store", "empty.db", cwd=tmp_path).returncode == 2


def test_the_event_that_proves_an_edge_can_be_printed(tmp_path: Path) -> None:
    downriver("ingest", "-", cwd=tmp_path, stdin=lines(CLEAN))
    answer = json.loads(downriver("trace", "raw.orders", "--json", cwd=tmp_path).stdout)
    shown = downriver("audit", "event", answer["edges"][0]["first_event"], cwd=tmp_path)
    assert json.loads(shown.stdout) == CLEAN
    assert downriver("audit", "event", "00", cwd=tmp_path).returncode == 2


def test_a_truncated_log_is_detected(tmp_path: Path) -> None:
    downriver("ingest", "-", cwd=tmp_path, stdin=lines(CLEAN, SUM))
    with sqlite3.connect(tmp_path / ".downriver" / "lineage.db") as database:
        database.execute("DROP TRIGGER log_is_append_only_delete")
        database.execute("DELETE FROM log WHERE seq = 2")
    database.close()
    cut = downriver("audit", "verify", cwd=tmp_path)
    assert (cut.returncode, "entry 2 is missing" in cut.stderr) == (1, True)
    assert downriver("audit", "verify", "--expect", "0:ab", cwd=tmp_path).returncode == 2


def test_a_missing_file_is_an_error_and_nothing_is_stored(tmp_path: Path) -> None:
    done = downriver("ingest", "nope.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "error: FILE: nope.json: no such file or directory\n",
    )


def test_the_store_is_found_in_parent_folders_or_by_option(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(lines(CLEAN))
    assert downriver("ingest", "e.jsonl", cwd=tmp_path).returncode == 0
    deep = tmp_path / "src" / "models"
    deep.mkdir(parents=True)
    assert "stg.orders" in downriver("trace", "raw.orders", cwd=deep).stdout
    elsewhere = {"DOWNRIVER_STORE": str(tmp_path / "other")}
    assert downriver("status", cwd=deep, **elsewhere).returncode == 2
    assert downriver("ingest", str(tmp_path / "e.jsonl"), cwd=deep, **elsewhere).returncode == 0
    assert (tmp_path / "other" / "lineage.db").exists()


def test_reading_without_a_store_is_an_error_and_creates_none(tmp_path: Path) -> None:
    done = downriver("trace", "orders", cwd=tmp_path)
    assert done.returncode == 2
    assert "no Downriver store" in done.stderr
    assert not list(tmp_path.iterdir())


def test_trace_prints_a_tree_or_json(tmp_path: Path) -> None:
    downriver("ingest", "-", cwd=tmp_path, stdin=lines(CLEAN, SUM))
    assert downriver("trace", "raw.orders", cwd=tmp_path).stdout == (
        "namespace: db\n"
        "raw.orders\n"
        "└── clean job\n"
        "    └── stg.orders\n"
        "        └── sum job\n"
        "            └── revenue\n"
        "complete · 2 datasets, 2 jobs\n"
    )
    assert downriver("trace", "stg.orders", "--full-names", cwd=tmp_path).stdout == (
        "dataset:db:stg.orders\n"
        "└── job:etl:sum\n"
        "    └── dataset:db:mart.revenue\n"
        "complete · 1 dataset, 1 job\n"
    )
    answer = json.loads(downriver("trace", "revenue", "--upstream", "--json", cwd=tmp_path).stdout)
    assert set(answer) == {
        "root",
        "nodes",
        "edges",
        "complete",
        "blind_spots",
        "omitted_count",
        "reader_count",
    }
    assert answer["root"]["id"] == "dataset:db:mart.revenue"


def test_paths_exits_with_1_when_there_is_none(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    write = (tmp_path / "events.jsonl").write_text
    write(json.dumps(run_event(inputs=[dataset("a")], outputs=[dataset("b")])))
    downriver("ingest", "events.jsonl", "--store", store, cwd=tmp_path)
    for extra in ((), ("--json",)):
        found = downriver("paths", "a", "b", *extra, "--store", store, cwd=tmp_path)
        none = downriver("paths", "b", "a", *extra, "--store", store, cwd=tmp_path)
        assert (found.returncode, none.returncode) == (0, 1)
    assert json.loads(none.stdout)["paths"] == []


def test_a_column_trace_counts_indirect_columns_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "revenue.sql").write_text(
        "INSERT INTO mart.revenue SELECT day, SUM(amount) AS total FROM shop.orders "
        "WHERE status = 'paid' GROUP BY day"
    )
    downriver("capture", "sql", "revenue.sql", cwd=tmp_path)
    folded = downriver("trace", "revenue.total", "--upstream", cwd=tmp_path).stdout
    assert "└── + 2 that decide which rows\n" in folded
    assert "orders.status" not in folded
    assert "1 column, 2 indirect" in folded
    whole = downriver("trace", "revenue.total", "--upstream", "--indirect", cwd=tmp_path).stdout
    assert "orders.status · FILTER" in whole
    assert "+ 2" not in whole
    assert "3 columns" in whole


def test_an_unknown_name_exits_non_zero_and_offers_near_ones(tmp_path: Path) -> None:
    downriver("ingest", "-", cwd=tmp_path, stdin=lines(CLEAN, SUM))
    done = downriver("trace", "mart.revenu", cwd=tmp_path)
    assert done.returncode == 2
    assert "Did you mean: mart.revenue" in done.stderr
    assert done.stdout == ""
    as_json = json.loads(downriver("trace", "mart.revenu", "--json", cwd=tmp_path).stderr)
    assert as_json["error"] == "EntityNotFound"
    assert as_json["near"] == ["mart.revenue"]


@pytest.mark.parametrize("form", ["mermaid", "dot", "svg", "json"])
def test_graph_draws_in_every_format(tmp_path: Path, form: str) -> None:
    odd = event('odd "job" ]--> end', ["raw.orders"], ["<b>naïve</b>"])
    downriver("ingest", "-", cwd=tmp_path, stdin=lines(CLEAN, odd))
    done = downriver("graph", "raw.orders", "--format", form, cwd=tmp_path)
    assert done.returncode == 0
    assert "orders" in done.stdout
    target = tmp_path / f"out.{form}"
    to_file = downriver("graph", "raw.orders", "--format", form, "-o", target.name, cwd=tmp_path)
    assert to_file.returncode == 0
    assert target.read_text("utf-8") == done.stdout


def test_audit_names_the_altered_entry(tmp_path: Path) -> None:
    downriver("ingest", "-", cwd=tmp_path, stdin=lines(CLEAN, SUM))
    intact = downriver("audit", "verify", cwd=tmp_path)
    assert intact.returncode == 0
    head = intact.stdout.split("head ")[1].strip()
    with sqlite3.connect(tmp_path / ".downriver" / "lineage.db") as database:
        database.execute("DROP TRIGGER log_is_append_only_update")
        database.execute("UPDATE log SET received_at = received_at + 1 WHERE seq = 2")
    database.close()
    altered = downriver("audit", "verify", cwd=tmp_path)
    assert (altered.returncode, "entry 2" in altered.stderr) == (1, True)
    assert downriver("audit", "verify", "--expect", head, cwd=tmp_path).returncode == 1
    assert downriver("audit", "verify", "--expect", "what", cwd=tmp_path).returncode == 2


def test_rebuild_gives_the_same_answers(tmp_path: Path) -> None:
    downriver("ingest", "-", cwd=tmp_path, stdin=lines(CLEAN, SUM))
    before = downriver("trace", "raw.orders", "--json", cwd=tmp_path).stdout
    assert downriver("rebuild", cwd=tmp_path).stdout == "rebuilt from 2 events\n"
    assert json.loads(downriver("rebuild", "--json", cwd=tmp_path).stdout) == {"events": 2}
    assert downriver("trace", "raw.orders", "--json", cwd=tmp_path).stdout == before


def test_keys_are_created_listed_and_revoked(tmp_path: Path) -> None:
    made = downriver("keys", "create", "etl", cwd=tmp_path)
    assert made.stdout.startswith("dr_")
    assert downriver("keys", "create", "x", "--role", "king", cwd=tmp_path).returncode == 2
    assert "etl" in downriver("keys", "list", cwd=tmp_path).stdout
    assert downriver("keys", "revoke", "etl", cwd=tmp_path).returncode == 0
    assert downriver("keys", "revoke", "nobody", cwd=tmp_path).returncode == 2


def test_keys_are_created_and_revoked_with_json(tmp_path: Path) -> None:
    options = ("--role", "reader", "--json")
    made = json.loads(downriver("keys", "create", "bi", *options, cwd=tmp_path).stdout)
    assert (made["name"], made["role"], made["key"][:3]) == ("bi", "reader", "dr_")
    done = downriver("keys", "revoke", "bi", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"name": "bi", "revoked": True}
    refused = downriver("keys", "revoke", "nobody", "--json", cwd=tmp_path)
    assert refused.returncode == 2
    assert "nobody" in json.loads(refused.stderr)["detail"]


def test_serve_refuses_other_machines_without_keys(tmp_path: Path) -> None:
    done = downriver("serve", "--host", "0.0.0.0", cwd=tmp_path)
    assert done.returncode == 2
    assert "keys create" in done.stderr


def test_an_invalid_setting_is_an_error(tmp_path: Path) -> None:
    downriver("ingest", "-", cwd=tmp_path, stdin=lines(CLEAN))
    done = downriver("trace", "raw.orders", cwd=tmp_path, DOWNRIVER_STALE_DAYS="soon")
    assert (done.returncode, "DOWNRIVER_STALE_DAYS" in done.stderr) == (2, True)


@pytest.mark.parametrize("arguments", [(), ("--help",), ("trace", "--help"), ("audit",)])
def test_help_is_there(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert "Usage:" in (shown := downriver(*arguments, cwd=tmp_path)).stdout + shown.stderr


def test_two_names_are_joined_listed_and_separated(tmp_path: Path) -> None:
    (tmp_path / "write.sql").write_text("create table orders_clean as select id from raw")
    (tmp_path / "read.sql").write_text("create table daily as select id from lake.orders_clean")
    for name in ("write.sql", "read.sql"):
        assert downriver("capture", "sql", name, cwd=tmp_path).returncode == 0
    assert "1 possible cut" in downriver("cuts", cwd=tmp_path).stdout
    (cut,) = json.loads(downriver("cuts", "--json", cwd=tmp_path).stdout)["cuts"]
    command = cut["command"].split()[1:]
    assert "are one dataset" in downriver(*command, cwd=tmp_path).stdout
    assert "0 possible cuts" in downriver("cuts", cwd=tmp_path).stdout
    assert "daily" in downriver("trace", "raw", cwd=tmp_path).stdout
    assert "are different datasets" in downriver(*command, "--undo", cwd=tmp_path).stdout
    assert "daily" not in downriver("trace", "raw", cwd=tmp_path).stdout
    assert "is different from" in downriver("same", "--list", cwd=tmp_path).stdout
    assert downriver("same", "raw", cwd=tmp_path).returncode != 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gate", "--base", "HEAD"), "is not in a Git repository; name one with --repo"),
        (("gate", "--base", "HEAD", "--repo", "none"), "none: no such folder"),
        (("policy", "test"), "is not in a Git repository; name one with --repo"),
        (("tags", "apply", "none.yml"), "error: FILE: none.yml: No such file or directory\n"),
        (("import", "marquez", "http://localhost:1"), "localhost:1: Connection refused\n"),
    ],
)
def test_an_error_of_the_system_has_a_reason_and_no_number(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = downriver(*arguments, cwd=tmp_path)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
