"""Fixtures of the tests of the graph."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from downriver.graph.walk import compilation
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


@pytest.fixture(scope="module", params=["python", "compiled", "begun"])
def walks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Walk in Python, with compiled code, and with it for the beginning: all find the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "_loaded", [])
        if request.param != "python" and not compilation.load():
            missing = "numba is not installed, so compiled walks are not tested"
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
        if request.param == "begun":
            patch.setattr(compilation.walks(), "MANY", 3)
        yield
