"""`downriver lake …` as people type it."""

from __future__ import annotations

import json

import pytest
from tests.openlineage import encode, run_event
from tests.unit.cli.command import downriver

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_from_files_to_an_answer(spark, tmp_path):
    (tmp_path / "events.jsonl").write_bytes(encode(run_event()) + b"\nnonsense\n")
    ingested = downriver("lake", "ingest", "events.jsonl", cwd=tmp_path)
    assert ingested.returncode == 1, "a line could not be read"
    assert ingested.stdout.startswith("bronze   2 in, 1 out, 1 rejected (")
    assert downriver("lake", "build", cwd=tmp_path).stdout.count(" in, ") == 5
    assert downriver("lake", "build", cwd=tmp_path).stdout == "nothing new since the last build\n"

    status = json.loads(downriver("lake", "status", "--json", cwd=tmp_path).stdout)
    assert (status["version"], status["events"], status["quarantined"]) == (2, 1, 1)
    assert status["tables"]["gold.nodes"] == 1
    assert "gold.nodes" in downriver("lake", "status", cwd=tmp_path).stdout

    sql = """
        SELECT job_name, state, first_seen, struct(1 AS a) AS s, digest
        FROM silver_runs, bronze_events
    """
    answer = json.loads(downriver("lake", "query", sql, "--json", cwd=tmp_path).stdout)
    assert answer["columns"] == ["job_name", "state", "first_seen", "s", "digest"]
    [row] = answer["rows"]
    assert row[:4] == ["load", "complete", "2026-01-01T12:00:00Z", {"a": 1}]
    shown = downriver("lake", "query", "SELECT explode(array(1, 2))", "--limit", "1", cwd=tmp_path)
    assert shown.stdout.split()[1:4] == ["1", "…", "and"]

    wrong = downriver("lake", "query", "SELECT nothing FROM gold_nodes", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "nothing" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_lake_that_is_not_there(tmp_path):
    done = downriver("lake", "status", "--lake", "elsewhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "no lake in elsewhere" in done.stderr


def test_stream_takes_in_what_is_new_each_round(spark, tmp_path):
    (tmp_path / "events.jsonl").write_bytes(encode(run_event()) + b"\n")
    went = downriver(
        *("lake", "stream", "events.jsonl", "--trigger", "1s", "--rounds", "2"), cwd=tmp_path
    )
    assert went.returncode == 0
    assert went.stdout.count("bronze") == 2
    assert went.stdout.count("facts") == 1, "nothing was new in the second round"
    (tmp_path / "events.jsonl").write_bytes(
        b"".join(encode(run_event(run=str(number))) + b"\n" for number in range(3))
    )
    assert downriver("lake", "ingest", "events.jsonl", cwd=tmp_path).returncode == 0
    assert downriver("lake", "build", cwd=tmp_path).returncode == 0

    differ = json.loads(downriver("lake", "diff", "2", "4", "--json", cwd=tmp_path).stdout)
    assert differ["edges"]["rows"] == []
    early = downriver("lake", "diff", "1", "2", cwd=tmp_path)
    assert "before the first build" in early.stderr

    published = json.loads(downriver("lake", "publish", "--json", cwd=tmp_path).stdout)
    assert published == {"events": 4, "duplicates": 0}
    again = downriver("lake", "publish", cwd=tmp_path)
    assert again.stdout == "0 events published, 4 already there\n"
    status = json.loads(downriver("status", "--json", cwd=tmp_path).stdout)
    assert (status["counts"]["events"], status["counts"]["runs"]) == (4, 4)

    cleaned = json.loads(downriver("lake", "clean", "--keep", "1", "--json", cwd=tmp_path).stdout)
    assert cleaned["versions"] == [1, 2, 3]
    assert len(cleaned["folders"]) == 1
    left = json.loads(downriver("lake", "status", "--json", cwd=tmp_path).stdout)
    assert (left["version"], left["events"]) == (4, 4)


def test_a_trigger_that_is_no_time(tmp_path):
    done = downriver("lake", "stream", "x", "--trigger", "soon", cwd=tmp_path)
    assert done.returncode == 2
    assert "30s, 5m or 1h" in done.stderr
