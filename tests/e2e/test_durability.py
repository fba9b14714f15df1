"""What was acknowledged is never lost, whenever the server is killed (promise 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bench.durability import kill_repeatedly

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 4

pytestmark = pytest.mark.slow


def test_nothing_acknowledged_is_lost_when_a_server_on_sqlite_is_killed(tmp_path: Path) -> None:
    found = kill_repeatedly(str(tmp_path / "lineage.db"), KILLS)

    assert found.acknowledged > KILLS
    assert found.intact, found


def test_nothing_acknowledged_is_lost_when_a_server_on_postgres_is_killed(
    postgres_database: str,
) -> None:
    found = kill_repeatedly(postgres_database, KILLS)

    assert found.acknowledged > KILLS
    assert found.intact, found
