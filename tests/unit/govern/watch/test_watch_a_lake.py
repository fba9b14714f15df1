"""New events of a lake are stored before a check, each once, and without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.openlineage import encode
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import moment
from tests.unit.govern.watch.test_monitor import DAYS, weeks

from downriver.errors import LakeNotFoundError
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import BronzeBatch, commit_version, read_current_version
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path


def add_batch(folder: Folder, events: list[dict]) -> None:
    """Put events into bronze as an ingest does."""
    base = read_current_version(folder, create=True)
    number = len(base.batches) + 1
    path = f"bronze/{number}"
    folder.write_columns(f"{path}/events", {"body": [encode(event) for event in events]})
    batch = BronzeBatch(number, path, len(events), 0, 0)
    commit_version(folder, base, replace(base, batches=(*base.batches, batch)))


def test_only_new_batches_are_taken_in(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "lake"))
    events = weeks()
    add_batch(folder, events[:20])
    with Lineage.open(str(tmp_path / "store")) as lineage:
        assert lineage.govern.take_from_lake(folder.location) == 20
        assert lineage.govern.take_from_lake(folder.location) == 0
        add_batch(folder, events[15:])  # five of them are stored already
        assert lineage.govern.take_from_lake(folder.location) == len(events) - 20
    with Lineage.open(str(tmp_path / "store")) as lineage:
        assert lineage.govern.take_from_lake(folder.location) == 0


def test_the_monitor_follows_a_lake(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "lake"))
    look = ("watch", "--once", "--now", moment(DAYS - 0.8), "--lake", "lake", "--store", "s")
    add_batch(folder, weeks()[:-3])
    assert "run_failed" not in downriver(*look, "--json", cwd=tmp_path).stdout
    add_batch(folder, weeks()[-3:])
    done = downriver(*look, cwd=tmp_path)
    assert "failed: boom" in done.stdout
    assert done.returncode == 1


def test_no_lake_is_an_error(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / "store")) as lineage, pytest.raises(LakeNotFoundError):
        lineage.govern.take_from_lake(str(tmp_path / "nowhere"))
