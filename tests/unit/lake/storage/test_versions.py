"""A version is committed atomically, by one writer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from downriver.errors import InvalidRequestError, LakeBusyError
from downriver.lake.runner import commit_tables
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import (
    BronzeBatch,
    LakeVersion,
    StoredTable,
    VersionOrTime,
    clean_versions,
    commit_version,
    parse_version_or_time,
    read_current_version,
)


def test_of_two_concurrent_commits_one_fails(tmp_path):
    folder = Folder(str(tmp_path))
    base = commit_version(folder, LakeVersion(), LakeVersion())
    commit_version(folder, base, LakeVersion(folded=1))
    with pytest.raises(LakeBusyError, match="try again"):
        commit_version(folder, base, LakeVersion(folded=2))
    assert read_current_version(folder).folded == 1


def test_an_ingest_beside_a_build_does_not_make_the_build_fail(tmp_path):
    folder = Folder(str(tmp_path))
    first, second = (BronzeBatch(number, f"bronze/{number}", 1, 0, 0) for number in (1, 2))
    base = commit_version(folder, LakeVersion(), LakeVersion(batches=(first,)))
    both = (first, second)
    commit_version(folder, base, replace(base, batches=both, streams={"s": 4}, sources=()))
    tables = {"gold.edges": StoredTable("builds/1/gold/edges", 1)}
    built = replace(base, folded=1, tables=tables, release="1", stale_days=30)
    committed = commit_tables(folder, base, built)
    assert committed == read_current_version(folder)
    assert (committed.batches, committed.streams, committed.sources) == (both, {"s": 4}, ())
    assert (committed.tables, committed.release, committed.stale_days) == (tables, "1", 30)
    assert committed.unfolded == (second,)
    with pytest.raises(LakeBusyError):
        commit_tables(folder, base, built)


def test_a_batch_records_the_time_range_of_its_events():
    batch = BronzeBatch(1, "bronze/1", 3, 0, 0, first_at=10, last_at=20)
    assert [batch.may_hold(*span) for span in ((1, 9), (1, 10), (15, 16), (20, 30), (21, 30))] == [
        *(False, True, True, True, False),
    ]
    assert BronzeBatch(1, "bronze/1", 3, 0, 0).may_hold(1, 2), (
        "one of an older version may hold any"
    )


def test_the_metadata_of_many_batches_stays_small(tmp_path):
    folder, version = Folder(str(tmp_path)), LakeVersion()
    batches = []
    for number in range(1, 401):
        batches.append(BronzeBatch(number, f"bronze/{number}", 1, 0, 0))
        changed = replace(version, batches=(*version.batches, batches[-1]))
        version = commit_version(folder, version, changed)
    assert version == read_current_version(folder)
    assert version.batches == tuple(batches)
    assert 1 < len(version.lists) < 10
    largest = max(len(folder.read(f"versions/{name}")) for name in folder.names("versions"))
    assert largest < 10_000
    clean_versions(folder, 1, grace=0)
    assert read_current_version(folder).batches == tuple(batches), "the lists are kept"


def test_a_version_or_a_time_is_parsed():
    assert parse_version_or_time("12") == VersionOrTime(12, 0)
    assert parse_version_or_time("1970-01-01T00:00:01Z") == VersionOrTime(None, 1_000_000)
    assert parse_version_or_time("1970-01-01T01:00:01+01:00") == VersionOrTime(None, 1_000_000)
    assert parse_version_or_time("1970-01-01") == VersionOrTime(None, 86_400_000_000 - 1), (
        "a day means its end"
    )
    with pytest.raises(InvalidRequestError, match="neither a version nor a time"):
        parse_version_or_time("yesterday")
