"""Cleaning removes only folders that no kept version uses."""

from __future__ import annotations

import os
import time

from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import (
    BronzeBatch,
    LakeVersion,
    StoredTable,
    clean_versions,
    commit_version,
    list_versions,
    read_current_version,
)


def lake(tmp_path) -> Folder:
    """A lake of three versions: a batch, a build of it, and a build that replaced that one."""
    folder = Folder(str(tmp_path))
    first = LakeVersion(batches=(BronzeBatch(1, "bronze/000001-a", 1, 0, 0),))
    version = commit_version(folder, LakeVersion(), first)
    for name in ("builds/000002-b", "builds/000003-c"):
        folder.write(f"{name}/gold/edges/part-0.parquet", b"")
        tables = {"gold.edges": StoredTable(f"{name}/gold/edges", 0)}
        version = commit_version(folder, version, LakeVersion(batches=first.batches, tables=tables))
    folder.write("bronze/000001-a/events/part-0.parquet", b"")
    folder.write("builds/000004-half/gold/edges/part-0.parquet", b"")
    return folder


def test_folders_of_kept_versions_stay(tmp_path):
    folder = lake(tmp_path)
    cleaned = clean_versions(folder, 1)
    assert cleaned.versions == [1, 2]
    assert cleaned.folders == ["builds/000002-b"]
    assert list_versions(folder) == [3]
    assert read_current_version(folder).tables["gold.edges"].path == "builds/000003-c/gold/edges"
    assert folder.names("bronze") == ["000001-a"]


def test_unused_folders_are_removed_after_the_grace_period(tmp_path):
    folder = lake(tmp_path)
    assert clean_versions(folder, 3).folders == [], "it may be a build that is under way"
    yesterday = time.time() - 25 * 3600
    os.utime(tmp_path / "builds" / "000004-half", (yesterday, yesterday))
    assert clean_versions(folder, 3).folders == ["builds/000004-half"]
    assert folder.names("builds") == ["000002-b", "000003-c"]
