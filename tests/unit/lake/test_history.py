"""Builds as of a time, compaction and expiry."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.unit.cli.command import downriver
from tests.unit.lake.orders import FIRST, SECOND, facts_of, make, rows, server_catalog

from downriver.errors import LakeError
from downriver.lake.storage.tables import clean_versions, parse_time, read_current_version

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture
def copy(spark, built, tmp_path):
    """The small lake, to be changed."""
    shutil.copytree(built.folder.location, tmp_path / "lake")
    return make(tmp_path / "lake", spark)


def test_a_build_as_of_a_time_equals_the_catalog_of_the_events_up_to_it(copy, tmp_path):
    current = read_current_version(copy.folder)
    copy.build_as_of(parse_time("2026-01-31"))
    assert facts_of(copy, copy.at("2026-01-31")) == server_catalog(tmp_path / "store", FIRST)
    assert read_current_version(copy.folder) == current, "the current version is left alone"
    assert copy.build_as_of(parse_time("2026-01-31")) == [], "it is there already"

    changes = copy.diff("2026-01-31", "4")["edges"].collect()
    assert sorted((row.change, row.kind, row.source_name) for row in changes) == [
        ("added", "reads", "totals"),
        ("stale", "writes", "sum"),
    ]
    query = "SELECT count(*) FROM gold_edges"
    assert [row[0] for row in copy.query(query, "2026-01-31").collect()] == [2]
    assert clean_versions(copy.folder, 1).versions == [1, 2, 3]
    assert copy.diff("2026-01-31", "4")["edges"].count() == 2, "cleaning keeps what it needs"


def test_compaction_keeps_the_events_in_one_batch(copy, tmp_path):
    before = facts_of(copy)
    stage = copy.compact()
    assert (stage.rows_in, stage.rows_out) == (5, 5)
    [batch] = read_current_version(copy.folder).batches
    assert (batch.number, batch.events, batch.quarantined, batch.duplicates) == (2, 5, 1, 2)
    assert copy.build() == []
    assert facts_of(copy) == before
    assert rows(copy, "SELECT count(*), count(DISTINCT digest) FROM bronze_events") == [(5, 5)]
    assert copy.compact().rows_in == 0, "there is nothing left to do"
    events = Path(copy.folder.location).parent / "again.jsonl"
    events.write_bytes(
        b"\n".join(bytes(row[0]) for row in rows(copy, "SELECT body FROM bronze_events"))
    )
    again = copy.ingest([str(events)])
    assert (again.rows_out, again.duplicates) == (0, 5), "each is still recognised"


def test_expired_events_are_removed_but_their_facts_stay(copy):
    before = facts_of(copy)
    february = parse_time("2026-02-01", end=False)
    stage = copy.expire(february)
    assert (stage.rows_in, stage.rows_out) == (5, len(SECOND))
    assert copy.build() == []
    assert facts_of(copy) == before
    assert rows(copy, "SELECT count(*) FROM bronze_events") == [(len(SECOND),)]
    for build in (lambda: copy.build(full=True), lambda: copy.build_as_of(0)):
        with pytest.raises(LakeError, match="expired"):
            build()
    assert copy.expire(february).rows_in == 0


def test_on_the_command_line(copy, tmp_path):
    lake = ("--lake", copy.folder.location, "--json")
    compacted = json.loads(downriver("lake", "compact", *lake, cwd=tmp_path).stdout)
    assert (compacted["rows_in"], compacted["rows_out"]) == (5, 5)
    expired = json.loads(
        downriver("lake", "expire", "--before", "2026-02-01", *lake, cwd=tmp_path).stdout
    )
    assert (expired["rows_in"], expired["rows_out"]) == (5, 2)
    refused = downriver("lake", "build", "--as-of", "2026-01-31", *lake, cwd=tmp_path)
    assert "expired" in refused.stderr
    wrong = downriver("lake", "expire", "--before", "long ago", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "2026-01-31T12:00:00Z" in wrong.stderr
