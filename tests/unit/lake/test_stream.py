"""A stream and other writers of a lake."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from downriver.errors import LakeBusyError
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import BronzeBatch, LakeVersion, commit_version
from downriver.lake.stream import BatchIngest, StreamSchedule

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.lake.runner import Lake


def lake_of(place: Path, failures: int) -> SimpleNamespace:
    """Return a lake with new events, in which another process commits first a few times."""
    folder = Folder(str(place))
    batches = (BronzeBatch(1, "bronze/1", 1, 0, 0),)
    commit_version(folder, LakeVersion(), LakeVersion(batches=batches))
    lake = SimpleNamespace(folder=folder, builds=0)

    def build() -> list[Any]:
        lake.builds += 1
        if lake.builds <= failures:
            raise LakeBusyError(folder.location)
        return []

    lake.build = build
    return lake


def test_a_build_of_a_stream_is_repeated_if_another_process_commits_first(tmp_path):
    lake = lake_of(tmp_path, failures=2)
    BatchIngest(cast("Lake", lake), StreamSchedule(), build=True, home=None).build_pending()
    assert lake.builds == 3


def test_a_stream_ends_if_another_process_always_commits_first(tmp_path):
    lake = lake_of(tmp_path, failures=100)
    with pytest.raises(LakeBusyError):
        BatchIngest(cast("Lake", lake), StreamSchedule(), build=True, home=None).build_pending()
    assert lake.builds == 5
