"""A tracker on everything that may hold its lineage."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.server import serving

from downriver import Lineage, lineage_sync
from downriver.sdk import Tracker


@pytest.fixture(params=["embedded", "memory", "remote", "postgres"])
def tracker(request, tmp_path, monkeypatch):
    monkeypatch.setenv("DOWNRIVER_SPOOL", str(tmp_path / "spool"))
    if request.param == "remote":
        with (
            Lineage.open(str(tmp_path / "store")) as store,
            serving(store) as url,
            closing(lineage_sync(url)) as sync,
        ):
            yield Tracker(sync)
        return
    location = {
        "embedded": lambda: str(tmp_path / "store"),
        "memory": lambda: ":memory:",
        "postgres": lambda: request.getfixturevalue("postgres_database"),
    }[request.param]()
    with closing(lineage_sync(location)) as sync:
        yield Tracker(sync)
