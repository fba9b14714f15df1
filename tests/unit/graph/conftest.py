"""What tests of the graph may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from downriver.service import Lineage
from downriver.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    """Lineage over an empty store."""
    with Lineage(SqliteStore(tmp_path / "lineage.db")) as lineage:
        yield lineage
